import Basics
internal import COpenSSL
internal import KeychainFormats

/// Bytes that must not outlive their use: a passcode, a backup password, a class key.
///
/// It has one owner, is never printed or implicitly copied, is accessible only in a closure, and is overwritten when it
/// is destroyed.
public struct Secret: ~Copyable, Sendable {
  private let memory: SecureMemory

  /// The number of bytes, which is not treated as a secret.
  public var count: Int { memory.count }
  /// Whether there are no bytes, as in the password of a backup without one.
  public var isEmpty: Bool { count == 0 }

  /// Allocates `count` zeroed bytes and lets `body` fill them. The bytes are also overwritten if `body` throws.
  public init<Failure: Error>(
    count: Int, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    memory = try SecureMemory(count: count, in: .keys, filledBy: body)
  }

  /// Creates a copy of bytes. The caller remains responsible for overwriting the original.
  public init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  /// Creates a copy of a collection. The caller remains responsible for overwriting the original.
  public init(copying bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// Creates a secret from the UTF-8 bytes of a password, without normalization or trimming.
  public init(utf8 text: String) { self.init(copying: text.utf8) }

  /// Creates a secret of `count` random bytes.
  package init(count: Int, from random: some RandomSource) throws(DataProtectionError) {
    try self.init(count: count) { (buffer) throws(DataProtectionError) in try random.fill(buffer) }
  }

  /// A secret without bytes, which stands for a missing passcode or password.
  public static var empty: Secret { Secret(count: 0) { _ in } }

  /// Calls a closure with the bytes; the pointer must not escape it.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(memory.bytes)
  }

  /// Returns a second secret with a copy of the bytes.
  public borrowing func copy() -> Secret { Secret(copying: memory.bytes) }

  /// Returns whether both secrets have the same bytes. The time depends only on their lengths.
  public borrowing func matches(_ other: borrowing Secret) -> Bool {
    constantTimeEquals(memory.bytes, other.memory.bytes)
  }

  /// Whether all bytes are zero. HMAC pads its key with zeros, so for a key derivation this equals the empty secret.
  var isAllZero: Bool { memory.bytes.reduce(0, |) == 0 }
}

/// A secret that several owners share by reference.
package final class SecretBox: Sendable {
  package let secret: Secret

  package init(_ secret: consuming Secret) { self.secret = secret }
}

/// Compares bytes in a time that does not depend on the position of the first difference.
func constantTimeEquals(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  guard let first = left.baseAddress, let second = right.baseAddress, left.count > 0 else { return true }
  return CRYPTO_memcmp(first, second, left.count) == 0
}
