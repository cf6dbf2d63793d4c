import Basics
import GRDB
import GRDBSQLite
import KeychainRules

extension Database {
  /// Runs a prepared statement that gives no rows.
  func run(_ sql: String, _ arguments: [ColumnValue] = []) throws(KeychainStoreError) {
    try translatingErrors { try prepared(sql, arguments).execute() }
  }

  /// Lends each row for the length of the closure.
  func forEachRow(
    _ sql: String, _ arguments: [ColumnValue] = [], _ body: (Row) throws -> Void
  ) throws(KeychainStoreError) {
    try walkRows(sql, arguments) { row in
      try body(row)
      return true
    }
  }

  /// The same until the closure returns false.
  func walkRows(
    _ sql: String, _ arguments: [ColumnValue] = [], _ body: (Row) throws -> Bool
  ) throws(KeychainStoreError) {
    try translatingErrors {
      let cursor = try Row.fetchCursor(try prepared(sql, arguments))
      while let row = try cursor.next(), try body(row) {}
    }
  }

  /// All rows of a small answer.
  func columnValues(sql: String, _ arguments: [ColumnValue] = []) throws(KeychainStoreError) -> [[ColumnValue]] {
    var rows: [[ColumnValue]] = []
    try forEachRow(sql, arguments) { row in rows.append((0..<row.count).map { row.columnValue($0) }) }
    return rows
  }

  /// Statements are prepared once and found again by their text. Arguments are bound to SQLite's own statement: GRDB's
  /// would end a text at its first NUL.
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
  /// Any value of any type; what the column was declared as does not matter.
  func columnValue(_ index: Int) -> ColumnValue { self[index] as ColumnValue? ?? .null }
}
