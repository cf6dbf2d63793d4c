/// The original pages that an unfinished transaction has overwritten in a database: the file `-journal` that SQLite
/// writes without a write-ahead log. The next program that opens the database restores them.
///
/// The journal of a transaction over several databases names another file at its end, which may show that the
/// transaction was finished. That file is ignored, because keychains are not changed in this way.
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
    pageByteCount = firstHeader.pageByteCount
    pageCount = firstHeader.pageCount
    var starts: [Int: Int] = [:]
    var offset = 0
    // Like SQLite, stops at the first invalid record: later ones were not synced, so their pages were not overwritten
    // yet.
    sections: while let header = Header(bytes, at: offset) {
      offset += firstHeader.sectorByteCount
      var recordCount = header.recordCount
      while recordCount > 0, offset + 8 + pageByteCount <= bytes.count {
        let page = Int(bytes.bigEndian(at: offset))
        guard page > 0, page != Self.lockedPage(pageByteCount) else { break sections }
        let content = offset + 4..<offset + 4 + pageByteCount
        if page <= pageCount, starts[page] == nil {
          guard Self.checksum(bytes[content], header.nonce) == bytes.bigEndian(at: content.upperBound) else {
            break sections
          }
          starts[page] = content.lowerBound
        }
        offset = content.upperBound + 4
        recordCount -= 1
      }
      // The next header is at the start of a sector.
      let sectorByteCount = firstHeader.sectorByteCount
      offset = (offset + sectorByteCount - 1) / sectorByteCount * sectorByteCount
    }
    pageStarts = starts
  }

  /// Returns whether a journal belongs to a finished transaction: it is empty, or its header was zeroed.
  ///
  /// SQLite checks only the first byte, but zeroes the whole header. If other bytes follow a zero, another program
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
      recordCount = count == UInt32.max ? Int.max : Int(count)
      nonce = bytes.bigEndian(at: offset + 12)
      pageCount = Int(bytes.bigEndian(at: offset + 16))
      sectorByteCount = Int(bytes.bigEndian(at: offset + 20))
      pageByteCount = Int(bytes.bigEndian(at: offset + 24))
      guard (32...65536).contains(sectorByteCount), sectorByteCount & (sectorByteCount - 1) == 0 else { return nil }
    }
  }

  /// Returns the number of the page with SQLite's locks, which contains nothing else.
  private static func lockedPage(_ pageByteCount: Int) -> Int { 0x4000_0000 / pageByteCount + 1 }

  /// Returns the checksum of a page: the sum of every 200th byte, from the end.
  private static func checksum(_ page: ArraySlice<UInt8>, _ nonce: UInt32) -> UInt32 {
    var sum = nonce
    var offset = page.count - 200
    while offset > 0 {
      sum &+= UInt32(page[page.startIndex + offset])
      offset -= 200
    }
    return sum
  }
}
