import Basics
import GRDB
import GRDBSQLite
import KeychainRules

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ColumnValue: StatementColumnConvertible {
  init?(sqliteStatement: SQLiteStatement, index: CInt) {
    switch sqlite3_column_type(sqliteStatement, index) {
    case SQLITE_INTEGER: self = .integer(sqlite3_column_int64(sqliteStatement, index))
    case SQLITE_FLOAT: self = .real(sqlite3_column_double(sqliteStatement, index))
    case SQLITE_TEXT:
      // SQLite requires the pointer before the count, because the first call converts the text.
      let start = UnsafeRawPointer(sqlite3_column_text(sqliteStatement, index))
      self = .text(Self.bytes(at: start, count: sqlite3_column_bytes(sqliteStatement, index)))
    case SQLITE_BLOB:
      let start = sqlite3_column_blob(sqliteStatement, index)
      self = .blob(Self.bytes(at: start, count: sqlite3_column_bytes(sqliteStatement, index)))
    default: self = .null
    }
  }

  private static func bytes(at start: UnsafeRawPointer?, count: CInt) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
  }
}

extension ColumnValue: DatabaseValueConvertible {
  /// The value in GRDB's type, which GRDB needs for messages. Statements use `bind`, because GRDB's binding ends a text
  /// at its first NUL.
  var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .integer(let value): value.databaseValue
    case .real(let value): value.databaseValue
    case .text(let bytes): String(decoding: bytes, as: UTF8.self).databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }

  static func fromDatabaseValue(_ value: DatabaseValue) -> ColumnValue? {
    switch value.storage {
    case .null: .null
    case .int64(let value): .integer(value)
    case .double(let value): .real(value)
    case .string(let value): .text(value)
    case .blob(let value): .blob(Array(value))
    }
  }

  /// Binds the value with an explicit length. An empty blob is bound as empty text, as in Apple's code: a null pointer
  /// would bind NULL.
  func bind(to sqliteStatement: SQLiteStatement, at index: CInt) -> CInt {
    // `SQLITE_TRANSIENT`, a macro that Swift cannot import: SQLite copies the bytes.
    let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch self {
    case .null: return sqlite3_bind_null(sqliteStatement, index)
    case .integer(let value): return sqlite3_bind_int64(sqliteStatement, index, value)
    case .real(let value): return sqlite3_bind_double(sqliteStatement, index, value)
    case .text(let bytes):
      guard !bytes.isEmpty else { return sqlite3_bind_text(sqliteStatement, index, "", 0, transient) }
      return bytes.withUnsafeBytes { raw in
        sqlite3_bind_text64(
          sqliteStatement, index, raw.bindMemory(to: CChar.self).baseAddress, UInt64(raw.count), transient,
          UInt8(SQLITE_UTF8))
      }
    case .blob(let bytes):
      guard !bytes.isEmpty else { return ColumnValue.text([]).bind(to: sqliteStatement, at: index) }
      return bytes.withUnsafeBytes { raw in
        sqlite3_bind_blob64(sqliteStatement, index, raw.baseAddress, UInt64(raw.count), transient)
      }
    }
  }
}

extension Database {
  /// Runs a prepared statement that returns no rows.
  func run(_ sql: String, _ arguments: [ColumnValue] = []) throws(KeyhaulError) {
    try translatingErrors { try prepared(sql, arguments).execute() }
  }

  /// Calls the closure with each row. A row is valid only during the call.
  func forEachRow(
    _ sql: String, _ arguments: [ColumnValue] = [], _ body: (Row) throws -> Void
  ) throws(KeyhaulError) {
    try scanRows(sql, arguments) { row in
      try body(row)
      return true
    }
  }

  /// Calls the closure with each row until it returns `false`.
  func scanRows(
    _ sql: String, _ arguments: [ColumnValue] = [], _ body: (Row) throws -> Bool
  ) throws(KeyhaulError) {
    try translatingErrors {
      let cursor = try Row.fetchCursor(try prepared(sql, arguments))
      while let row = try cursor.next(), try body(row) {}
    }
  }

  /// Returns all rows of a query with a small result.
  func columnValues(sql: String, _ arguments: [ColumnValue] = []) throws(KeyhaulError) -> [[ColumnValue]] {
    var rows: [[ColumnValue]] = []
    try forEachRow(sql, arguments) { row in rows.append((0..<row.count).map { row.columnValue($0) }) }
    return rows
  }

  /// Returns a cached statement with bound arguments. They are bound to SQLite's own statement, because GRDB's binding
  /// ends a text at its first NUL.
  private func prepared(_ sql: String, _ arguments: [ColumnValue]) throws -> Statement {
    let statement = try cachedStatement(sql: sql)
    statement.setUncheckedArguments([])
    for (index, argument) in zip(CInt(1)..., arguments) {
      let code = argument.bind(to: statement.sqliteStatement, at: index)
      guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
    return statement
  }
}

extension Row {
  /// Returns a value of any type, regardless of the column's declared type.
  func columnValue(_ index: Int) -> ColumnValue { self[index] as ColumnValue? ?? .null }
}
