import KeychainFormats
import KeychainRules

/// Apple's schema 12.11 of `keychain-2.db`, derived from the attribute table.
///
/// It has only the tables with items, the version and the metadata keys, because synchronization state is not part of a
/// backup.
///
/// Source: Apple `SecItemSchema.c`, `SecItemDb.c` (`SecDbItem…CreateTable`), Security-61901.
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

  /// Returns the indexes of an item table, except the implicit index of its primary key.
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
