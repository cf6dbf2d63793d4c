import Basics
internal import COpenSSL
internal import KeychainFormats

/// Bytes that must not outlive their use: a passcode, a backup password, a class key.
///
/// One owner, no copies, nothing to print; lent for the length of a closure and overwritten at the end.
public struct Secret: ~Copyable, Sendable {
  private let memory: WipedMemory

  /// The number of bytes, which is not treated as a secret.
  public var count: Int { memory.count }
  /// True where there are no bytes, as for the password of a backup that has none.
  public var isEmpty: Bool { count == 0 }

  /// Allocates `count` bytes, zeroed, and lets `body` fill them. They are overwritten too where `body` throws.
  public init<Failure: Error>(
    count: Int, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    memory = try WipedMemory(count: count, in: .keys, filledBy: body)
  }

  /// Creates a copy of bytes that stay with their owner, who has to overwrite them.
  public init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  /// The array stays with the caller, who has to overwrite it.
  public init(copying bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// The UTF-8 bytes of a password, as they are: no normalization, nothing trimmed.
  public init(utf8 text: String) { self.init(copying: text.utf8) }

  /// `count` bytes from `random`.
  public init(count: Int, from random: some RandomSource) throws(DataProtectionError) {
    try self.init(count: count) { (buffer) throws(DataProtectionError) in try random.fill(buffer) }
  }

  /// The passcode of a device without one, the password of a backup without one.
  public static var empty: Secret { Secret(count: 0) { _ in } }

  /// Lends the bytes for the length of the closure; the pointer must not leave it.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(memory.bytes)
  }

  /// A second owner of the same bytes.
  public borrowing func copy() -> Secret { Secret(copying: memory.bytes) }

  /// Whether both hold the same bytes. The time taken depends on the lengths alone.
  public borrowing func matches(_ other: borrowing Secret) -> Bool {
    constantTimeEquals(memory.bytes, other.memory.bytes)
  }

  /// Whether there are no bytes but zeros. HMAC pads its key with zeros, so to a key derivation this is the empty secret.
  var isAllZero: Bool { memory.bytes.reduce(0, |) == 0 }
}

/// Compares without revealing in its duration where the first difference is.
func constantTimeEquals(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  guard let first = left.baseAddress, let second = right.baseAddress, left.count > 0 else { return true }
  return CRYPTO_memcmp(first, second, left.count) == 0
}
