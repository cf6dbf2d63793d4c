/// Bytes of an item that must not be printed or outlive their last owner: a secret, or a complete decrypted item.
///
/// Shared by reference, so that items can be passed around without copying their secrets, and overwritten when the last
/// reference is released. Keys and passwords use the noncopyable `Secret` instead.
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

/// A growing buffer for bytes that must not outlive their use, such as a list of passwords. Old storage is overwritten.
package struct SensitiveBuffer: ~Copyable {
  private var storage: UnsafeMutableRawBufferPointer
  package private(set) var count = 0

  private static let initialCapacity = 4096

  package init() { storage = SecretArena.items.allocate(Self.initialCapacity) }

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

  /// Appends the UTF-8 of a text.
  package mutating func append(_ text: some StringProtocol) {
    let copied: Void? = text.utf8.withContiguousStorageIfAvailable { append(UnsafeRawBufferPointer($0)) }
    if copied == nil { for byte in text.utf8 { append(byte) } }
  }

  /// Appends a byte repeatedly.
  package mutating func append(_ byte: UInt8, count added: Int) {
    append(count: added) { $0.initializeMemory(as: UInt8.self, repeating: byte) }
  }

  /// Appends `added` bytes; `body` must write all of them.
  package mutating func append(count added: Int, filledBy body: (UnsafeMutableRawBufferPointer) -> Void) {
    reserve(added)
    body(UnsafeMutableRawBufferPointer(rebasing: storage[count..<count + added]))
    count += added
  }

  /// Returns a copy of the bytes. The buffer's own bytes are overwritten when the buffer is destroyed.
  package borrowing func bytes() -> SensitiveBytes {
    SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: storage[..<count]))
  }

  /// Calls a closure with the bytes; the pointer must not escape it.
  package borrowing func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage[..<count]))
  }

  /// Overwrites the bytes and keeps the memory for new ones.
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
