/// Tables that SQLite itself creates in a database: statistics of `ANALYZE`, and counters for `AUTOINCREMENT`.
///
/// Source: SQLite, "Database File Format", section 2.6.
package enum SystemTables {
  /// The statement that SQLite stores in the schema for each table, by its name.
  private static let statements = [
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat3": "CREATE TABLE sqlite_stat3(tbl,idx,neq,nlt,ndlt,sample)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
  ]

  /// Returns whether a table has the name and the statement of one of SQLite's tables. A name alone is not sufficient,
  /// because a crafted schema can contain any name.
  package static func contains(_ name: String, statement: String) -> Bool { statements[name] == statement }
}
