package import Basics
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
  /// The column `data` of `metadatakeys` for each class. In a Simulator's database, this is the unencrypted key, followed
  /// by eight bytes.
  package let wrappedMetadataKeys: [KeyClass: SensitiveBytes]
  /// Whether SQLite finds no fault in the pages after the log is applied.
  package let isIntact: Bool
  /// Whether each index lists every row of its table, after the log is applied.
  package let indexState: DatabaseIndexState
  /// The complete database as one file, with its log applied.
  package let image: [UInt8]
  /// The result of applying the database's journal files.
  package let journalStatus: DatabaseDetails.JournalStatus

  /// The version of a schema, such as "12.11".
  package struct SchemaVersion: Sendable, Hashable {
    /// The major version. A daemon rejects a database with a higher major version than its own.
    package let major: Int
    /// The minor version. A daemon also accepts a higher minor version than its own.
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
    package let encryptedItem: [UInt8]
    /// The column `sha1`; `nil` if it contains no data, or if the table has no such column.
    package let digest: [UInt8]?
    /// Whether the table has a column `sha1`. The tables of iOS 6 and earlier (schema 5) do not have this column.
    package let hasDigestColumn: Bool
    /// The stored values of all other known columns.
    package let columns: [AttributeCode: ColumnValue]

    /// The version word of the item without its highest bit; `nil` if the item has fewer than four bytes.
    package var version: UInt32? { ItemBlob.versionNumber(of: encryptedItem) }
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
  ///   - file: The contents of the file, at most 256 MiB.
  ///   - log: The contents of the `-wal` file, or empty if there is none.
  ///   - journal: The contents of the `-journal` file, or empty if there is none.
  /// - Throws: `.notADatabase` if the file is not an SQLite database, `.unknownDatabase` if it is not a keychain,
  ///   `.databaseDamaged`, `.databaseOverLimit`, and `.databaseFailed` if SQLite does not work.
  package init(file: [UInt8], log: [UInt8] = [], journal: [UInt8] = []) throws(KeyhaulError) {
    try self.init(file: file, log: log, journal: journal, acceptingAtMost: Self.maximumItemCount)
  }

  /// Reads a database with a given limit on the number of item rows.
  package init(
    file: [UInt8], log: [UInt8], journal: [UInt8] = [], acceptingAtMost limit: Int
  ) throws(KeyhaulError) {
    let (database, image, status) = try Self.opened(DatabaseImage(file), log: log, journal: journal)
    schema = try Self.schema(of: database)
    wrappedMetadataKeys = try Self.metadataKeys(of: database)
    var reader = RowReader(database, limit: limit, maximumByteCount: image.bytes.count)
    for kind in ItemKind.allCases { try reader.readTable(of: kind) }
    guard reader.missingTables.count < ItemKind.allCases.count else {
      throw KeyhaulError(
        .unknownDatabase,
        try Self.containsItemTable(database)
          ? "its item tables have no column named data" + (schema.map { "; its schema is \($0.text)" } ?? "")
          : "it has none of the item tables")
    }
    rows = reader.rows
    missingTables = reader.missingTables
    isIntact = try database.isIntact()
    indexState = isIntact ? try database.indexState() : .unchecked
    self.image = image.bytes
    journalStatus = status
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

extension KeychainDatabase {
  /// Reads the rows of all item tables, within the limits on their number and size.
  private struct RowReader {
    private let database: KeychainConnection
    private let limit: Int
    private let maximumByteCount: Int
    private var byteCount = 0
    private(set) var rows: [Row] = []
    private(set) var missingTables: [ItemKind] = []

    init(_ database: KeychainConnection, limit: Int, maximumByteCount: Int) {
      self.database = database
      self.limit = limit
      self.maximumByteCount = maximumByteCount
    }

    /// Reads a table, or records that it is missing.
    mutating func readTable(of kind: ItemKind) throws(KeyhaulError) {
      guard let columns = try database.columns(of: kind.rawValue), columns.contains("data") else {
        missingTables.append(kind)
        return
      }
      let hasDigestColumn = columns.contains("sha1")
      let codes = ColumnDefinitions.all(of: kind).map(\.code).filter { code in
        columns.contains(code.rawValue) && !["rowid", "data", "sha1"].contains(code.rawValue)
      }
      let names = codes.map { ", \"\($0.rawValue)\"" }.joined()
      let digest = hasDigestColumn ? "sha1" : "NULL"
      let firstValueIndex = 3
      try database.forEachRow("SELECT rowid, data, \(digest)\(names) FROM main.\(kind.rawValue) ORDER BY rowid") {
        (row) throws(KeyhaulError) in
        var values: [AttributeCode: ColumnValue] = [:]
        for (index, code) in codes.enumerated() { values[code] = row.value(Int32(firstValueIndex + index)) }
        try append(
          Row(
            kind: kind, number: row.integer(0) ?? 0, encryptedItem: row.data(1) ?? [], digest: row.data(2),
            hasDigestColumn: hasDigestColumn, columns: values))
      }
    }

    private mutating func append(_ row: Row) throws(KeyhaulError) {
      guard rows.count < limit else {
        throw KeyhaulError(.databaseOverLimit, "it has more than \(limit) items")
      }
      byteCount +=
        row.encryptedItem.count + (row.digest?.count ?? 0) + row.columns.values.reduce(0) { $0 + $1.byteCount }
      // Rows that share their pages would take more memory than the file has bytes.
      guard byteCount <= maximumByteCount else {
        throw KeyhaulError(.databaseOverLimit, "its rows contain more bytes than the file")
      }
      rows.append(row)
    }
  }
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
  /// An open database, its complete content, and the result of applying its journal files.
  private typealias OpenedDatabase = (
    connection: KeychainConnection, image: DatabaseImage, status: DatabaseDetails.JournalStatus
  )

  /// Opens the database with the committed changes of its log, or without the unfinished change of its journal. If there
  /// is a log with content, the journal is ignored.
  private static func opened(
    _ image: DatabaseImage, log logBytes: [UInt8], journal journalBytes: [UInt8]
  ) throws(KeyhaulError) -> OpenedDatabase {
    guard logBytes.isEmpty else { return try opened(image, log: logBytes) }
    return try opened(image, journal: journalBytes)
  }

  private static func opened(
    _ image: DatabaseImage, journal journalBytes: [UInt8]
  ) throws(KeyhaulError) -> OpenedDatabase {
    guard let journal = RollbackJournal(journalBytes) else {
      let isFinished = RollbackJournal.isFinished(journalBytes)
      return (try KeychainConnection(image), image, isFinished ? .none : .journalUnreadable)
    }
    return try openedAfterChange(image, as: .rolledBack, named: "its journal") { () throws(KeyhaulError) in
      try image.rollingBack(journal, of: journalBytes)
    }
  }

  private static func opened(
    _ image: DatabaseImage, log logBytes: [UInt8]
  ) throws(KeyhaulError) -> OpenedDatabase {
    guard let log = WriteAheadLog(logBytes), log.pageCount > 0 else {
      return (try KeychainConnection(image), image, .unreadable)
    }
    guard log.pageByteCount == image.pageByteCount else { return (try KeychainConnection(image), image, .unrelated) }
    return try openedAfterChange(
      image, as: log.hasUncommittedFrames ? .partiallyApplied : .applied, named: "its log"
    ) {
      () throws(KeyhaulError) in try image.applying(log, of: logBytes)
    }
  }

  /// Applies a journal file if the result is an intact keychain database. Otherwise opens the database without it.
  ///
  /// - Parameters:
  ///   - image: The database without the journal file.
  ///   - status: The status if the journal file is applied.
  ///   - name: The name of the journal file in error messages.
  ///   - change: Applies the journal file.
  private static func openedAfterChange(
    _ image: DatabaseImage, as status: DatabaseDetails.JournalStatus, named name: String,
    _ change: () throws(KeyhaulError) -> DatabaseImage
  ) throws(KeyhaulError) -> OpenedDatabase {
    do throws(KeyhaulError) {
      let changedImage = try change()
      let database = try KeychainConnection(changedImage)
      // The log of another database may result in an intact database that is not a keychain.
      if try database.isIntact(), try containsItemTable(database) { return (database, changedImage, status) }
    } catch {
      guard error.code == .databaseDamaged || error.code == .notADatabase else { throw error }
    }
    let database = try KeychainConnection(image)
    guard try database.isIntact() else {
      throw KeyhaulError(.databaseDamaged, "its pages contradict each other, both with and without \(name)")
    }
    return (database, image, .unrelated)
  }

  /// Returns whether the database has an item table.
  private static func containsItemTable(_ database: KeychainConnection) throws(KeyhaulError) -> Bool {
    for kind in ItemKind.allCases where try database.columns(of: kind.rawValue) != nil { return true }
    return false
  }
}
