/// The bytes of a property list: in memory, or read where they are looked at.
struct PropertyListBytes {
  let count: Int
  private let held: UnsafeRawBufferPointer
  private let pages: PagedBytes?

  /// The memory must outlive this.
  init(_ bytes: UnsafeRawBufferPointer) {
    count = bytes.count
    held = bytes
    pages = nil
  }

  init(_ pages: PagedBytes) {
    count = pages.count
    held = UnsafeRawBufferPointer(start: nil, count: 0)
    self.pages = pages
  }

  /// A byte. `offset` is below the count.
  subscript(offset: Int) -> UInt8 {
    guard let pages else { return held[offset] }
    return pages[offset]
  }

  /// Lends the bytes of a range, all of which there are.
  func withBytes<Result, Failure: Error>(
    _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard let pages else { return try body(UnsafeRawBufferPointer(rebasing: held[range])) }
    return try range.map { pages[$0] }.withRawBytes(body)
  }

  /// Whether these come first.
  func begins(with start: some Collection<UInt8>, at offset: Int = 0) -> Bool {
    guard start.count <= count - offset else { return false }
    guard let pages else { return held[offset..<(offset + start.count)].elementsEqual(start) }
    return start.enumerated().allSatisfy { pages[offset + $0] == $1 }
  }

  /// The number of so many bytes, the first ones highest, all of which there are.
  func number(at offset: Int, width: Int) -> UInt64 {
    var value: UInt64 = 0
    guard let pages else {
      for index in offset..<(offset + width) { value = value << 8 | UInt64(held[index]) }
      return value
    }
    for index in offset..<(offset + width) { value = value << 8 | UInt64(pages[index]) }
    return value
  }
}

/// Bytes that are not held: a page of them is read where one of its bytes is asked for, and the last ones are kept. For one
/// thread.
///
/// What cannot be read stands there as zeros. Whoever made something of the bytes asks `hasFailed` before it is believed.
package final class PagedBytes {
  /// How many there are.
  package let count: Int
  /// Whether a page could not be read.
  package private(set) var hasFailed = false
  private let read: (Int, UnsafeMutableRawBufferPointer) -> Bool
  private let memory: UnsafeMutableRawBufferPointer
  /// Which page is in each place; a page has one place where it can be.
  private var pages: [Int]

  /// Of a page, in bytes.
  package static let pageByteCount = 16 << 10
  private static let placeCount = 256

  /// - Parameters:
  ///   - count: How many bytes there are.
  ///   - read: Fills the whole buffer with the bytes from an offset on, and says whether it could. They are there.
  package init(count: Int, _ read: @escaping (Int, UnsafeMutableRawBufferPointer) -> Bool) {
    self.count = count
    self.read = read
    let places = min(Self.placeCount, count / Self.pageByteCount + 1)
    memory = .allocate(byteCount: places * Self.pageByteCount, alignment: 16)
    pages = Array(repeating: -1, count: places)
  }

  deinit { memory.deallocate() }

  /// A byte. `offset` is below the count.
  package subscript(offset: Int) -> UInt8 {
    let page = offset / Self.pageByteCount
    let place = page % pages.count
    if pages[place] != page { fill(place, with: page) }
    return memory[place * Self.pageByteCount + offset % Self.pageByteCount]
  }

  private func fill(_ place: Int, with page: Int) {
    let start = page * Self.pageByteCount
    let target = UnsafeMutableRawBufferPointer(
      rebasing: memory[(place * Self.pageByteCount)...].prefix(min(Self.pageByteCount, count - start)))
    pages[place] = page
    guard hasFailed || !read(start, target) else { return }
    hasFailed = true
    target.initializeMemory(as: UInt8.self, repeating: 0)
  }
}
