import Basics

/// The bytes of a property list, in memory or read on demand.
struct PropertyListBytes {
  let count: Int
  private let memory: UnsafeRawBufferPointer
  private let pages: PagedBytes?

  /// Creates bytes in memory, which must outlive this value.
  init(_ bytes: UnsafeRawBufferPointer) {
    count = bytes.count
    memory = bytes
    pages = nil
  }

  init(_ pages: PagedBytes) {
    count = pages.count
    memory = UnsafeRawBufferPointer(start: nil, count: 0)
    self.pages = pages
  }

  /// The byte at an offset, which must be less than the count.
  subscript(offset: Int) -> UInt8 {
    guard let pages else { return memory[offset] }
    return pages[offset]
  }

  /// Calls a closure with the bytes of a range, which must all exist.
  func withBytes<Result, Failure: Error>(
    _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard let pages else { return try body(UnsafeRawBufferPointer(rebasing: memory[range])) }
    return try range.map { pages[$0] }.withRawBytes(body)
  }

  /// Returns whether the given bytes are at an offset.
  func begins(with start: some Collection<UInt8>, at offset: Int = 0) -> Bool {
    guard start.count <= count - offset else { return false }
    guard let pages else { return memory[offset..<(offset + start.count)].elementsEqual(start) }
    return start.enumerated().allSatisfy { pages[offset + $0] == $1 }
  }

  /// Returns a big-endian number of `width` bytes, which must all exist.
  func number(at offset: Int, width: Int) -> UInt64 {
    var value: UInt64 = 0
    guard let pages else {
      for index in offset..<(offset + width) { value = value << 8 | UInt64(memory[index]) }
      return value
    }
    for index in offset..<(offset + width) { value = value << 8 | UInt64(pages[index]) }
    return value
  }
}
