import Basics

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
