import Basics
import KeychainFormats

/// A database as bytes that SQLite opens without any file: what its log has committed stands in its pages.
struct DatabaseImage {
  let bytes: [UInt8]

  private static let signature = Array("SQLite format 3\0".utf8)
  private static let headerByteCount = 100
  /// The most bytes of a database, its log applied; one of a full device has some tens of MiB.
  static let maximumByteCount = 256 << 20

  /// Takes a database as its file stands.
  init(_ file: [UInt8]) throws(KeyhaulError) {
    guard file.count <= Self.maximumByteCount else { throw Self.overLimit(file.count) }
    guard file.starts(with: Self.signature), file.count >= Self.headerByteCount,
      DatabasePage.isByteCount(Self.pageByteCount(of: file))
    else { throw KeyhaulError(.notADatabase, "it does not begin like an SQLite database") }
    bytes = Self.withoutLog(file)
  }

  private init(applied: [UInt8]) { bytes = Self.withoutLog(applied) }

  var pageByteCount: Int { Self.pageByteCount(of: bytes) }

  /// The same with what a log has committed.
  func applying(_ log: WriteAheadLog, of logBytes: [UInt8]) throws(KeyhaulError) -> DatabaseImage {
    DatabaseImage(
      applied: try putting(log.pageStarts, of: logBytes, log.pageByteCount, upTo: log.pageCount, "with its log"))
  }

  /// The same as it was before the change that a journal takes back.
  func takingBack(_ journal: RollbackJournal, of journalBytes: [UInt8]) throws(KeyhaulError) -> DatabaseImage {
    DatabaseImage(
      applied: try putting(
        journal.pageStarts, of: journalBytes, journal.pageByteCount, upTo: journal.pageCount,
        "after its journal is applied"
      ))
  }

  /// The bytes with pages of another file in their places, and so many pages altogether.
  private func putting(
    _ pageStarts: [Int: Int], of other: [UInt8], _ pageByteCount: Int, upTo pageCount: Int, _ state: String
  ) throws(KeyhaulError) -> [UInt8] {
    let (size, overflow) = pageCount.multipliedReportingOverflow(by: pageByteCount)
    guard !overflow, size <= Self.maximumByteCount else { throw Self.overLimit(size) }
    // Pages are added by the other file alone. What neither holds is missing, and no page of zeros: else a few bytes that name
    // a page far behind would ask for all before it.
    let wanted = min(size, (bytes.count / pageByteCount + pageStarts.count) * pageByteCount)
    var pages = bytes
    if pages.count < wanted { pages += [UInt8](repeating: 0, count: wanted - pages.count) }
    for (page, start) in pageStarts where page <= wanted / pageByteCount {
      let place = (page - 1) * pageByteCount
      pages.replaceSubrange(place..<place + pageByteCount, with: other[start..<start + pageByteCount])
    }
    pages.removeLast(max(pages.count - wanted, 0))
    guard pages.starts(with: Self.signature), Self.pageByteCount(of: pages) == pageByteCount else {
      throw KeyhaulError(.databaseDamaged, "\(state), it does not begin like an SQLite database")
    }
    return pages
  }

  private static func pageByteCount(of file: [UInt8]) -> Int {
    let stored = Int(file[16]) << 8 | Int(file[17])
    return stored == 1 ? 65536 : stored
  }

  /// A database that wants a log beside it cannot be opened from memory; it has none any more.
  private static func withoutLog(_ file: [UInt8]) -> [UInt8] {
    var bytes = file
    bytes[18] = 1
    bytes[19] = 1
    return bytes
  }

  private static func overLimit(_ count: Int) -> KeyhaulError {
    KeyhaulError(
      .databaseOverLimit,
      "it has \(HumanReadable.bytes(count)); Keyhaul reads at most \(HumanReadable.grouped(maximumByteCount))")
  }
}
