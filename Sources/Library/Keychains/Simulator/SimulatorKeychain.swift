package import Basics
package import KeychainCrypto
import KeychainFormats

/// A Simulator's keychain database, opened for changes.
///
/// SQLite's exclusive lock on the file is held from the start, and either all changes are committed or none. The schema
/// and all unaffected rows stay as they are. It was never tested whether a real Simulator accepts the result; the
/// daemon's requirements come from Apple's source (`SecItemDb.c`, `SecDbKeychainItemV7.m`).
///
/// Not safe for use from several threads at once.
package final class SimulatorKeychain {
  let database: KeychainConnection
  /// The path of the file, or `nil` if the database is in memory.
  private let path: String?
  let schema: KeychainDatabase.SchemaVersion
  /// The names of the columns of each item table.
  let columns: [ItemKind: Set<String>]
  /// Whether the table of keys has a column `actualKeyclass`.
  let namesActualClasses: Bool
  let random: any RandomSource
  var wrappedMetadataKeys: [KeyClass: SensitiveBytes]
  var keys: DatabaseKeys
  let keyStore: SimulatorKeyStore

  /// Opens an existing database.
  ///
  /// - Parameters:
  ///   - path: The path of the database. Its log is beside it.
  ///   - random: The source of keys and of references for new rows.
  /// - Throws: `.databaseBusy` if another process has it open, `.databaseNotWritable`, `.unchangeable` if the schema is
  ///   newer, if there are triggers or views, or if the keys are not a Simulator's; and all errors of reading a
  ///   database.
  package convenience init(
    path: String, random: any RandomSource = SystemRandomSource()
  ) throws(KeyhaulError) {
    try self.init(try KeychainConnection(path: path), path: path, random)
  }

  /// Creates an empty database in memory, with the newest schema that can be changed.
  ///
  /// - Parameter tables: The statements that create the tables of items, of the version and of the keys.
  /// - Throws: `.databaseFailed` if SQLite rejects a statement.
  package convenience init(
    creatingTables tables: [String], random: any RandomSource = SystemRandomSource()
  ) throws(KeyhaulError) {
    let database = try KeychainConnection(path: ":memory:")
    for statement in tables + SimulatorSchema.otherTables.map({ "CREATE TABLE \($0)" }) { try database.run(statement) }
    try database.run(
      "INSERT INTO tversion(version, minor) VALUES (?, ?)",
      [.integer(Int64(SimulatorSchema.newest.major)), .integer(Int64(SimulatorSchema.newest.minor))])
    try self.init(database, path: nil, random)
  }

  private init(
    _ database: KeychainConnection, path: String?, _ random: any RandomSource
  ) throws(KeyhaulError) {
    self.database = database
    self.path = path
    self.random = random
    try Self.rejectUnexpectedDefinitions(in: database)
    try Self.checkIndexes(of: database)
    schema = try Self.changeableSchema(of: database)
    columns = try Self.itemColumns(of: database)
    guard let keyColumns = try database.columns(of: "metadatakeys"), keyColumns.isSuperset(of: ["keyclass", "data"])
    else {
      throw KeyhaulError(.unknownDatabase, "it has no metadatakeys table")
    }
    namesActualClasses = keyColumns.contains("actualKeyclass")
    wrappedMetadataKeys = try KeychainDatabase.metadataKeys(of: database)
    keyStore = try Self.keyStore(of: wrappedMetadataKeys)
    keys = try Self.translatingErrors { [wrappedMetadataKeys] () throws(DataProtectionError) in
      try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys)
    }
  }

  /// Rejects a damaged index. An item whose row is missing from an index would not be found, and would be added a second
  /// time.
  private static func checkIndexes(of database: KeychainConnection) throws(KeyhaulError) {
    switch try database.indexState() {
    case .sound: break
    case .damaged:
      throw KeyhaulError(
        .databaseDamaged, "its indexes do not match its tables, so a change could add an item that is already there")
    case .unchecked:
      throw KeyhaulError(
        .unchangeable, "one of its indexes has an expression, which no Simulator's database has")
    }
  }

  private static func changeableSchema(
    of database: KeychainConnection
  ) throws(KeyhaulError) -> KeychainDatabase.SchemaVersion {
    guard let schema = try KeychainDatabase.schema(of: database) else {
      throw KeyhaulError(.unchangeable, "it does not state its schema version")
    }
    guard SimulatorSchema.isChangeable(schema) else {
      throw KeyhaulError(
        .unchangeable,
        "its schema is \(schema.text); Keyhaul can change schemas 11.0 to \(SimulatorSchema.newest.text)")
    }
    return schema
  }

  private static func itemColumns(
    of database: KeychainConnection
  ) throws(KeyhaulError) -> [ItemKind: Set<String>] {
    var columns: [ItemKind: Set<String>] = [:]
    for kind in ItemKind.allCases {
      guard let names = try database.columns(of: kind.rawValue), names.isSuperset(of: ["data", "sha1", "agrp"]) else {
        throw KeyhaulError(.unknownDatabase, "its \(kind.rawValue) table is not that of a keychain")
      }
      columns[kind] = names
    }
    return columns
  }

  /// Returns the key store that wrapped the keys, or the current key store if there are no keys.
  private static func keyStore(
    of wrappedKeys: [KeyClass: SensitiveBytes]
  ) throws(KeyhaulError) -> SimulatorKeyStore {
    var keyStore: SimulatorKeyStore?
    for key in wrappedKeys.values where !key.isEmpty {
      guard let detected = SimulatorKeyStore(detectedIn: key) else {
        throw KeyhaulError(.unchangeable, "its keys are not a Simulator's keys")
      }
      keyStore = keyStore ?? detected
    }
    return keyStore ?? .sinceIOS13
  }

  /// Rejects triggers and views, because their SQL could run when a row changes. A Simulator's database has neither.
  private static func rejectUnexpectedDefinitions(in database: KeychainConnection) throws(KeyhaulError) {
    try database.forEachRow("SELECT type FROM main.sqlite_schema WHERE type NOT IN ('table', 'index') LIMIT 1") {
      (row) throws(KeyhaulError) in
      throw KeyhaulError(
        .unchangeable,
        "it defines a \(row.text(0) ?? "thing"), which no Simulator's database does")
    }
  }

  /// Calls a closure and converts an error that the database did not cause.
  static func translatingErrors<Result>(
    _ work: () throws(DataProtectionError) -> Result
  ) throws(KeyhaulError) -> Result {
    try converting({ KeyhaulError(.databaseFailed, $0.reason) }, work)
  }

  /// Returns whether the database is unchanged since it was read. Call it before any change.
  ///
  /// SQLite undoes an unfinished change when it opens a database. The file and its journal may then differ from the
  /// files that were read, although the content is equal.
  ///
  /// - Parameter image: The database as it was read (`KeychainDatabase.image`).
  /// - Throws: `.databaseFailed` if there is not enough memory.
  package func isUnchanged(since image: [UInt8]) throws(KeyhaulError) -> Bool {
    try database.hasContent(of: image)
  }

  /// Commits all changes. Nothing can be changed afterwards.
  ///
  /// If SQLite reports a failure, the file is opened again. The content that SQLite then reads decides whether the
  /// change was made.
  ///
  /// - Parameter image: The database before the change (`KeychainDatabase.image`).
  /// - Throws: An error of stage `afterCommit` if the changes are in the file; `.unknownOutcome` if the file cannot be
  ///   opened again. After any other error, nothing was changed.
  package func commit(changing image: [UInt8]) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      try database.commit()
    } catch {
      guard let path, error.stage == .beforeCommit else { throw error }
      database.close()
      let isUnchanged: Bool
      do throws(KeyhaulError) {
        isUnchanged = try KeychainConnection(path: path).hasContent(of: image)
      } catch let openingError {
        throw KeyhaulError(
          .unknownOutcome, "\(error.reason); afterwards the database could not be opened: \(openingError.reason)")
      }
      throw isUnchanged ? error : error.with(stage: .afterCommit)
    }
  }

  /// Commits all changes and calls a closure with the bytes of the file, whose secrets are not protected. Nothing can
  /// be changed afterwards.
  ///
  /// - Returns: The closure's result, or `nil` if the commit fails.
  package func committed<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard (try? database.commit()) != nil else { return nil }
    return try database.withImage(body)
  }
}

extension SimulatorKeychain {
  /// Creates the key of a class if the database has none. An existing key is never replaced, because other rows need
  /// that key.
  func createKeyIfNeeded(of protection: ProtectionClass) throws(KeyhaulError) {
    let keyClass = protection.keyClass
    guard wrappedMetadataKeys[keyClass]?.isEmpty ?? true else { return }
    let key = try Self.translatingErrors { [random] () throws(DataProtectionError) in
      SensitiveBytes(copying: try random.bytes(Self.metadataKeyByteCount))
    }
    let wrapped = try wrapped(key, for: protection)
    let name = ColumnValue.text(String(keyClass.rawValue))
    let data = wrapped.withBytes { ColumnValue.blob(Array($0)) }
    if namesActualClasses {
      try database.run(
        "INSERT OR REPLACE INTO main.metadatakeys(keyclass, actualKeyclass, data) VALUES (?, ?, ?)", [name, name, data])
    } else {
      try database.run("INSERT OR REPLACE INTO main.metadatakeys(keyclass, data) VALUES (?, ?)", [name, data])
    }
    wrappedMetadataKeys[keyClass] = wrapped
    keys = try Self.translatingErrors { [wrappedMetadataKeys] () throws(DataProtectionError) in
      try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys)
    }
  }

  /// The length of the key that encrypts the attributes of a class's items.
  private static let metadataKeyByteCount = 32

  private func wrapped(
    _ key: SensitiveBytes, for protection: ProtectionClass
  ) throws(KeyhaulError) -> SensitiveBytes {
    let secret = key.withBytes { Secret(copying: $0) }
    do throws(ItemCryptoError) {
      return try keys.wrap(secret, for: protection, .simulator(keyStore))
    } catch {
      throw KeyhaulError(.databaseFailed, error.reason)
    }
  }
}
