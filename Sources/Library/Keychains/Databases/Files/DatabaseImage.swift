import Basics
import KeychainFormats

/// A database in memory, with the committed changes of its journal files applied.
struct DatabaseImage {
  let bytes: [UInt8]

  private static let signature = Array("SQLite format 3\0".utf8)
  private static let headerByteCount = 100
  /// The largest accepted size of a database with its log applied, in bytes. A full device's database has some tens of
  /// MiB.
  static let maximumByteCount = 256 << 20

  /// Creates an image of a database file, without its journal files.
  ///
  /// - Throws: `.notADatabase` if the header is not SQLite's; `.databaseOverLimit` if the file is too large.
  init(_ file: [UInt8]) throws(KeyhaulError) {
    guard file.count <= Self.maximumByteCount else { throw Self.overLimit(file.count) }
    guard file.starts(with: Self.signature), file.count >= Self.headerByteCount,
      DatabasePage.isByteCount(Self.pageByteCount(of: file))
    else { throw KeyhaulError(.notADatabase, "it does not begin like an SQLite database") }
    bytes = Self.withoutLog(file)
  }

  private init(applied: [UInt8]) { bytes = Self.withoutLog(applied) }

  var pageByteCount: Int { Self.pageByteCount(of: bytes) }

  /// Returns the image with the committed changes of a write-ahead log.
  func applying(_ log: WriteAheadLog, of logBytes: [UInt8]) throws(KeyhaulError) -> DatabaseImage {
    DatabaseImage(
      applied: try replacingPages(log.pageStarts, of: logBytes, log.pageByteCount, upTo: log.pageCount, "with its log"))
  }

  /// Returns the image as it was before the unfinished change that a rollback journal describes.
  func rollingBack(_ journal: RollbackJournal, of journalBytes: [UInt8]) throws(KeyhaulError) -> DatabaseImage {
    DatabaseImage(
      applied: try replacingPages(
        journal.pageStarts, of: journalBytes, journal.pageByteCount, upTo: journal.pageCount,
        "after its journal is applied"
      ))
  }

  /// Returns the bytes with pages from another file written over them, cut or extended to a page count.
  private func replacingPages(
    _ pageStarts: [Int: Int], of other: [UInt8], _ pageByteCount: Int, upTo pageCount: Int, _ state: String
  ) throws(KeyhaulError) -> [UInt8] {
    let (size, overflow) = pageCount.multipliedReportingOverflow(by: pageByteCount)
    guard !overflow, size <= Self.maximumByteCount else { throw Self.overLimit(size) }
    // Only pages in the other file extend the database. Otherwise a few bytes that name a distant page would request
    // memory for all pages before it.
    let wanted = min(size, (bytes.count / pageByteCount + pageStarts.count) * pageByteCount)
    var pages = bytes
    if pages.count < wanted { pages += [UInt8](repeating: 0, count: wanted - pages.count) }
    for (page, start) in pageStarts where page <= wanted / pageByteCount {
      let offset = (page - 1) * pageByteCount
      pages.replaceSubrange(offset..<offset + pageByteCount, with: other[start..<start + pageByteCount])
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

  /// Returns the file with WAL mode turned off in its header. SQLite cannot open a WAL database from memory.
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
