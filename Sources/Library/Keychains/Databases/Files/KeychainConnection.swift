import Basics
import KeychainFormats

/// A connection to a keychain database that another program wrote.
typealias KeychainConnection = UntrustedDatabase<KeyhaulError>

/// The result of SQLite's check of a database's indexes.
package enum DatabaseIndexState: Sendable, Hashable {
  /// Each index lists every row of its table and no other row.
  case sound
  /// An index lacks a row of its table or lists another row, or checking it takes too long.
  case damaged
  /// The indexes were not checked: the pages are damaged, or an index has an expression, which is code in the file.
  case unchecked
}

extension UntrustedDatabase<KeyhaulError> {
  /// Opens a database in memory for reading.
  convenience init(_ image: DatabaseImage) throws(KeyhaulError) {
    try self.init(reading: ImageContent(image), limits: .keychain) { KeyhaulError(reading: $0) }
  }

  /// Opens an existing file for changes and begins a transaction.
  ///
  /// - Throws: `.databaseBusy` if another process has it open, even only for reading; `.databaseNotWritable`.
  convenience init(path: String) throws(KeyhaulError) {
    try self.init(changing: path, limits: .keychain) { KeyhaulError(changing: $0) }
  }

  /// Whether SQLite finds no fault in the pages. Indexes are not compared with their tables.
  func isIntact() throws(KeyhaulError) -> Bool {
    var isIntact = false
    try forEachRow("PRAGMA quick_check(1)") { row in isIntact = row.text(0) == "ok" }
    return isIntact
  }

  /// Runs SQLite's full check: each index has an entry for every row of its table and no other entry, and each key
  /// occurs once. If the check exceeds the time limit, the indexes count as damaged.
  ///
  /// - Parameter limit: The maximum CPU time, in nanoseconds; by default many times what a device's database needs.
  func indexState(within limit: Int64? = nil) throws(KeyhaulError) -> DatabaseIndexState {
    do throws(KeyhaulError) {
      let state = try withTimeLimit(limit) { () throws(KeyhaulError) -> DatabaseIndexState in
        if try hasComputedIndex() { return .unchecked }
        return try integrityFault() == nil ? .sound : .damaged
      }
      return state ?? .damaged
    } catch {
      guard error.code == .databaseDamaged else { throw error }
      return .damaged
    }
  }

  /// Whether an index has a computed column or a condition. That is code in the database, and a check of the index
  /// would run it.
  private func hasComputedIndex() throws(KeyhaulError) -> Bool {
    var isComputed = false
    // SQLite gives a computed column of an index the number -2.
    try forEachRow(
      "SELECT 1 FROM (SELECT DISTINCT tbl_name FROM main.sqlite_schema) AS item,"
        + " pragma_index_list(item.tbl_name) AS listed WHERE listed.partial"
        + " OR EXISTS (SELECT 1 FROM pragma_index_xinfo(listed.name) WHERE cid = -2) LIMIT 1"
    ) { _ in isComputed = true }
    return isComputed
  }

  /// Returns the columns of a table that has its own pages and no computed columns; `nil` if it is a view, or if there
  /// is no such table.
  func columns(of table: String) throws(KeyhaulError) -> Set<String>? {
    var isTable = false
    try forEachRow(
      "SELECT type = 'table' AND typeof(rootpage) = 'integer' AND rootpage > 0 FROM main.sqlite_schema"
        + " WHERE name = '\(table)' COLLATE NOCASE"
    ) { row in isTable = row.integer(0) == 1 }
    guard isTable else { return nil }
    var names: Set<String> = []
    var hasComputedColumn = false
    try forEachRow("PRAGMA main.table_xinfo(\(table))") { row in
      if let name = row.text(1) { names.insert(name) }
      // Column 6 is `hidden`, which is 0 for an ordinary column.
      if row.integer(6) != 0 { hasComputedColumn = true }
    }
    guard !hasComputedColumn else { throw KeyhaulError(.databaseDamaged, "a column of its \(table) table is computed") }
    return names
  }

  /// Commits the changes and merges the log into the file.
  ///
  /// - Throws: An error of stage `afterCommit` if SQLite has committed the changes but cannot merge the log. After any
  ///   other error, only the file shows whether the changes were made, because SQLite also reports a failed sync after
  ///   it has emptied the journal.
  func commit() throws(KeyhaulError) {
    try run("COMMIT")
    do throws(KeyhaulError) {
      try mergeLog()
    } catch {
      throw error.with(stage: .afterCommit)
    }
  }

  /// Ends the transaction, merges the log into the file and removes it.
  ///
  /// - Throws: `.databaseBusy` if SQLite keeps the log.
  func removeLog() throws(KeyhaulError) {
    do throws(KeyhaulError) { try commit() } catch { throw error.with(stage: .beforeCommit) }
    var mode: String?
    try forEachRow("PRAGMA journal_mode = DELETE") { row in mode = row.text(0) }
    guard mode == "delete" else { throw KeyhaulError(.databaseBusy, "its log is in use") }
  }

  /// Whether the database has the content of an image, regardless of the log setting in the file's header.
  ///
  /// - Throws: `.databaseFailed` if there is not enough memory for a copy of the database.
  func hasContent(of image: [UInt8]) throws(KeyhaulError) -> Bool {
    let isEqual = withImage { bytes in
      image.withUnsafeBytes { image in
        // A file may be longer than its header states. Bytes 18 and 19 of the header state whether it has a log.
        bytes.count <= image.count && bytes.prefix(18).elementsEqual(image.prefix(18))
          && bytes.dropFirst(20).elementsEqual(image.prefix(bytes.count).dropFirst(20))
      }
    }
    guard let isEqual else { throw KeyhaulError(.databaseFailed, "there is not enough memory to look at it") }
    return isEqual
  }
}

/// The content of a database image, for SQLite to read.
private final class ImageContent: DatabaseContent {
  private let bytes: [UInt8]
  let isRefused = false

  init(_ image: DatabaseImage) { bytes = image.bytes }

  var byteCount: Int { bytes.count }

  func copyBytes(from offset: Int, to buffer: UnsafeMutableRawBufferPointer) -> Bool {
    guard offset >= 0, buffer.count <= bytes.count, offset <= bytes.count - buffer.count else { return false }
    bytes.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset...].prefix(buffer.count)))
    }
    return true
  }
}

extension DatabaseLimits {
  /// Room for a row with the largest encrypted item and all its columns. The widest table has about forty columns.
  fileprivate static let keychain = DatabaseLimits(
    valueByteCount: Int32(ItemBlob.maximumByteCount + (8 << 20)), columnCount: 100)
}

extension KeyhaulError {
  fileprivate init(reading failure: SQLiteFailure) {
    let code: Code =
      switch failure.kind {
      case .tooBig: .databaseOverLimit
      case .noMemory, .oldLibrary, .cannotOpen: .databaseFailed
      case .notADatabase: .notADatabase
      default: .databaseDamaged
      }
    self.init(code, failure.reason, errno: failure.errno)
  }

  fileprivate init(changing failure: SQLiteFailure) {
    let code: Code =
      switch failure.kind {
      case .busy: .databaseBusy
      case .readOnly: .databaseNotWritable
      case .notADatabase: .notADatabase
      case .corrupt: .databaseDamaged
      case .tooBig: .databaseOverLimit
      case .disk: .databaseDisk
      default: .databaseFailed
      }
    self.init(
      code, failure.reason + (failure.systemError.map { " (\($0.reason))" } ?? ""), errno: failure.errno)
  }
}
