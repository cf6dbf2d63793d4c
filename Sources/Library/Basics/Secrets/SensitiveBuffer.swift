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

  /// Overwrites the bytes, and keeps the memory for bytes that are appended later.
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
