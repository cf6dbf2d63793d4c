// swift-format-ignore-file: AlwaysUseLowerCamelCase

import KeychainCrypto

/// A source of random bytes. `kSecRandomDefault` is the only one.
public final class SecRandomRef: Sendable {
  fileprivate init() {}
}

/// The system's source of random bytes.
public let kSecRandomDefault: SecRandomRef! = SecRandomRef()

/// Fills memory with random bytes from OpenSSL's generator.
///
/// - Parameters:
///   - source: Not used, because there is only one source.
///   - count: The number of bytes.
///   - bytes: The memory to fill.
/// - Returns: `errSecSuccess`; `errSecParam` for a negative count; `errSecAllocate` if the generator fails. The memory
///   is then not random.
public func SecRandomCopyBytes(_ source: SecRandomRef?, _ count: Int, _ bytes: UnsafeMutableRawPointer) -> Int32 {
  guard count >= 0 else { return errSecParam }
  do throws(DataProtectionError) {
    try SystemRandomSource().fill(UnsafeMutableRawBufferPointer(start: bytes, count: count))
    return errSecSuccess
  } catch {
    return errSecAllocate
  }
}
