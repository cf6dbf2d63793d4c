import Basics
import Foundation
import GRDB
import KeychainCrypto
import KeychainFormats
import VirtualDevice

/// The contents of a phone's keychain file, read with plain SQL and the keys, and not with the code under test.
struct KeychainSnapshot {
  struct Row {
    let kind: ItemKind
    let columns: [String: DatabaseValue]
    /// The decrypted item; `nil` if the blob cannot be decrypted.
    let item: KeychainItem?

    /// The primary key.
    var key: ItemKey? { item.map { ItemKey($0) } }
    var isTombstone: Bool { columns["tomb"] == 1.databaseValue }
    /// The number of the row in its table.
    var rowID: Int64 { Int64.fromDatabaseValue(columns["rowid"] ?? .null) ?? 0 }
  }

  let rows: [Row]

  init(_ session: DeviceSession) throws { try self.init(session.device, keys: session.classKeys) }

  init(_ phone: VirtualDevice, keys: ClassKeys) throws {
    var rows: [Row] = []
    for (kind, row) in try Self.queue(of: phone).read(Self.allRows) {
      var columns: [String: DatabaseValue] = [:]
      for (name, value) in row { columns[name] = value }
      var item: KeychainItem?
      if let data = Data.fromDatabaseValue(columns["data"] ?? .null), let blob = try? ItemBlob(parsing: Array(data)) {
        item = try? keys.open(blob, kind: kind, numbering: .withGenerations)
      }
      rows.append(Row(kind: kind, columns: columns, item: item))
    }
    self.rows = rows
  }

  private static func allRows(_ database: Database) throws -> [(ItemKind, GRDB.Row)] {
    try ItemKind.allCases.flatMap { kind in
      try GRDB.Row.fetchAll(database, sql: "SELECT * FROM \(kind.rawValue) ORDER BY rowid").map { (kind, $0) }
    }
  }

  static func queue(of phone: VirtualDevice) throws -> DatabaseQueue {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF") }
    return try DatabaseQueue(path: phone.directory + "/keychain-2.db", configuration: configuration)
  }

  /// The columns of every row, for comparisons.
  var columnsOfRows: [[String: DatabaseValue]] { rows.map(\.columns) }
  var items: [KeychainItem] { rows.compactMap(\.item) }

  /// The items except tombstones, by primary key.
  var liveItems: [ItemKey: KeychainItem] {
    rows.reduce(into: [:]) { items, row in
      if let item = row.item, !row.isTombstone { items[ItemKey(item)] = item }
    }
  }

  func item(_ account: String) -> KeychainItem? { items.first { $0[.account] == .string(account) } }

  /// Runs SQL on the database file.
  static func execute(_ sql: String, on phone: VirtualDevice, _ arguments: StatementArguments = []) throws {
    try queue(of: phone).write { try $0.execute(sql: sql, arguments: arguments) }
  }

  static func rowIDs(of kind: ItemKind, on phone: VirtualDevice) throws -> [Int64] {
    try queue(of: phone).read { try Int64.fetchAll($0, sql: "SELECT rowid FROM \(kind.rawValue) ORDER BY rowid") }
  }

  /// Sets a wrong digest for generic passwords.
  static func damage(_ rowIDs: Set<Int64>, on phone: VirtualDevice) throws {
    guard !rowIDs.isEmpty else { return }
    try queue(of: phone).write { database in
      for rowID in rowIDs {
        try database.execute(sql: "UPDATE genp SET sha1 = x'00' WHERE rowid = ?", arguments: [rowID])
      }
    }
  }

  /// Deletes all items of a phone.
  static func empty(_ phone: VirtualDevice) throws {
    try queue(of: phone).write { database in
      for kind in ItemKind.allCases { try database.execute(sql: "DELETE FROM \(kind.rawValue)") }
    }
  }
}

/// The primary key of an item: the columns of the tables' UNIQUE clauses.
///
/// Source: Apple `SecItemSchema.c`.
struct ItemKey: Hashable, CustomStringConvertible {
  let kind: ItemKind
  let values: [PropertyValue]

  private static let commonColumns: [AttributeCode] = ["agrp", "sync", "vwht", "tkid", "musr", "ggrp"]
  private static let specificColumns: [ItemKind: [AttributeCode]] = [
    .genericPassword: ["acct", "svce"],
    .internetPassword: ["acct", "sdmn", "srvr", "ptcl", "atyp", "port", "path"],
    .certificate: ["ctyp", "issr", "slnr"],
    .key: ["kcls", "klbl", "atag", "crtr", "type", "bsiz", "esiz", "sdat", "edat"],
  ]
  private static let numericColumns: Set<AttributeCode> = [
    "sync", "ptcl", "port", "ctyp", "kcls", "crtr", "type", "bsiz", "esiz",
  ]

  /// Source: Apple `SecItemServer.c` (`SecMUSRGetSystemKeychainUUID`).
  static let systemUser: [UInt8] = [
    0xF6, 0x23, 0xAE, 0x5C, 0xCC, 0x81, 0x4C, 0xAC, 0x8A, 0xD4, 0xF0, 0x01, 0x3F, 0x31, 0x35, 0x11,
  ]

  /// Creates the primary key of an item.
  ///
  /// - Parameter isAfterRestore: Whether to create the key that the item has after a restore. Then Safari's old passwords
  ///   are synchronizable, and all users except the system become the single user.
  init(_ item: KeychainItem, isAfterRestore: Bool = false) {
    kind = item.kind
    let becomesSynchronized = isAfterRestore && item.isOldSafariPassword
    values = ((Self.specificColumns[item.kind] ?? []) + Self.commonColumns).map { code in
      if code == "sync", becomesSynchronized { return .integer(1) }
      if code == "musr", isAfterRestore, item[code] != .data(Self.systemUser) { return .data([]) }
      switch item[code] {
      // A numeric column stores the Booleans and the string "1" as numbers.
      case .boolean(let flag)? where Self.numericColumns.contains(code): return .integer(flag ? 1 : 0)
      case .string("1")? where Self.numericColumns.contains(code): return .integer(1)
      case .data(let bytes)?: return .data(bytes)
      case .string(let text)?: return .data(Array(text.utf8))
      case let value?: return value
      case nil: return Self.numericColumns.contains(code) ? .integer(0) : .data([])
      }
    }
  }

  var description: String { "\(kind.rawValue) \(values)" }
}

extension KeychainItem {
  /// Whether a restore makes the item synchronizable. Source: Apple `SecItemDb.c` (`SecItemImportInferSyncable`).
  var isOldSafariPassword: Bool {
    kind == .internetPassword && self["agrp"] == .string("com.apple.cfnetwork")
      && ["srvr", "ptcl", "atyp"].allSatisfy { self[AttributeCode(rawValue: $0)]?.stringValue != nil }
      && (self["ggrp"]?.stringValue ?? "").isEmpty
  }
}
