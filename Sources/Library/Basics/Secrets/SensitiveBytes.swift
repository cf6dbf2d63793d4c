/// Bytes of an item that must not be printed and do not outlive their last holder: a secret, or a whole decrypted item.
///
/// Shared by reference, so that an item can be handed around without copying its secret; overwritten when the last
/// reference goes. Keys and passwords use the non-copyable `Secret` of DataProtection instead.
public final class SensitiveBytes: Sendable, CustomStringConvertible, CustomReflectable {
  private let memory: WipedMemory

  /// The number of bytes, which is not treated as a secret.
  public var count: Int { memory.count }
  /// True where there are no bytes.
  public var isEmpty: Bool { count == 0 }

  /// Allocates `count` bytes, zeroed, and lets `body` fill them. The bytes are wiped too where `body` throws.
  public init<Failure: Error>(
    count: Int, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    memory = try WipedMemory(count: count, in: .items, filledBy: body)
  }

  /// Creates a copy of bytes that stay with their owner, who wipes them.
  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyMemory(from: bytes)
    }
  }

  /// Creates a copy of an array. The array itself is not wiped: take it for bytes that are no secret yet, or in tests.
  public convenience init(copying bytes: [UInt8]) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: bytes)
    }
  }

  /// Lends the bytes for the length of the closure; the pointer must not leave it.
  public func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(memory.bytes)
  }

  /// Compares without revealing in its duration where the first difference is.
  public func constantTimeEquals(_ other: SensitiveBytes) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for (left, right) in zip(memory.bytes, other.memory.bytes) { difference |= left ^ right }
    return difference == 0
  }

  public var description: String { "<\(count) sensitive bytes>" }
  public var customMirror: Mirror { Mirror(self, children: ["count": count]) }
}

/// Collects bytes that must not outlive their use, such as a list of passwords. What it outgrows is overwritten.
package struct SensitiveBuffer: ~Copyable {
  private var storage: UnsafeMutableRawBufferPointer
  package private(set) var count = 0

  private static let firstCapacity = 4096

  package init() { storage = SecretArena.items.allocate(Self.firstCapacity) }

  deinit { SecretArena.items.release(storage) }

  package mutating func append(_ byte: UInt8) {
    reserve(1)
    storage[count] = byte
    count += 1
  }

  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    reserve(bytes.count)
    UnsafeMutableRawBufferPointer(rebasing: storage[count...]).copyMemory(from: bytes)
    count += bytes.count
  }

  /// The text's UTF-8.
  package mutating func append(_ text: some StringProtocol) {
    let copied: Void? = text.utf8.withContiguousStorageIfAvailable { append(UnsafeRawBufferPointer($0)) }
    if copied == nil { for byte in text.utf8 { append(byte) } }
  }

  /// So many times the same byte.
  package mutating func append(_ byte: UInt8, count added: Int) {
    append(count: added) { $0.initializeMemory(as: UInt8.self, repeating: byte) }
  }

  /// So many bytes, all of which `body` writes.
  package mutating func append(count added: Int, filledBy body: (UnsafeMutableRawBufferPointer) -> Void) {
    reserve(added)
    body(UnsafeMutableRawBufferPointer(rebasing: storage[count..<count + added]))
    count += added
  }

  /// A second owner of what was collected; the buffer's own bytes are overwritten with it.
  package borrowing func bytes() -> SensitiveBytes {
    SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: storage[..<count]))
  }

  /// Lends what was collected for the length of the closure.
  package borrowing func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage[..<count]))
  }

  /// Overwrites what was collected; the memory is used again.
  package mutating func removeAll() {
    wipe(UnsafeMutableRawBufferPointer(rebasing: storage[..<count]))
    count = 0
  }

  private mutating func reserve(_ added: Int) {
    guard storage.count - count < added else { return }
    let larger = SecretArena.items.allocate(max(storage.count * 2, count + added))
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[..<count]))
    SecretArena.items.release(storage)
    storage = larger
  }
}
