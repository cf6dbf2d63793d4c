import Basics
import KeychainFormats

/// Pages that replace those of a stored database: committed pages of its log, or original pages from its journal.
struct ReplacedPages: Sendable {
  /// The content of the log or journal.
  private let bytes: [UInt8]
  /// The offset of each page in the log or journal, by page number from 1.
  private let pageStarts: [Int: Int]
  private let pageCount: Int
  let pageByteCount: Int

  init(_ log: WriteAheadLog, of bytes: [UInt8]) {
    self.bytes = bytes
    (pageStarts, pageCount, pageByteCount) = (log.pageStarts, log.pageCount, log.pageByteCount)
  }

  init(_ journal: RollbackJournal, of bytes: [UInt8]) {
    self.bytes = bytes
    (pageStarts, pageCount, pageByteCount) = (journal.pageStarts, journal.pageCount, journal.pageByteCount)
  }

  /// Returns the size of the database with these pages. Pages that neither file contains are not counted, because a
  /// small log could claim a large database.
  func databaseByteCount(over storedByteCount: Int) -> Int {
    min(pageCount, storedByteCount / pageByteCount + pageStarts.count) * pageByteCount
  }

  /// Copies the pages over those that were read.
  ///
  /// - Parameters:
  ///   - buffer: A section of the database.
  ///   - offset: The offset of the section.
  func copy(into buffer: UnsafeMutableRawBufferPointer, from offset: Int) {
    var position = offset
    while position < offset + buffer.count {
      let (pageIndex, offsetInPage) = position.quotientAndRemainder(dividingBy: pageByteCount)
      let count = min(pageByteCount - offsetInPage, offset + buffer.count - position)
      if let start = pageStarts[pageIndex + 1] {
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[(position - offset)...].prefix(count))
        bytes.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[(start + offsetInPage)...].prefix(count))) }
      }
      position += count
    }
  }

  /// Returns whether the stored database already contains all of these pages, as after a checkpoint.
  func areStored(in stored: SpooledData) throws(KeyhaulError) -> Bool {
    guard pageCount * pageByteCount == stored.byteCount else { return false }
    for (pageNumber, start) in pageStarts where pageNumber <= pageCount {
      let content = try [UInt8](count: pageByteCount) { (buffer) throws(KeyhaulError) in
        try stored.read(at: (pageNumber - 1) * pageByteCount, into: buffer)
      }
      guard content.elementsEqual(bytes[start..<start + pageByteCount]) else { return false }
    }
    return true
  }
}
