import Basics
import GRDB
import KeychainFormats
import KeychainRules

/// What can be done to the item tables inside one transaction. Everything above writes whole rows through here.
package struct KeychainTransaction {
  let database: Database
  let shouldContinue: @Sendable () -> Bool

  /// Between two items of many: ends their change where nobody waits for it any more.
  ///
  /// - Throws: `.cancelled`; the transaction then has to be taken back, as for every error.
  func requireGoingOn() throws(KeychainStoreError) {
    guard shouldContinue() else { throw KeychainStoreError(.cancelled, "it was stopped; no item was changed") }
  }

  /// The row that an item with these primary-key columns would collide with.
  func row(_ kind: ItemKind, primaryKey: [ColumnValue]) throws(KeychainStoreError) -> RawRow? {
    let table = KeychainTable.of(kind)
    var found: RawRow?
    try database.forEachRow(table.selectByPrimaryKeySQL, primaryKey) { row in found = table.read(row) }
    return found
  }

  /// Rows in the order of their numbers; the closure's error ends the walk.
  func forEachRow(
    _ kind: ItemKind, _ condition: RowCondition, _ body: (RawRow) throws(KeychainStoreError) -> Void
  ) throws(KeychainStoreError) {
    try walkRows(kind, condition) { (raw) throws(KeychainStoreError) in
      try body(raw)
      return true
    }
  }

  /// The same until the closure returns false.
  func walkRows(
    _ kind: ItemKind, _ condition: RowCondition, _ body: (RawRow) throws(KeychainStoreError) -> Bool
  ) throws(KeychainStoreError) {
    let table = KeychainTable.of(kind)
    try database.walkRows(table.selectSQL + condition.clause, condition.arguments) { row in
      try body(table.read(row))
    }
  }

  func count(_ kind: ItemKind, _ condition: RowCondition) throws(KeychainStoreError) -> Int {
    let rows = try database.columnValues(
      sql: "SELECT count(*) FROM \(kind.rawValue)" + condition.clause, condition.arguments)
    return rows.first?.first?.integerValue.flatMap { Int(exactly: $0) } ?? 0
  }

  /// - Returns: The new row's number, or `nil` where a row with this primary key is there.
  func insert(_ row: WritableRow) throws(KeychainStoreError) -> Int64? {
    do {
      try database.run(KeychainTable.of(row.kind).insertSQL, row.columns)
    } catch {
      if error.code == .duplicateItem { return nil }
      throw error
    }
    return database.lastInsertedRowID
  }

  /// Writes all columns of a row again; its number stays.
  func overwrite(_ rowID: Int64, with row: WritableRow) throws(KeychainStoreError) {
    try database.run(KeychainTable.of(row.kind).overwriteSQL, row.columns + [.integer(rowID)])
  }

  func delete(_ reference: RowReference) throws(KeychainStoreError) {
    try database.run(KeychainTable.of(reference.kind).deleteSQL, [.integer(reference.rowID)])
  }
}
