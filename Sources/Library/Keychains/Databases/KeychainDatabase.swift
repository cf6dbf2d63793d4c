package import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// A keychain database: `keychain-2-debug.db` of a Simulator, or `keychain-2.db` of a device or a Mac.
///
/// The database is read from memory. Nothing is written, and no trigger or view in the file runs. Source: Apple
/// `SecItemSchema.c`, `SecItemDb.c`; no database of a real Simulator was available.
package struct KeychainDatabase: Sendable {
  /// The version of the schema, or `nil` if the table `tversion` does not state one.
  package let schema: SchemaVersion?
  /// The rows of the item tables in the order genp, inet, cert, keys, and by row number within each table.
  package let rows: [Row]
  /// The item tables that do not exist, or that lack a column needed to read an item.
  package let missingTables: [ItemKind]
  /// The column `data` of `metadatakeys` for each class. A Simulator's are unencrypted keys, followed by eight bytes.
  package let wrappedMetadataKeys: [KeyClass: SensitiveBytes]
  /// Whether SQLite finds no fault in the pages after the log is applied.
  package let isIntact: Bool
  /// Whether each index lists every row of its table, after the log is applied.
  package let indexState: DatabaseIndexState
  /// The whole database as one file, with its log applied.
  package let image: [UInt8]
  /// The use of the database's journal files.
  package let journalStatus: DatabaseDetails.JournalStatus

  /// The version of a schema, such as "12.11".
  package struct SchemaVersion: Sendable, Hashable {
    /// The major version. A daemon rejects a database with a higher one than its own.
    package let major: Int
    /// The minor version. A daemon also accepts a higher one than its own.
    package let minor: Int

    /// The version as text, such as "12.11".
    package var text: String { "\(major).\(minor)" }

    /// Creates a version.
    ///
    /// - Parameters:
    ///   - major: The major version.
    ///   - minor: The minor version.
    package init(major: Int, minor: Int) {
      self.major = major
      self.minor = minor
    }
  }

  /// A row of an item table.
  package struct Row: Sendable {
    /// The table.
    package let kind: ItemKind
    /// The row's number in the table.
    package let number: Int64
    /// The column `data`, which is the encrypted item. Empty if the column does not contain data.
    package let sealed: [UInt8]
    /// The column `sha1`; `nil` if it contains no data, or if the table has no such column.
    package let digest: [UInt8]?
    /// Whether the table has a column `sha1`. In iOS 6 and earlier (schema 5) it does not.
    package let hasDigestColumn: Bool
    /// The stored values of all other known columns.
    package let columns: [AttributeCode: ColumnValue]

    /// The version word of the item without its highest bit; `nil` if the item has fewer than four bytes.
    package var version: UInt32? { ItemBlob.versionNumber(of: sealed) }
  }

  /// The largest accepted number of item rows in a database.
  package static let maximumItemCount = 200_000
  /// The largest accepted size of a database, and of its log, in bytes.
  package static let maximumByteCount = DatabaseImage.maximumByteCount
  /// The number of bytes that `hasSignature(_:)` needs from the start of a file.
  package static let signatureByteCount = 16

  /// Returns whether a file that starts with these bytes may be an SQLite database.
  package static func hasSignature(_ start: [UInt8]) -> Bool { start.starts(with: "SQLite format 3\0".utf8) }

  /// Reads a database.
  ///
  /// - Parameters:
  ///   - file: The whole file, at most 256 MiB.
  ///   - log: The whole `-wal` file, or empty if there is none.
  ///   - journal: The whole `-journal` file, or empty if there is none.
  /// - Throws: `.notADatabase` if the file is not an SQLite database, `.unknownDatabase` if it is not a keychain,
  ///   `.databaseDamaged`, `.databaseOverLimit`, and `.databaseFailed` if SQLite does not work.
  package init(file: [UInt8], log: [UInt8] = [], journal: [UInt8] = []) throws(KeyhaulError) {
    try self.init(file: file, log: log, journal: journal, acceptingAtMost: Self.maximumItemCount)
  }

  /// Reads a database with another limit on the number of item rows.
  package init(
    file: [UInt8], log: [UInt8], journal: [UInt8] = [], acceptingAtMost limit: Int
  ) throws(KeyhaulError) {
    let (database, image, status) = try Self.openingImage(DatabaseImage(file), log, journal)
    let (schema, keys) = (try Self.schema(of: database), try Self.metadataKeys(of: database))
    var rows: [Row] = []
    var byteCount = 0
    var missing: [ItemKind] = []
    for kind in ItemKind.allCases {
      guard let columns = try database.columns(of: kind.rawValue), columns.contains("data") else {
        missing.append(kind)
        continue
      }
      let hasDigestColumn = columns.contains("sha1")
      let known = ColumnDefinitions.all(of: kind).map(\.code).filter { code in
        columns.contains(code.rawValue) && !["rowid", "data", "sha1"].contains(code.rawValue)
      }
      let names = known.map { ", \"\($0.rawValue)\"" }.joined()
      let digest = hasDigestColumn ? "sha1" : "NULL"
      try database.forEachRow("SELECT rowid, data, \(digest)\(names) FROM main.\(kind.rawValue) ORDER BY rowid") {
        (row) throws(KeyhaulError) in
        guard rows.count < limit else {
          throw KeyhaulError(.databaseOverLimit, "it has more than \(limit) items")
        }
        var values: [AttributeCode: ColumnValue] = [:]
        for (place, code) in known.enumerated() { values[code] = row.value(Int32(place + 3)) }
        let found = Row(
          kind: kind, number: row.integer(0) ?? 0, sealed: row.data(1) ?? [], digest: row.data(2),
          hasDigestColumn: hasDigestColumn, columns: values)
        byteCount += found.sealed.count + (found.digest?.count ?? 0) + values.values.reduce(0) { $0 + $1.byteCount }
        // Rows that share their pages would take more memory than the file has bytes.
        guard byteCount <= image.bytes.count else {
          throw KeyhaulError(.databaseOverLimit, "its rows contain more bytes than the file")
        }
        rows.append(found)
      }
    }
    guard missing.count < ItemKind.allCases.count else {
      throw KeyhaulError(
        .unknownDatabase,
        try Self.containsItemTable(database)
          ? "its item tables have no column named data" + (schema.map { "; its schema is \($0.text)" } ?? "")
          : "it has none of the item tables")
    }
    missingTables = missing
    self.schema = schema
    self.rows = rows
    isIntact = try database.isIntact()
    indexState = isIntact ? try database.indexState() : .unchecked
    self.image = image.bytes
    wrappedMetadataKeys = keys
    self.journalStatus = status
  }

  /// Opens the database with the committed changes of its log, or without the unfinished change of its journal. A
  /// database has one of the two: beside a log with content, the journal is ignored.
  private static func openingImage(
    _ image: DatabaseImage, _ logBytes: [UInt8], _ journalBytes: [UInt8]
  ) throws(KeyhaulError) -> (KeychainConnection, DatabaseImage, DatabaseDetails.JournalStatus) {
    guard !logBytes.isEmpty else {
      guard let journal = RollbackJournal(journalBytes) else {
        let isFinished = RollbackJournal.isFinished(journalBytes)
        return (try KeychainConnection(image), image, isFinished ? .none : .journalUnreadable)
      }
      return try applyingJournal(image, as: .rolledBack, "its journal") { () throws(KeyhaulError) in
        try image.rollingBack(journal, of: journalBytes)
      }
    }
    guard let log = WriteAheadLog(logBytes), log.pageCount > 0 else {
      return (try KeychainConnection(image), image, .unreadable)
    }
    guard log.pageByteCount == image.pageByteCount else { return (try KeychainConnection(image), image, .unrelated) }
    return try applyingJournal(image, as: log.hasUncommittedFrames ? .partiallyApplied : .applied, "its log") {
      () throws(KeyhaulError) in try image.applying(log, of: logBytes)
    }
  }

  /// Applies a journal file if the result is an intact keychain database. Otherwise opens the database without it.
  private static func applyingJournal(
    _ image: DatabaseImage, as status: DatabaseDetails.JournalStatus, _ other: String,
    _ change: () throws(KeyhaulError) -> DatabaseImage
  ) throws(KeyhaulError) -> (KeychainConnection, DatabaseImage, DatabaseDetails.JournalStatus) {
    do throws(KeyhaulError) {
      let changed = try change()
      let database = try KeychainConnection(changed)
      // The log of another database may result in an intact database that is not a keychain.
      if try database.isIntact(), try containsItemTable(database) { return (database, changed, status) }
    } catch {
      guard error.code == .databaseDamaged || error.code == .notADatabase else { throw error }
    }
    let alone = try KeychainConnection(image)
    guard try alone.isIntact() else {
      throw KeyhaulError(.databaseDamaged, "its pages contradict each other, both with and without \(other)")
    }
    return (alone, image, .unrelated)
  }

  /// Returns whether the database has an item table.
  private static func containsItemTable(_ database: KeychainConnection) throws(KeyhaulError) -> Bool {
    for kind in ItemKind.allCases where try database.columns(of: kind.rawValue) != nil { return true }
    return false
  }

  /// Returns the schema version from the low eight bits of both columns. The other bits are flags of the daemon.
  static func schema(of database: KeychainConnection) throws(KeyhaulError) -> SchemaVersion? {
    guard let columns = try database.columns(of: "tversion"), columns.contains("version") else { return nil }
    let minor = columns.contains("minor") ? "minor" : "0"
    var version: SchemaVersion?
    try database.forEachRow("SELECT version, \(minor) FROM main.tversion LIMIT 1") { row in
      guard let major = row.integer(0), let minor = row.integer(1) else { return }
      version = SchemaVersion(major: Int(major & 0xFF), minor: Int(minor & 0xFF))
    }
    return version
  }

  static func metadataKeys(
    of database: KeychainConnection
  ) throws(KeyhaulError) -> [KeyClass: SensitiveBytes] {
    guard let columns = try database.columns(of: "metadatakeys"), columns.isSuperset(of: ["keyclass", "data"]) else {
      return [:]
    }
    var keys: [KeyClass: SensitiveBytes] = [:]
    var count = 0
    try database.forEachRow("SELECT CAST(keyclass AS TEXT), data FROM main.metadatakeys ORDER BY rowid") {
      (row) throws(KeyhaulError) in
      count += 1
      guard count <= maximumKeyRowCount else {
        throw KeyhaulError(.databaseOverLimit, "metadatakeys has more than \(maximumKeyRowCount) rows")
      }
      guard let keyClass = row.text(0).flatMap(UInt32.init), let data = row.data(1) else { return }
      keys[KeyClass(rawValue: keyClass)] = SensitiveBytes(copying: data)
    }
    return keys
  }

  /// A generous limit: there are seven classes.
  private static let maximumKeyRowCount = 1000
}

extension ColumnValue {
  /// The number of bytes in a text or blob, and 0 for other values.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes.count
    case .null, .integer, .real: 0
    }
  }
}

extension KeychainDatabase {
  /// Returns the keys that decrypt the items. A Simulator's keys are in the database itself.
  ///
  /// - Parameter classKeys: The 32-byte keys of a device's own keybag, not of a backup's, for each class.
  /// - Throws: `.malformed` if a key has another length.
  package func keys(
    classKeys: [KeyClass: SensitiveBytes] = [:]
  ) throws(DataProtectionError) -> DatabaseKeys {
    try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys, classKeys: classKeys)
  }

  /// Decrypts every row in the order of `rows`, including those that cannot be decrypted completely.
  ///
  /// - Throws: An error that is not the fault of a single item.
  package func decrypted(with keys: DatabaseKeys) throws(DataProtectionError) -> [DecryptedRow] {
    var all: [DecryptedRow] = []
    for row in rows { all.append(try DecryptedRow(row, opened: keys.open(row: row.sealed, kind: row.kind))) }
    return all
  }

  /// Returns whether the item cannot be decrypted because the database itself has no key for its class.
  package func lacksKey(of opened: DecryptedDatabaseItem) -> Bool {
    guard opened.fault?.place == .metadataClassKey, let keyClass = opened.keyClass else { return false }
    return wrappedMetadataKeys[keyClass.withoutGeneration]?.isEmpty ?? true
  }

  /// A row and the result of decrypting it.
  package struct DecryptedRow: Sendable {
    /// The row.
    package let row: Row
    /// The decrypted parts of the item, and the fault that prevents decrypting the rest.
    package let opened: DecryptedDatabaseItem
    /// Whether the column `sha1` is the digest of the content; `nil` if the secret was not decrypted or there is no
    /// such column.
    package let hasMatchingDigest: Bool?
    /// The columns whose values differ from the attributes that they are made from; empty if the attributes were not
    /// decrypted.
    package let differingColumns: [AttributeCode]

    init(_ row: Row, opened: DecryptedDatabaseItem) {
      self.row = row
      self.opened = opened
      hasMatchingDigest =
        opened.isOpen && row.hasDigestColumn ? opened.item.flatMap { try? $0.digest() }.map { row.digest == $0 } : nil
      differingColumns = opened.item.map { Self.differences(of: row, from: $0) } ?? []
    }

    /// Columns whose values cannot be compared, because they are not made from an attribute of the same name.
    private static let ownColumns: Set<AttributeCode> = [.appClip, .accessControl]

    private static func differences(of row: Row, from item: KeychainItem) -> [AttributeCode] {
      ColumnDefinitions.all(of: row.kind).compactMap { definition in
        guard let stored = row.columns[definition.code], !ownColumns.contains(definition.code) else { return nil }
        // For an absent attribute, some releases write the default of its kind and others NULL.
        if stored == .null, item[definition.code] == nil { return nil }
        // A value that cannot be stored in a column is a fault of the item, not a difference.
        guard let expected = try? ItemColumns.value(item[definition.code], for: definition) else { return nil }
        if stored.isSame(as: expected) || !row.hasDigestColumn && containsValue(stored, of: item, definition) {
          return nil
        }
        return definition.code
      }
    }

    /// Whether a column that newer schemas hash contains the unhashed value, as in some databases of schema 5 (`kcls`
    /// of iOS 6.1).
    private static func containsValue(
      _ stored: ColumnValue, of item: KeychainItem, _ definition: AttributeDefinition
    ) -> Bool {
      guard definition.flags.contains(.hashedColumn) else { return false }
      let value = try? ItemColumns.value(item[definition.code], for: definition, isHashed: false)
      return value.map { stored.isSame(as: $0) } ?? false
    }
  }
}

extension ColumnValue {
  /// Returns whether the daemon treats both values as equal. An empty text equals an empty blob, and a date may be
  /// stored as an integer.
  fileprivate func isSame(as other: ColumnValue) -> Bool {
    if self == other || isEmptyTextOrBlob && other.isEmptyTextOrBlob { return true }
    if case .real(let seconds) = other { return realValue == seconds }
    return false
  }
}
