import Basics
import KeychainFormats

/// Pages that stand for those of a stored database: what its log has committed, or what its journal takes back.
struct ReplacedPages: Sendable {
  /// Of the log or the journal.
  private let bytes: [UInt8]
  /// Where each page begins in it, by its number from 1.
  private let starts: [Int: Int]
  private let pageCount: Int
  let pageByteCount: Int

  init(_ log: WriteAheadLog, of bytes: [UInt8]) {
    self.bytes = bytes
    (starts, pageCount, pageByteCount) = (log.pageStarts, log.pageCount, log.pageByteCount)
  }

  init(_ journal: RollbackJournal, of bytes: [UInt8]) {
    self.bytes = bytes
    (starts, pageCount, pageByteCount) = (journal.pageStarts, journal.pageCount, journal.pageByteCount)
  }

  /// How many bytes the database has with them. Pages that neither file holds are missing, and none of zeros: else a few
  /// bytes that name a page far behind would ask for all before it.
  func databaseByteCount(over storedByteCount: Int) -> Int {
    min(pageCount, storedByteCount / pageByteCount + starts.count) * pageByteCount
  }

  /// Puts the pages over those that were read.
  ///
  /// - Parameters:
  ///   - buffer: A part of the database.
  ///   - offset: Where that part begins in it.
  func copy(into buffer: UnsafeMutableRawBufferPointer, from offset: Int) {
    var place = offset
    while place < offset + buffer.count {
      let (page, inside) = place.quotientAndRemainder(dividingBy: pageByteCount)
      let count = min(pageByteCount - inside, offset + buffer.count - place)
      if let start = starts[page + 1] {
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[(place - offset)...].prefix(count))
        bytes.withUnsafeBytes { target.copyMemory(from: .init(rebasing: $0[(start + inside)...].prefix(count))) }
      }
      place += count
    }
  }

  /// Whether the stored database has all of them already, as it does once a log was written back to it.
  func areStored(in stored: StoredBytes) throws(BackupArchiveError) -> Bool {
    guard pageCount * pageByteCount == stored.byteCount else { return false }
    for (page, start) in starts where page <= pageCount {
      let content = try [UInt8](count: pageByteCount) { (buffer) throws(BackupArchiveError) in
        try stored.read(at: (page - 1) * pageByteCount, into: buffer)
      }
      guard content.elementsEqual(bytes[start..<start + pageByteCount]) else { return false }
    }
    return true
  }
}
