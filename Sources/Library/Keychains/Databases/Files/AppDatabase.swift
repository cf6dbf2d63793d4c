package import Basics
import KeychainFormats

/// An SQLite database of an app, read from the bytes of its file and of its log. SQLite runs no code that the
/// database defines.
package struct AppDatabase {
  private let connection: KeychainConnection

  /// The maximum number of bytes of a database, and of its log.
  package static let maximumByteCount = 64 << 20

  /// Reads a database.
  ///
  /// - Parameters:
  ///   - file: The contents of the file.
  ///   - log: The contents of the file `-wal` beside it; empty if there is none. A log of another database is not
  ///     applied.
  /// - Throws: `.notADatabase`, `.databaseDamaged`, `.databaseOverLimit`, or `.databaseFailed` if SQLite does not work.
  package init(file: [UInt8], log: [UInt8] = []) throws(KeyhaulError) {
    guard file.count <= Self.maximumByteCount, log.count <= Self.maximumByteCount else {
      throw KeyhaulError(
        .databaseOverLimit, "it has more than \(HumanReadable.grouped(Int64(Self.maximumByteCount))) bytes")
    }
    let image = try DatabaseImage(file)
    if let pages = WriteAheadLog(log), pages.pageCount > 0, pages.pageByteCount == image.pageByteCount,
      let merged = try? KeychainConnection(image.applying(pages, of: log)), (try? merged.isIntact()) == true
    {
      connection = merged
    } else {
      connection = try KeychainConnection(image)
    }
  }

  /// Returns the columns of a table; `nil` if there is no such table, or if it is a view.
  ///
  /// - Throws: `.databaseDamaged` if a column is computed.
  package func columns(of table: String) throws(KeyhaulError) -> Set<String>? { try connection.columns(of: table) }

  /// Runs a query and calls a closure with each row. The values of a row are valid until the closure returns.
  package func forEachRow(
    _ sql: String, _ body: (borrowing UntrustedRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try connection.forEachRow(sql, [], body)
  }
}
