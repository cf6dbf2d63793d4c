/// Bytes of an item that must not be printed or outlive their last owner: a secret, or a complete decrypted item.
///
/// The bytes are shared by reference: items can be passed around without copying their secrets. The bytes are
/// overwritten when the last reference is released. Keys and passwords use the noncopyable `Secret` instead.
public final class SensitiveBytes: Sendable, CustomStringConvertible, CustomReflectable {
  private let memory: SecureMemory

  /// The number of bytes, which is not treated as a secret.
  public var count: Int { memory.count }
  /// Whether there are no bytes.
  public var isEmpty: Bool { count == 0 }

  /// Allocates `count` zeroed bytes and lets `body` fill them. The bytes are also overwritten if `body` throws.
  public init<Failure: Error>(
    count: Int, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    memory = try SecureMemory(count: count, in: .items, filledBy: body)
  }

  /// Creates a copy of bytes. The caller remains responsible for wiping the original.
  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyMemory(from: bytes)
    }
  }

  /// Creates a copy of an array, which is not wiped. For bytes that are not secret yet, and for tests.
  public convenience init(copying bytes: [UInt8]) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: bytes)
    }
  }

  /// Calls a closure with the bytes; the pointer must not escape it.
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(memory.bytes)
  }

  /// Compares the bytes in a time that does not depend on the position of the first difference.
  package func constantTimeEquals(_ other: SensitiveBytes) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for (left, right) in zip(memory.bytes, other.memory.bytes) { difference |= left ^ right }
    return difference == 0
  }

  public var description: String { "<\(count) sensitive bytes>" }
  public var customMirror: Mirror { Mirror(self, children: ["count": count]) }
}
