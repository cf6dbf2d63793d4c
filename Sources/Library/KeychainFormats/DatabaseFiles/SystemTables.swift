/// Tables that SQLite itself makes in a database: counts of rows where a program ran `ANALYZE`, and the counters of tables with
/// `AUTOINCREMENT`.
///
/// Source: SQLite, "Database File Format", section 2.6.
package enum SystemTables {
  /// What SQLite writes into the schema for each of them, by its name.
  private static let statements = [
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat3": "CREATE TABLE sqlite_stat3(tbl,idx,neq,nlt,ndlt,sample)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
  ]

  /// Whether a table is one of them. A name alone proves nothing: where a schema is written by hand, any object can have it.
  package static func contains(_ name: String, statement: String) -> Bool { statements[name] == statement }
}
