import Basics
import GRDB
import KeychainFormats

/// Compares the definitions in a database with Apple's schema before any query.
///
/// A trigger, view, generated column or index expression could run during Keyhaul's queries. A keychain database has
/// none of them.
enum SchemaCheck {
  /// Checks all definitions and the version.
  ///
  /// - Throws: `.storeDamaged` with the first difference.
  static func verify(_ database: Database) throws(KeyhaulError) {
    var missingObjects = Dictionary(uniqueKeysWithValues: KeychainSchema.objects.map { ($0.name, $0) })
    for row in try database.columnValues(sql: "SELECT type, name, sql FROM main.sqlite_master") {
      let type = row[0].textValue ?? ""
      let name = row[1].textValue ?? ""
      if isInternal(type, name, row[2]) { continue }
      guard let expected = missingObjects.removeValue(forKey: name), expected.category.rawValue == type else {
        throw KeyhaulError(.storeDamaged, "it contains a \(type) that no keychain database has")
      }
      guard row[2] == .text(expected.sql) else {
        throw KeyhaulError(.storeDamaged, "the \(name) \(type) differs from schema 12.11")
      }
    }
    if let object = KeychainSchema.objects.first(where: { missingObjects[$0.name] != nil }) {
      throw KeyhaulError(.storeDamaged, "the \(object.name) \(object.category.rawValue) is missing")
    }
    try verifyVersion(database)
  }

  /// Rejects a database whose indexes do not list every row. An item whose row is missing from an index would not be
  /// found, and would be added a second time.
  ///
  /// - Throws: `.storeDamaged` if an index does not list every row; `.storeIO` if the check cannot be completed.
  static func verifyIndexes(_ database: Database) throws(KeyhaulError) {
    let result = try database.columnValues(sql: "PRAGMA integrity_check(1)").first?.first?.textValue
    if let result, let failure = SQLiteFailure(checkResult: result) {
      throw KeyhaulError(.storeIO, failure.reason, errno: failure.errno)
    }
    guard result == "ok" else {
      throw KeyhaulError(
        .storeDamaged, "its indexes do not match its tables, so a change could add an item that is already there")
    }
  }

  /// Returns whether SQLite itself made an object: the table for AUTOINCREMENT, the tables that ANALYZE creates, and
  /// the indexes of UNIQUE constraints, which have no statement.
  ///
  /// Source: SQLite, "Database File Format", section 2.6.
  private static func isInternal(_ type: String, _ name: String, _ statement: ColumnValue) -> Bool {
    switch type {
    case "table": statement.textValue.map { SystemTables.contains(name, statement: $0) } ?? false
    case "index": name.hasPrefix("sqlite_autoindex_") && statement == .null
    default: false
    }
  }

  /// Checks the version. During an upgrade, the upper halves of both numbers contain the old version, so only the low
  /// bytes are compared.
  private static func verifyVersion(_ database: Database) throws(KeyhaulError) {
    let rows = try database.columnValues(sql: "SELECT version, minor FROM tversion LIMIT 2")
    guard rows.count == 1, let version = rows[0][0].integerValue, let minor = rows[0][1].integerValue else {
      throw KeyhaulError(.storeDamaged, "the tversion table does not have exactly one row with a version")
    }
    guard version & 0xFF == KeychainSchema.majorVersion, minor & 0xFF == KeychainSchema.minorVersion else {
      throw KeyhaulError(.storeDamaged, "its schema is \(version & 0xFF).\(minor & 0xFF), not 12.11")
    }
  }

  /// Creates the tables, their indexes and the version row.
  static func create(in database: Database) throws(KeyhaulError) {
    try database.translatingErrors {
      for object in KeychainSchema.objects { try database.execute(sql: object.sql) }
      try database.execute(
        sql: "INSERT INTO tversion(version, minor) VALUES (?, ?)",
        arguments: [KeychainSchema.majorVersion, KeychainSchema.minorVersion])
    }
  }
}
