import Basics
import CSQLite
import KeychainFormats
import KeychainRules

/// A read-only connection to a database from outside, in memory, with every door of SQL shut.
///
/// Not to be used from two threads at once. Source: SQLite, "Defense Against The Dark Arts" (untrusted database files).
final class ForeignDatabase: DatabaseRows {
  let handle: OpaquePointer?

  init(_ image: DatabaseImage) throws(KeychainDatabaseError) {
    var opened: OpaquePointer?
    guard sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nil) == SQLITE_OK,
      let connection = opened
    else {
      sqlite3_close_v2(opened)
      throw KeychainDatabaseError(.failed, "SQLite cannot open a database in memory")
    }
    handle = connection
    for (option, value) in Self.switches {
      guard keyhaul_sqlite3_switch(connection, option, value) == SQLITE_OK else {
        throw KeychainDatabaseError(.failed, "this version of SQLite is too old to read an untrusted database safely")
      }
    }
    for (limit, value) in Self.limits { sqlite3_limit(connection, limit, value) }
    let count = image.bytes.count
    guard let memory = sqlite3_malloc64(UInt64(max(count, 1))) else {
      throw KeychainDatabaseError(.failed, "not enough memory for a copy of the database")
    }
    image.bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: memory, count: count).copyMemory(from: $0) }
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY)
    // It frees the bytes also where it fails.
    guard
      sqlite3_deserialize(
        connection, "main", memory.assumingMemoryBound(to: UInt8.self), Int64(count), Int64(count), flags) == SQLITE_OK
    else { throw failure() }
    for setting in Self.settings { try forEachRow(setting) { _ in } }
  }

  deinit { sqlite3_close_v2(handle) }

  /// Runs one query and lends its rows. The values of a row are valid until the closure returns.
  func forEachRow(
    _ sql: String, _ body: (borrowing ForeignRow) throws(KeychainDatabaseError) -> Void
  ) throws(KeychainDatabaseError) {
    var prepared: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &prepared, nil) == SQLITE_OK, let statement = prepared else {
      throw failure()
    }
    defer { sqlite3_finalize(statement) }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: try body(ForeignRow(statement: statement))
      case SQLITE_DONE: return
      default: throw failure()
      }
    }
  }

  /// Whether SQLite finds no fault in the pages. Indexes are not compared with their tables.
  func isIntact() throws(KeychainDatabaseError) -> Bool {
    var isIntact = false
    try forEachRow("PRAGMA quick_check(1)") { row in isIntact = row.text(0) == "ok" }
    return isIntact
  }

  private func failure() -> KeychainDatabaseError {
    let code: KeychainDatabaseError.Code =
      switch sqlite3_errcode(handle) {
      case SQLITE_TOOBIG: .overLimit
      case SQLITE_NOMEM: .failed
      case SQLITE_NOTADB: .unreadable
      default: .damaged
      }
    return KeychainDatabaseError(code, Self.sentence(sqlite3_errcode(handle)))
  }

  /// SQLite's own words for a result; what it says of one database may hold names out of it.
  static func sentence(_ code: Int32) -> String {
    sqlite3_errstr(code).map { "SQLite says: \(String(cString: $0))" } ?? "SQLite gave no reason"
  }

  private static let settings = ["PRAGMA cell_size_check = ON", "PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY"]

  static let switches: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, 1),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
  ]

  static let limits: [(Int32, Int32)] = [
    // A row with the largest sealed item, and room for the item's columns.
    (SQLITE_LIMIT_LENGTH, Int32(ItemBlob.maximumByteCount + (8 << 20))),
    // The widest table has some forty columns.
    (SQLITE_LIMIT_COLUMN, 100),
    (SQLITE_LIMIT_ATTACHED, 0),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_EXPR_DEPTH, 100),
  ]
}

/// The result of SQLite's check of a database's indexes.
public enum DatabaseIndexState: Sendable, Hashable {
  /// Each index lists every row of its table and no other.
  case sound
  /// An index lacks a row of its table or lists another row, or checking it takes too long.
  case damaged
  /// The indexes were not checked: the pages are damaged, or an index has an expression, which is code in the file.
  case unchecked
}

/// What answers queries about a database.
protocol DatabaseRows: AnyObject {
  /// The connection; `nil` once it is closed.
  var handle: OpaquePointer? { get }
  /// Runs one query and lends its rows. The values of a row are valid until the closure returns.
  func forEachRow(
    _ sql: String, _ body: (borrowing ForeignRow) throws(KeychainDatabaseError) -> Void
  ) throws(KeychainDatabaseError)
}

extension DatabaseRows {
  /// Runs SQLite's full check: each index has an entry for every row of its table and no other entry, and each key
  /// occurs once.
  ///
  /// A malicious index can make the lookup of its entries take hours. An index that exceeds the limit counts as
  /// damaged.
  ///
  /// - Parameter limit: The most CPU time, in nanoseconds; by default 5 s plus 1 ms per page, many times what a
  ///   device's database needs.
  func indexState(within limit: Int64? = nil) throws(KeychainDatabaseError) -> DatabaseIndexState {
    guard let handle else { throw KeychainDatabaseError(.failed, "the database is closed") }
    var pageCount: Int64 = 0
    try forEachRow("PRAGMA page_count") { pageCount = $0.number(0) ?? 0 }
    var deadline = keyhaul_sqlite3_cpu_time() + (limit ?? 5_000_000_000 + pageCount * 1_000_000)
    return try withUnsafeMutablePointer(to: &deadline) {
      (deadline) throws(KeychainDatabaseError) -> DatabaseIndexState in
      keyhaul_sqlite3_limit_time(handle, deadline)
      defer { keyhaul_sqlite3_limit_time(handle, nil) }
      var isSound = false
      do throws(KeychainDatabaseError) {
        if try hasComputedIndex() { return .unchecked }
        try forEachRow("PRAGMA integrity_check(1)") { row in isSound = row.text(0) == "ok" }
      } catch {
        guard sqlite3_errcode(handle) == SQLITE_INTERRUPT || error.code == .damaged else { throw error }
      }
      return isSound ? .sound : .damaged
    }
  }

  /// Whether an index has a computed column or a condition. That is code in the database, and a check of the index
  /// would run it.
  private func hasComputedIndex() throws(KeychainDatabaseError) -> Bool {
    var isComputed = false
    try forEachRow(
      "SELECT 1 FROM (SELECT DISTINCT tbl_name FROM main.sqlite_schema) AS item,"
        + " pragma_index_list(item.tbl_name) AS listed WHERE listed.partial"
        + " OR EXISTS (SELECT 1 FROM pragma_index_xinfo(listed.name) WHERE cid = -2) LIMIT 1"
    ) { _ in isComputed = true }
    return isComputed
  }

  /// Returns the columns of a table that has its own pages and no computed columns; `nil` for a view, or if there is no
  /// such table.
  func columns(of table: String) throws(KeychainDatabaseError) -> Set<String>? {
    var isTable = false
    try forEachRow(
      "SELECT type = 'table' AND typeof(rootpage) = 'integer' AND rootpage > 0 FROM main.sqlite_schema"
        + " WHERE name = '\(table)' COLLATE NOCASE"
    ) { row in isTable = row.number(0) == 1 }
    guard isTable else { return nil }
    var names: Set<String> = []
    var computes = false
    try forEachRow("PRAGMA main.table_xinfo(\(table))") { row in
      if let name = row.text(1) { names.insert(name) }
      if row.number(6) != 0 { computes = true }
    }
    guard !computes else { throw KeychainDatabaseError(.damaged, "a column of its \(table) table is computed") }
    return names
  }
}

/// A row of a foreign database. Values by their stored type; a column may hold any.
struct ForeignRow: ~Copyable {
  let statement: OpaquePointer

  package func text(_ column: Int32) -> String? {
    guard sqlite3_column_type(statement, column) == SQLITE_TEXT, let start = sqlite3_column_text(statement, column)
    else { return nil }
    let count = Int(sqlite3_column_bytes(statement, column))
    return String(validating: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
  }

  func number(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : nil
  }

  func data(_ column: Int32) -> [UInt8]? {
    guard sqlite3_column_type(statement, column) == SQLITE_BLOB else { return nil }
    let start = sqlite3_column_blob(statement, column)
    return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
  }

  func value(_ column: Int32) -> ColumnValue {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_INTEGER: return .integer(sqlite3_column_int64(statement, column))
    case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, column))
    case SQLITE_BLOB: return .blob(data(column) ?? [])
    case SQLITE_TEXT:
      let start = sqlite3_column_text(statement, column)
      return .text(Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))))
    default: return .null
    }
  }
}
