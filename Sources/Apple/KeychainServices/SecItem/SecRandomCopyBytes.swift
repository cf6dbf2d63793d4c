// swift-format-ignore-file: AlwaysUseLowerCamelCase

import KeychainCrypto

/// A source of random bytes; there is one, the system's.
public final class SecRandomRef: Sendable {
  fileprivate init() {}
}

/// The system's source of random bytes.
public let kSecRandomDefault: SecRandomRef! = SecRandomRef()

/// Fills memory with random bytes of OpenSSL's generator.
///
/// - Parameters:
///   - source: Not used: there is one source.
///   - count: How many bytes.
///   - bytes: Writable for that many.
/// - Returns: `errSecSuccess`; `errSecParam` for a negative count, `errSecAllocate` where the generator gives nothing, and
///   then nothing of the memory is random.
public func SecRandomCopyBytes(_ source: SecRandomRef?, _ count: Int, _ bytes: UnsafeMutableRawPointer) -> Int32 {
  guard count >= 0 else { return errSecParam }
  do throws(DataProtectionError) {
    try SystemRandomSource().fill(UnsafeMutableRawBufferPointer(start: bytes, count: count))
    return errSecSuccess
  } catch {
    return errSecAllocate
  }
}
