import Basics
import KeychainFormats

/// A database in memory, with the committed changes of its journal files applied.
struct DatabaseImage {
  let bytes: [UInt8]

  private static let signature = Array("SQLite format 3\0".utf8)
  private static let headerByteCount = 100
  // The offsets of fields in the header. Source: SQLite, "Database File Format", section 1.3.
  private static let pageSizeOffset = 16
  private static let writeVersionOffset = 18
  private static let readVersionOffset = 19
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
    bytes = Self.withoutWALMode(file)
  }

  private init(patched file: [UInt8]) { bytes = Self.withoutWALMode(file) }

  var pageByteCount: Int { Self.pageByteCount(of: bytes) }

  /// Returns the image with the committed changes of a write-ahead log.
  func applying(_ log: WriteAheadLog, of logBytes: [UInt8]) throws(KeyhaulError) -> DatabaseImage {
    DatabaseImage(
      patched: try replacingPages(
        log.pageStarts, of: logBytes, pageByteCount: log.pageByteCount, upTo: log.pageCount, errorPrefix: "with its log"
      ))
  }

  /// Returns the image as it was before the unfinished change that a rollback journal describes.
  func rollingBack(_ journal: RollbackJournal, of journalBytes: [UInt8]) throws(KeyhaulError) -> DatabaseImage {
    DatabaseImage(
      patched: try replacingPages(
        journal.pageStarts, of: journalBytes, pageByteCount: journal.pageByteCount, upTo: journal.pageCount,
        errorPrefix: "after its journal is applied"))
  }

  /// Returns the bytes of the database with pages from a journal file written over them, shortened or extended to a page
  /// count.
  ///
  /// - Parameters:
  ///   - pageStarts: The offset of each page in the journal file, by page number. The first page is 1.
  ///   - journalBytes: The bytes of the journal file.
  ///   - pageByteCount: The size of a page, in bytes.
  ///   - pageCount: The number of pages of the result.
  ///   - errorPrefix: The start of the error message: "with its log".
  private func replacingPages(
    _ pageStarts: [Int: Int], of journalBytes: [UInt8], pageByteCount: Int, upTo pageCount: Int, errorPrefix: String
  ) throws(KeyhaulError) -> [UInt8] {
    let (size, overflow) = pageCount.multipliedReportingOverflow(by: pageByteCount)
    guard !overflow, size <= Self.maximumByteCount else { throw Self.overLimit(size) }
    // Limits growth to the pages that the journal file has. Otherwise a short file that names a distant page could
    // request memory for all pages before it.
    let resultByteCount = min(size, (bytes.count / pageByteCount + pageStarts.count) * pageByteCount)
    var pages = bytes
    if pages.count < resultByteCount { pages += [UInt8](repeating: 0, count: resultByteCount - pages.count) }
    for (page, start) in pageStarts where page <= resultByteCount / pageByteCount {
      let offset = (page - 1) * pageByteCount
      pages.replaceSubrange(offset..<offset + pageByteCount, with: journalBytes[start..<start + pageByteCount])
    }
    pages.removeLast(max(pages.count - resultByteCount, 0))
    guard pages.starts(with: Self.signature), Self.pageByteCount(of: pages) == pageByteCount else {
      throw KeyhaulError(.databaseDamaged, "\(errorPrefix), it does not begin like an SQLite database")
    }
    return pages
  }

  private static func pageByteCount(of file: [UInt8]) -> Int {
    // The number has two bytes, and 1 means 65,536.
    let number = Int(file[pageSizeOffset]) << 8 | Int(file[pageSizeOffset + 1])
    return number == 1 ? 65536 : number
  }

  /// Returns the file with WAL mode turned off in its header. SQLite cannot open a WAL database from memory.
  private static func withoutWALMode(_ file: [UInt8]) -> [UInt8] {
    let rollbackJournal: UInt8 = 1
    var bytes = file
    bytes[writeVersionOffset] = rollbackJournal
    bytes[readVersionOffset] = rollbackJournal
    return bytes
  }

  private static func overLimit(_ count: Int) -> KeyhaulError {
    KeyhaulError(
      .databaseOverLimit,
      "it has \(HumanReadable.bytes(count)); Keyhaul reads at most \(HumanReadable.grouped(maximumByteCount))")
  }
}
