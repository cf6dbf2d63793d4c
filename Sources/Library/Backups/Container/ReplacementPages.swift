import Basics
import KeychainFormats

/// The pages that replace pages of a stored database: the committed pages of its write-ahead log, or the original pages
/// in its rollback journal.
struct ReplacementPages: Sendable {
  /// The content of the log or journal.
  private let bytes: [UInt8]
  /// The offset in `bytes` of each page's content, by the page's number in the database. The first page is 1.
  private let pageStarts: [Int: Int]
  /// The number of pages of the database with the replacements, as the log or journal states it.
  private let pageCount: Int
  let pageByteCount: Int

  /// Creates the committed pages of a log.
  init(_ log: WriteAheadLog, in bytes: [UInt8]) {
    self.bytes = bytes
    (pageStarts, pageCount, pageByteCount) = (log.pageStarts, log.pageCount, log.pageByteCount)
  }

  /// Creates the original pages in a journal.
  init(_ journal: RollbackJournal, in bytes: [UInt8]) {
    self.bytes = bytes
    (pageStarts, pageCount, pageByteCount) = (journal.pageStarts, journal.pageCount, journal.pageByteCount)
  }

  /// Returns the size in bytes of the database with the replacements.
  ///
  /// The stated page count is limited to the pages that both files can contain together. Otherwise, a small log could
  /// claim a huge database.
  ///
  /// - Parameter storedByteCount: The size of the stored database in bytes.
  func databaseByteCount(storedByteCount: Int) -> Int {
    min(pageCount, storedByteCount / pageByteCount + pageStarts.count) * pageByteCount
  }

  /// Overwrites the replaced pages in a section of the stored database.
  ///
  /// - Parameters:
  ///   - section: The bytes of the section. They may start and end inside a page.
  ///   - offset: The offset of the section in the database.
  func overwrite(_ section: UnsafeMutableRawBufferPointer, at offset: Int) {
    var position = offset
    while position < offset + section.count {
      let (pageIndex, offsetInPage) = position.quotientAndRemainder(dividingBy: pageByteCount)
      let count = min(pageByteCount - offsetInPage, offset + section.count - position)
      if let start = pageStarts[pageIndex + 1] {
        let target = UnsafeMutableRawBufferPointer(rebasing: section[(position - offset)...].prefix(count))
        bytes.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[(start + offsetInPage)...].prefix(count))) }
      }
      position += count
    }
  }

  /// Returns whether a stored database already has the size and the content that the replacements result in.
  ///
  /// This is the case after a checkpoint, which copies the pages of a log to the database but may keep the log.
  func areStored(in database: SpooledData) throws(KeyhaulError) -> Bool {
    guard pageCount * pageByteCount == database.byteCount else { return false }
    // A log can contain pages that a later change removed from the end of the database.
    for (pageNumber, start) in pageStarts where pageNumber <= pageCount {
      let content = try [UInt8](count: pageByteCount) { (buffer) throws(KeyhaulError) in
        try database.read(at: (pageNumber - 1) * pageByteCount, into: buffer)
      }
      guard content.elementsEqual(bytes[start..<start + pageByteCount]) else { return false }
    }
    return true
  }
}
