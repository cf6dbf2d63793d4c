/// What a change that was not finished has overwritten in a database: the file `-journal` beside it, as SQLite keeps it
/// without a log. Whoever opens the database next puts it back.
///
/// A journal of a change to several databases names another file at its end, which may say that the change was finished
/// after all; that file is not looked for, as no keychain is changed so.
///
/// Source: SQLite, "Database File Format", section 3 (the rollback journal), and `pager_playback` of its `pager.c`.
package struct RollbackJournal {
  package let pageByteCount: Int
  /// How many pages the database had before the change.
  package let pageCount: Int
  /// The content of each page before the change, by its number from 1: where it begins in the journal.
  package let pageStarts: [Int: Int]

  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  private static let headerByteCount = 28

  /// - Returns: `nil` if it begins as no journal does: it is empty, its header was zeroed by a finished change, or it
  ///   is none.
  package init?(_ bytes: [UInt8]) {
    guard let first = Header(bytes, at: 0), DatabasePage.isByteCount(first.pageByteCount) else { return nil }
    pageByteCount = first.pageByteCount
    pageCount = first.pageCount
    var starts: [Int: Int] = [:]
    var place = 0
    // As SQLite does, up to the first record that does not fit: what stands behind it was not synced, and so nothing of
    // it was overwritten.
    sections: while let header = Header(bytes, at: place) {
      place += first.sectorByteCount
      var recordCount = header.recordCount
      while recordCount > 0, place + 8 + pageByteCount <= bytes.count {
        let page = Int(bytes.bigEndian(at: place))
        guard page > 0, page != Self.lockedPage(pageByteCount) else { break sections }
        let content = place + 4..<place + 4 + pageByteCount
        if page <= pageCount, starts[page] == nil {
          guard Self.sum(bytes[content], header.nonce) == bytes.bigEndian(at: content.upperBound) else {
            break sections
          }
          starts[page] = content.lowerBound
        }
        place = content.upperBound + 4
        recordCount -= 1
      }
      place = (place + first.sectorByteCount - 1) / first.sectorByteCount * first.sectorByteCount
    }
    pageStarts = starts
  }

  /// Whether a journal belongs to a finished change: it is empty, or its header was zeroed.
  ///
  /// SQLite checks only the first byte, but zeroes the whole header. If other bytes follow a zero, something else
  /// changed the header. Source: SQLite, `zeroJournalHdr` and `hasHotJournal` in `pager.c`.
  package static func isFinished(_ bytes: [UInt8]) -> Bool { bytes.prefix(headerByteCount).allSatisfy { $0 == 0 } }

  private struct Header {
    let recordCount: Int
    let nonce: UInt32
    let pageCount: Int
    let sectorByteCount: Int
    let pageByteCount: Int

    init?(_ bytes: [UInt8], at place: Int) {
      guard bytes.count - place >= headerByteCount, bytes[place...].starts(with: magic) else { return nil }
      let count = bytes.bigEndian(at: place + 8)
      recordCount = count == UInt32.max ? Int.max : Int(count)
      nonce = bytes.bigEndian(at: place + 12)
      pageCount = Int(bytes.bigEndian(at: place + 16))
      sectorByteCount = Int(bytes.bigEndian(at: place + 20))
      pageByteCount = Int(bytes.bigEndian(at: place + 24))
      guard (32...65536).contains(sectorByteCount), sectorByteCount & (sectorByteCount - 1) == 0 else { return nil }
    }
  }

  /// The page in which SQLite's locks are, which holds nothing.
  private static func lockedPage(_ pageByteCount: Int) -> Int { 0x4000_0000 / pageByteCount + 1 }

  /// Each two-hundredth byte, from the end.
  private static func sum(_ page: ArraySlice<UInt8>, _ nonce: UInt32) -> UInt32 {
    var sum = nonce
    var offset = page.count - 200
    while offset > 0 {
      sum &+= UInt32(page[page.startIndex + offset])
      offset -= 200
    }
    return sum
  }
}
