/// The original pages that an unfinished transaction has overwritten in a database. They are in the file `-journal`,
/// which SQLite writes if the database has no write-ahead log. The next program that opens the database restores the
/// pages.
///
/// A journal consists of sections, each at the start of a sector. All numbers are big-endian and have four bytes:
///
/// ```
/// section  magic (8 bytes), record count, nonce, page count, sector size, page size; from the next sector on: records
/// record   page number, original content of the page, checksum of the content
/// ```
///
/// If a transaction changes several databases, the end of its journal names another file, which may show that the
/// transaction was finished. This file is ignored, because keychains are not changed in this way.
///
/// Source: SQLite, "Database File Format", section 3 (the rollback journal), and `pager_playback` of its `pager.c`.
package struct RollbackJournal {
  package let pageByteCount: Int
  /// The number of pages that the database had before the transaction.
  package let pageCount: Int
  /// The offset in the journal of each page's original content, by the page's number from 1.
  package let pageStarts: [Int: Int]

  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  private static let headerByteCount = 28

  /// Reads a journal.
  ///
  /// - Returns: `nil` if the bytes do not start like a journal: the file is empty, a finished transaction has zeroed
  ///   its header, or it is not a journal.
  package init?(_ bytes: [UInt8]) {
    guard let firstHeader = Header(bytes, at: 0), DatabasePage.isByteCount(firstHeader.pageByteCount) else {
      return nil
    }
    var reader = SectionReader(bytes, firstHeader)
    reader.readSections()
    pageByteCount = firstHeader.pageByteCount
    pageCount = firstHeader.pageCount
    pageStarts = reader.pageStarts
  }

  /// Returns whether a journal belongs to a finished transaction: it is empty, or its header was zeroed.
  ///
  /// SQLite checks only the first byte, but zeroes the complete header. If other bytes follow a zero, another program
  /// changed the header. Source: SQLite, `zeroJournalHdr` and `hasHotJournal` in `pager.c`.
  package static func isFinished(_ bytes: [UInt8]) -> Bool { bytes.prefix(headerByteCount).allSatisfy { $0 == 0 } }

  private struct Header {
    let recordCount: Int
    let nonce: UInt32
    let pageCount: Int
    let sectorByteCount: Int
    let pageByteCount: Int

    init?(_ bytes: [UInt8], at offset: Int) {
      guard bytes.count - offset >= headerByteCount, bytes[offset...].starts(with: magic) else { return nil }
      let count = bytes.bigEndian(at: offset + 8)
      // The largest number means that records fill the rest of the file.
      recordCount = count == UInt32.max ? Int.max : Int(count)
      nonce = bytes.bigEndian(at: offset + 12)
      pageCount = Int(bytes.bigEndian(at: offset + 16))
      sectorByteCount = Int(bytes.bigEndian(at: offset + 20))
      pageByteCount = Int(bytes.bigEndian(at: offset + 24))
      // SQLite accepts only powers of two in this range.
      guard (32...65536).contains(sectorByteCount), sectorByteCount & (sectorByteCount - 1) == 0 else { return nil }
    }
  }

  /// Reads the records of all sections. The first header states the sizes of pages and sectors for the complete journal.
  private struct SectionReader {
    private(set) var pageStarts: [Int: Int] = [:]
    private let bytes: [UInt8]
    private let firstHeader: Header

    private static let numberByteCount = 4

    init(_ bytes: [UInt8], _ firstHeader: Header) {
      self.bytes = bytes
      self.firstHeader = firstHeader
    }

    private var recordByteCount: Int { Self.numberByteCount + firstHeader.pageByteCount + Self.numberByteCount }

    /// Reads the sections up to the first invalid record, like SQLite. Later records were not synced, so their pages
    /// were not overwritten yet.
    mutating func readSections() {
      let sectorByteCount = firstHeader.sectorByteCount
      var offset = 0
      while let header = Header(bytes, at: offset) {
        guard let end = readRecords(of: header, from: offset + sectorByteCount) else { return }
        offset = (end + sectorByteCount - 1) / sectorByteCount * sectorByteCount
      }
    }

    /// Reads the records of a section.
    ///
    /// - Returns: The offset of the end of the records, or `nil` if one is invalid.
    private mutating func readRecords(of header: Header, from start: Int) -> Int? {
      var offset = start
      var remainingCount = header.recordCount
      while remainingCount > 0, offset + recordByteCount <= bytes.count {
        guard readRecord(at: offset, nonce: header.nonce) else { return nil }
        offset += recordByteCount
        remainingCount -= 1
      }
      return offset
    }

    /// Reads a record. A page that was added by the transaction, or that an earlier record contains, is skipped.
    ///
    /// - Returns: Whether the record is valid.
    private mutating func readRecord(at offset: Int, nonce: UInt32) -> Bool {
      let page = Int(bytes.bigEndian(at: offset))
      guard page > 0, page != RollbackJournal.lockPage(firstHeader.pageByteCount) else { return false }
      guard page <= firstHeader.pageCount, pageStarts[page] == nil else { return true }
      let start = offset + Self.numberByteCount
      let end = start + firstHeader.pageByteCount
      guard RollbackJournal.checksum(bytes[start..<end], nonce) == bytes.bigEndian(at: end) else { return false }
      pageStarts[page] = start
      return true
    }
  }

  /// Returns the number of the page with SQLite's locks, which contains nothing else. It begins at 1 GiB.
  private static func lockPage(_ pageByteCount: Int) -> Int { 0x4000_0000 / pageByteCount + 1 }

  /// Returns the checksum of a page: the nonce plus every 200th byte, counted from the end.
  private static func checksum(_ page: ArraySlice<UInt8>, _ nonce: UInt32) -> UInt32 {
    let interval = 200
    var sum = nonce
    var offset = page.count - interval
    while offset > 0 {
      sum &+= UInt32(page[page.startIndex + offset])
      offset -= interval
    }
    return sum
  }
}
