package import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// A keychain database as its file gives it: `keychain-2-debug.db` of a Simulator, `keychain-2.db` of a device or a Mac.
///
/// It is read from memory: nothing is written, beside the file or anywhere else, and nothing that the file defines, a
/// trigger or a view, is run. Source: Apple `SecItemSchema.c`, `SecItemDb.c`; no database of a real Simulator was
/// available.
package struct KeychainDatabase: Sendable {
  /// The version of its schema; `nil` if the table `tversion` has no row that names one.
  package let schema: SchemaVersion?
  /// The rows of the item tables in the order genp, inet, cert, keys, each by its row's number.
  package let rows: [Row]
  /// Tables of items that are not there, or lack a column without which no item can be read.
  package let missingTables: [ItemKind]
  /// The column `data` of `metadatakeys` by its class. Those of a Simulator are keys in clear, with eight bytes behind.
  package let wrappedMetadataKeys: [KeyClass: SensitiveBytes]
  /// Whether SQLite finds nothing wrong with its pages, its log applied.
  package let isIntact: Bool
  /// Whether each index lists every row of its table, after the log is applied.
  package let indexState: DatabaseIndexState
  /// The bytes of one file that holds all of it, its log applied: a checkpointed copy.
  package let image: [UInt8]
  /// What became of the log beside it.
  package let log: DatabaseFacts.LogUse

  /// The version of a schema, "12.11".
  package struct SchemaVersion: Sendable, Hashable {
    /// What a daemon of another one refuses where it is higher.
    package let major: Int
    /// Accepted higher than known.
    package let minor: Int

    /// "12.11"
    package var text: String { "\(major).\(minor)" }

    /// Creates a version.
    ///
    /// - Parameters:
    ///   - major: What a daemon of another one refuses where it is higher.
    ///   - minor: Accepted higher than known.
    package init(major: Int, minor: Int) {
      self.major = major
      self.minor = minor
    }
  }

  /// A row of an item table.
  package struct Row: Sendable {
    /// The table.
    package let kind: ItemKind
    /// Its number in the table.
    package let number: Int64
    /// The column `data`: the sealed item. Empty where the column holds no data.
    package let sealed: [UInt8]
    /// The column `sha1`; `nil` if it holds no data, or if the table has no such column.
    package let digest: [UInt8]?
    /// Whether the table has a column `sha1`; those of iOS 6 and before, schema 5, have none.
    package let hasDigestColumn: Bool
    /// Every other column whose name is known, as it stands.
    package let columns: [AttributeCode: ColumnValue]

    /// The version word of the item without its highest bit; `nil` for fewer than four bytes.
    package var version: UInt32? { ItemBlob.versionNumber(of: sealed) }
  }

  /// The most rows of items that a database may have.
  package static let maximumItemCount = 200_000
  /// The most bytes of a database, and of its log.
  package static let maximumByteCount = DatabaseImage.maximumByteCount
  /// How many bytes of a file's start `mayBegin` wants to see.
  package static let signatureByteCount = 16

  /// Whether a file that begins so may be an SQLite database.
  package static func mayBegin(with start: [UInt8]) -> Bool { start.starts(with: "SQLite format 3\0".utf8) }

  /// Reads a database.
  ///
  /// - Parameters:
  ///   - file: The whole file, at most 256 MiB.
  ///   - log: The whole file `-wal` that was beside it; empty where none was.
  ///   - journal: The whole file `-journal` that was beside it; empty where none was.
  /// - Throws: `.notADatabase` for no SQLite database, `.unknownDatabase` for none of a keychain, `.databaseDamaged`,
  ///   `.databaseOverLimit`, and `.databaseFailed` where SQLite does not work.
  package init(file: [UInt8], log: [UInt8] = [], journal: [UInt8] = []) throws(KeyhaulError) {
    try self.init(file: file, log: log, journal: journal, acceptingAtMost: Self.maximumItemCount)
  }

  /// The same with another limit of rows.
  package init(
    file: [UInt8], log: [UInt8], journal: [UInt8] = [], acceptingAtMost limit: Int
  ) throws(KeyhaulError) {
    let (database, image, use) = try Self.opened(DatabaseImage(file), log, journal)
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
          kind: kind, number: row.number(0) ?? 0, sealed: row.data(1) ?? [], digest: row.data(2),
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
        try Self.holdsItems(database)
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
    self.log = use
  }

  /// With what its log has committed, or without the change that its journal takes back: a database has one of the two, and
  /// beside a log with content a journal is not looked at.
  private static func opened(
    _ image: DatabaseImage, _ logBytes: [UInt8], _ journalBytes: [UInt8]
  ) throws(KeyhaulError) -> (KeychainConnection, DatabaseImage, DatabaseFacts.LogUse) {
    guard !logBytes.isEmpty else {
      guard let journal = RollbackJournal(journalBytes) else {
        let isFinished = RollbackJournal.isFinished(journalBytes)
        return (try KeychainConnection(image), image, isFinished ? .none : .journalUnreadable)
      }
      return try settled(image, as: .takenBack, "its journal") { () throws(KeyhaulError) in
        try image.takingBack(journal, of: journalBytes)
      }
    }
    guard let log = WriteAheadLog(logBytes), log.pageCount > 0 else {
      return (try KeychainConnection(image), image, .unreadable)
    }
    guard log.pageByteCount == image.pageByteCount else { return (try KeychainConnection(image), image, .foreign) }
    return try settled(image, as: log.isCutShort ? .appliedInPart : .applied, "its log") {
      () throws(KeyhaulError) in try image.applying(log, of: logBytes)
    }
  }

  /// What another file leaves of a database, where that is an intact one of items; the database alone otherwise.
  private static func settled(
    _ image: DatabaseImage, as use: DatabaseFacts.LogUse, _ other: String,
    _ change: () throws(KeyhaulError) -> DatabaseImage
  ) throws(KeyhaulError) -> (KeychainConnection, DatabaseImage, DatabaseFacts.LogUse) {
    do throws(KeyhaulError) {
      let changed = try change()
      let database = try KeychainConnection(changed)
      // One of another database may be intact, and none of a keychain.
      if try database.isIntact(), try holdsItems(database) { return (database, changed, use) }
    } catch {
      guard error.code == .databaseDamaged || error.code == .notADatabase else { throw error }
    }
    let alone = try KeychainConnection(image)
    guard try alone.isIntact() else {
      throw KeyhaulError(.databaseDamaged, "its pages contradict each other, both with and without \(other)")
    }
    return (alone, image, .foreign)
  }

  /// Whether a table of items is there.
  private static func holdsItems(_ database: KeychainConnection) throws(KeyhaulError) -> Bool {
    for kind in ItemKind.allCases where try database.columns(of: kind.rawValue) != nil { return true }
    return false
  }

  /// The low eight bits of both columns: the others are flags of the daemon.
  static func schema(of database: KeychainConnection) throws(KeyhaulError) -> SchemaVersion? {
    guard let columns = try database.columns(of: "tversion"), columns.contains("version") else { return nil }
    let minor = columns.contains("minor") ? "minor" : "0"
    var version: SchemaVersion?
    try database.forEachRow("SELECT version, \(minor) FROM main.tversion LIMIT 1") { row in
      guard let major = row.number(0), let minor = row.number(1) else { return }
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

  /// There are seven classes.
  private static let maximumKeyRowCount = 1000
}

extension ColumnValue {
  /// The bytes of a text or of data; none of a number.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes.count
    case .null, .integer, .real: 0
    }
  }
}

extension KeychainDatabase {
  /// The keys that open its items: those of a Simulator are in the database itself.
  ///
  /// - Parameter classKeys: Of a device, 32 bytes for each class: its own keybag's, not a backup's.
  /// - Throws: `.malformed` for a key of another length.
  package func keys(
    classKeys: [KeyClass: SensitiveBytes] = [:]
  ) throws(DataProtectionError) -> DatabaseKeys {
    try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys, classKeys: classKeys)
  }

  /// Every row with what of it opens, in the order of `rows`; none is left out.
  ///
  /// - Throws: What is not an item's fault.
  package func opened(with keys: DatabaseKeys) throws(DataProtectionError) -> [OpenedRow] {
    var all: [OpenedRow] = []
    for row in rows { all.append(try OpenedRow(row, opened: keys.open(row: row.sealed, kind: row.kind))) }
    return all
  }

  /// Whether an item has no key because the database itself has none for its class: then nothing opens it.
  package func lacksKey(of opened: OpenedDatabaseItem) -> Bool {
    guard opened.fault?.place == .metadataClassKey, let keyClass = opened.keyClass else { return false }
    return wrappedMetadataKeys[keyClass.withoutGeneration]?.isEmpty ?? true
  }

  /// A row with what of it opens.
  package struct OpenedRow: Sendable {
    /// The row.
    package let row: Row
    /// What of it opens, and what keeps the rest shut.
    package let opened: OpenedDatabaseItem
    /// Whether the column `sha1` is the digest of the content; `nil` if the secret is shut or there is no such column.
    package let hasFittingDigest: Bool?
    /// The columns that say something else than the attributes do from which they are made; none where the attributes
    /// are shut.
    package let differingColumns: [AttributeCode]

    init(_ row: Row, opened: OpenedDatabaseItem) {
      self.row = row
      self.opened = opened
      hasFittingDigest =
        opened.isOpen && row.hasDigestColumn ? opened.item.flatMap { try? $0.digest() }.map { row.digest == $0 } : nil
      differingColumns = opened.item.map { Self.differences(of: row, from: $0) } ?? []
    }

    /// What stands in a column alone, or is made again from something else: nothing in the item tells it.
    private static let ownColumns: Set<AttributeCode> = [.appClip, .accessControl]

    private static func differences(of row: Row, from item: KeychainItem) -> [AttributeCode] {
      ColumnDefinitions.all(of: row.kind).compactMap { definition in
        guard let stored = row.columns[definition.code], !ownColumns.contains(definition.code) else { return nil }
        // Of an absent attribute some releases write the default of its kind, others nothing.
        if stored == .null, item[definition.code] == nil { return nil }
        // A value that no column can have is the item's own matter.
        guard let expected = try? ItemColumns.value(item[definition.code], for: definition) else { return nil }
        if stored.isSame(as: expected) || !row.hasDigestColumn && holdsValue(stored, of: item, definition) {
          return nil
        }
        return definition.code
      }
    }

    /// Whether a column that newer schemas hash holds the value itself, as some of schema 5 do (`kcls` of iOS 6.1).
    private static func holdsValue(
      _ stored: ColumnValue, of item: KeychainItem, _ definition: AttributeDefinition
    ) -> Bool {
      guard definition.flags.contains(.hashedColumn) else { return false }
      let value = try? ItemColumns.value(item[definition.code], for: definition, isHashed: false)
      return value.map { stored.isSame(as: $0) } ?? false
    }
  }
}

extension ColumnValue {
  /// Whether a daemon takes both for the same: an empty text and empty data are, and a date may stand as a whole number.
  fileprivate func isSame(as other: ColumnValue) -> Bool {
    if self == other || isEmptyTextOrBlob && other.isEmptyTextOrBlob { return true }
    if case .real(let seconds) = other { return realValue == seconds }
    return false
  }
}
