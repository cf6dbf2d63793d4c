import Basics
import GRDB
import KeychainFormats
import KeychainRules

/// Compares what is in a database with Apple's schema before anything is asked of it.
///
/// A trigger, a view, a generated column or an expression in an index would run on our queries; none belongs here.
enum SchemaCheck {
  /// - Throws: `.damaged` with the first difference.
  static func verify(_ database: Database) throws(KeychainStoreError) {
    var missing = Dictionary(uniqueKeysWithValues: KeychainSchema.objects.map { ($0.name, $0) })
    for row in try database.columnValues(sql: "SELECT type, name, sql FROM main.sqlite_master") {
      let type = row[0].textValue ?? ""
      let name = row[1].textValue ?? ""
      if isOfSQLite(type, name, row[2]) { continue }
      guard let expected = missing.removeValue(forKey: name), expected.category.rawValue == type else {
        throw KeychainStoreError(.damaged, "it holds a \(type) that a keychain database does not have")
      }
      guard row[2] == .text(expected.sql) else {
        throw KeychainStoreError(.damaged, "the \(type) \(name) is not as schema 12.11 has it")
      }
    }
    if let object = KeychainSchema.objects.first(where: { missing[$0.name] != nil }) {
      throw KeychainStoreError(.damaged, "the \(object.category.rawValue) \(object.name) is missing")
    }
    try verifyVersion(database)
  }

  /// What SQLite makes for itself: the table behind AUTOINCREMENT, those that ANALYZE leaves, and the indexes of UNIQUE,
  /// which have no statement.
  ///
  /// Source: SQLite, "Database File Format", section 2.6.
  private static func isOfSQLite(_ type: String, _ name: String, _ statement: ColumnValue) -> Bool {
    switch type {
    case "table": statement.textValue.map { SystemTables.contains(name, statement: $0) } ?? false
    case "index": name.hasPrefix("sqlite_autoindex_") && statement == .null
    default: false
    }
  }

  /// While an upgrade is unfinished the upper halves hold the old version, so only the low bytes count.
  private static func verifyVersion(_ database: Database) throws(KeychainStoreError) {
    let rows = try database.columnValues(sql: "SELECT version, minor FROM tversion LIMIT 2")
    guard rows.count == 1, let version = rows[0][0].integerValue, let minor = rows[0][1].integerValue else {
      throw KeychainStoreError(.damaged, "the table tversion does not have one row with a version")
    }
    guard version & 0xFF == KeychainSchema.majorVersion, minor & 0xFF == KeychainSchema.minorVersion else {
      throw KeychainStoreError(.damaged, "its schema is \(version & 0xFF).\(minor & 0xFF), not 12.11")
    }
  }

  /// Makes the tables, their indexes and the version row.
  static func create(in database: Database) throws(KeychainStoreError) {
    try database.translatingErrors {
      for object in KeychainSchema.objects { try database.execute(sql: object.sql) }
      try database.execute(
        sql: "INSERT INTO tversion(version, minor) VALUES (?, ?)",
        arguments: [KeychainSchema.majorVersion, KeychainSchema.minorVersion])
    }
  }
}
