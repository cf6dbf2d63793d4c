/// Bytes that are read from a file on demand, page by page, with a cache of recent pages. Only one thread may use them.
///
/// Bytes that cannot be read appear as zeros. The caller must check `hasFailed` before it uses any result.
package final class PagedBytes {
  /// The number of bytes.
  package let count: Int
  /// Whether reading a page failed.
  package private(set) var hasFailed = false
  private let read: (_ offset: Int, _ target: UnsafeMutableRawBufferPointer) -> Bool
  private let memory: UnsafeMutableRawBufferPointer
  /// The page in each slot of the cache; a page has only one possible slot.
  private var pages: [Int]

  /// The size of a page, in bytes.
  package static let pageByteCount = 16 << 10
  private static let maximumSlotCount = 256

  /// Creates the bytes of a file.
  ///
  /// - Parameters:
  ///   - count: The number of bytes.
  ///   - read: Fills the target with the bytes from an offset, which all exist. Returns whether it succeeded.
  package init(count: Int, _ read: @escaping (_ offset: Int, _ target: UnsafeMutableRawBufferPointer) -> Bool) {
    self.count = count
    self.read = read
    let slotCount = min(Self.maximumSlotCount, count / Self.pageByteCount + 1)
    memory = .allocate(byteCount: slotCount * Self.pageByteCount, alignment: 16)
    pages = Array(repeating: -1, count: slotCount)
  }

  deinit { memory.deallocate() }

  /// The byte at an offset, which must be less than the count.
  package subscript(offset: Int) -> UInt8 {
    let page = offset / Self.pageByteCount
    let slot = page % pages.count
    if pages[slot] != page { fill(slot, with: page) }
    return memory[slot * Self.pageByteCount + offset % Self.pageByteCount]
  }

  private func fill(_ slot: Int, with page: Int) {
    let start = page * Self.pageByteCount
    let target = UnsafeMutableRawBufferPointer(
      rebasing: memory[(slot * Self.pageByteCount)...].prefix(min(Self.pageByteCount, count - start)))
    pages[slot] = page
    // After the first failure, nothing more is read.
    guard hasFailed || !read(start, target) else { return }
    hasFailed = true
    target.initializeMemory(as: UInt8.self, repeating: 0)
  }
}
