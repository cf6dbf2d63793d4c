import Basics
import GRDB
import KeychainFormats
import KeychainRules

/// Apple's schema 12.11 of `keychain-2.db`, derived from the attribute table.
///
/// It has only the tables with items, the version and the metadata keys, because synchronization state is not part of a
/// backup. Source:
/// Apple `SecItemSchema.c`, `SecItemDb.c` (`SecDbItem…CreateTable`), Security-61901.
enum KeychainSchema {
  static let majorVersion: Int64 = 12
  static let minorVersion: Int64 = 11

  /// A table or an index.
  struct Object: Hashable {
    enum Category: String { case table, index }
    let category: Category
    let name: String
    let sql: String
  }

  /// All tables and indexes, in the order in which they are created.
  static let objects: [Object] = ItemKind.allCases.flatMap(objects(of:)) + versionObjects + metadataKeyObjects

  /// Returns the indexes of an item table, except the implicit one of its primary key.
  static func indexes(of kind: ItemKind) -> [Object] { objects(of: kind).filter { $0.category == .index } }

  private static func objects(of kind: ItemKind) -> [Object] {
    let table = kind.rawValue
    let columns = ColumnDefinitions.all(of: kind)
    let primaryKeyColumns = ColumnDefinitions.primaryKey(of: kind).map(\.code.rawValue).joined(separator: ",")
    let body = columns.map(declaration(of:)).joined(separator: ",")
    let indexedColumns = columns.filter { $0.flags.contains(.indexed) }.map(\.code.rawValue)
    return [Object(category: .table, name: table, sql: "CREATE TABLE \(table)(\(body),UNIQUE(\(primaryKeyColumns)))")]
      + indexedColumns.map { index(table + $0, on: table, $0) }
      + compositeIndexes.filter { $0.kind == kind }.map { index($0.name, on: table, $0.columns) }
  }

  private static func index(_ name: String, on table: String, _ columns: String) -> Object {
    Object(category: .index, name: name, sql: "CREATE INDEX \(name) ON \(table)(\(columns))")
  }

  private static func declaration(of definition: AttributeDefinition) -> String {
    var parts = [definition.code.rawValue, sqlType(of: definition.kind)]
    if definition.flags.contains(.notNull) { parts.append("NOT NULL") }
    if definition.flags.contains(.defaultsToZero) { parts.append("DEFAULT 0") }
    if definition.flags.contains(.defaultsToEmpty) { parts.append("DEFAULT ''") }
    return parts.joined(separator: " ")
  }

  private static func sqlType(of kind: AttributeKind) -> String {
    switch kind {
    case .rowID: "INTEGER PRIMARY KEY AUTOINCREMENT"
    case .creationDate, .modificationDate, .date: "REAL"
    case .blob, .data, .encryptedData, .sha1, .uuid, .primaryKey, .accessControl: "BLOB"
    case .string, .access: "TEXT"
    case .number, .sync, .tomb, .useTombstone: "INTEGER"
    }
  }

  /// Indexes over several columns that Apple's code adds.
  private static let compositeIndexes: [(kind: ItemKind, name: String, columns: String)] = [
    (.genericPassword, "agrp_musr_tomb_svce_acct", "agrp,musr,tomb,svce,acct"),
    (.genericPassword, "genpagrp_musr_tomb_acct", "agrp,musr,tomb,acct"),
    (.internetPassword, "agrp_musr_tomb_srvr_acct", "agrp,musr,tomb,srvr,acct"),
    (.internetPassword, "agrp_musr_tomb_type", "agrp,musr,tomb,type"),
    (.internetPassword, "inetagrp_musr_tomb_acct", "agrp,musr,tomb,acct"),
    (.certificate, "agrp_musr_tomb_subj", "agrp,musr,tomb,subj"),
    (.key, "agrp_musr_tomb_atag", "agrp,musr,tomb,atag"),
  ]

  private static let versionObjects = [
    Object(
      category: .table, name: "tversion",
      sql: "CREATE TABLE tversion(rowid INTEGER PRIMARY KEY AUTOINCREMENT,version INTEGER NOT NULL,"
        + "minor INTEGER NOT NULL DEFAULT 0,UNIQUE(version))"),
    index("tversionversion", on: "tversion", "version"),
  ]

  private static let metadataKeyObjects = [
    Object(
      category: .table, name: "metadatakeys",
      sql: "CREATE TABLE metadatakeys(keyclass TEXT NOT NULL,actualKeyclass TEXT,data BLOB,UNIQUE(keyclass))"),
    index("metadatakeyskeyclass", on: "metadatakeys", "keyclass"),
  ]
}

/// Compares the definitions in a database with Apple's schema before any query.
///
/// A trigger, view, generated column or index expression could run during Keyhaul's queries. A keychain database has
/// none of them.
enum SchemaCheck {
  /// Checks all definitions and the version.
  ///
  /// - Throws: `.storeDamaged` with the first difference.
  static func verify(_ database: Database) throws(KeyhaulError) {
    var missing = Dictionary(uniqueKeysWithValues: KeychainSchema.objects.map { ($0.name, $0) })
    for row in try database.columnValues(sql: "SELECT type, name, sql FROM main.sqlite_master") {
      let type = row[0].textValue ?? ""
      let name = row[1].textValue ?? ""
      if isInternal(type, name, row[2]) { continue }
      guard let expected = missing.removeValue(forKey: name), expected.category.rawValue == type else {
        throw KeyhaulError(.storeDamaged, "it contains a \(type) that no keychain database has")
      }
      guard row[2] == .text(expected.sql) else {
        throw KeyhaulError(.storeDamaged, "the \(name) \(type) differs from schema 12.11")
      }
    }
    if let object = KeychainSchema.objects.first(where: { missing[$0.name] != nil }) {
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

  /// Checks the version. During an upgrade the upper halves contain the old version, so only the low bytes are
  /// compared.
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
