package import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules
import SystemPackage

/// A Simulator's keychain database, opened for changes.
///
/// The database is locked exclusively from the start, and either all changes are committed or none. The schema and all
/// unaffected rows stay as they are. It was never tested whether a real Simulator accepts the result;
/// the daemon's requirements come from Apple's source (`SecItemDb.c`, `SecDbKeychainItemV7.m`).
///
/// Not safe for use from several threads at once.
package final class SimulatorKeychain {
  let database: KeychainConnection
  /// The path of the file, or `nil` if the database is in memory.
  private let path: String?
  private let schema: KeychainDatabase.SchemaVersion
  /// The names of the columns of each item table.
  private let columns: [ItemKind: Set<String>]
  /// Whether the table of keys has a column `actualKeyclass`.
  let namesActualClasses: Bool
  let random: any RandomSource
  var wrappedMetadataKeys: [KeyClass: SensitiveBytes]
  var keys: DatabaseKeys
  let keyStore: SimulatorKeyStore

  /// The result of inserting an item.
  package enum InsertResult: Sendable, Hashable {
    /// There was no item with the same primary key.
    case added
    /// The item replaced the one with the same primary key. The row number and the persistent reference stay.
    case replaced
    /// There was an item with the same primary key, which was kept.
    case kept
  }

  /// The newest schema that can be changed. Newer ones can only be read.
  package static let newestSchema = KeychainDatabase.SchemaVersion(major: 12, minor: 11)

  /// Opens an existing database.
  ///
  /// - Parameters:
  ///   - path: The path of the database. Its log is beside it.
  ///   - random: The source of keys and of references for new rows.
  /// - Throws: `.databaseBusy` if another process has it open, `.databaseNotWritable`, `.unchangeable` if the schema is
  ///   newer, if there are triggers or views, or if the keys are not a Simulator's; and all errors of reading it.
  package convenience init(
    path: String, random: any RandomSource = SystemRandomSource()
  ) throws(KeyhaulError) {
    try self.init(try KeychainConnection(path: path), path, random)
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
      [.integer(Int64(Self.newestSchema.major)), .integer(Int64(Self.newestSchema.minor))])
    try self.init(database, nil, random)
  }

  private init(
    _ database: KeychainConnection, _ path: String?, _ random: any RandomSource
  ) throws(KeyhaulError) {
    self.database = database
    self.path = path
    self.random = random
    try Self.rejectUnexpectedDefinitions(in: database)
    try Self.requireSoundIndexes(in: database)
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

  // MARK: Checks before a change

  /// Rejects a damaged index. An item whose row is missing from an index would not be found, and would be added a second
  /// time.
  private static func requireSoundIndexes(in database: KeychainConnection) throws(KeyhaulError) {
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
    let newest = newestSchema
    guard schema.major == 11 || schema.major == newest.major && schema.minor <= newest.minor else {
      throw KeyhaulError(
        .unchangeable, "its schema is \(schema.text); Keyhaul can change schemas 11.0 to \(newest.text)")
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

  /// Returns the key store that wrapped the keys, or the current one if there are no keys.
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

  /// Rejects triggers and views, which SQL could run when a row changes. A Simulator's database has neither.
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

  /// Deletes every row, including tombstones, whose column names one of these access groups.
  ///
  /// - Returns: The number of deleted rows.
  package func removeItems(ofGroups groups: [String]) throws(KeyhaulError) -> Int {
    var count = 0
    for kind in ItemKind.allCases {
      for group in Set(groups) {
        count += try database.run("DELETE FROM main.\(kind.rawValue) WHERE agrp = ?", [.text(group)])
      }
    }
    return count
  }

  /// Inserts an item, encrypted with a new item key.
  ///
  /// - Parameters:
  ///   - item: The decrypted item. An item without a persistent reference gets one.
  ///   - replacingExisting: Whether the item replaces one with the same primary key.
  /// - Throws: `.malformed`, with the reason, if the item cannot be encrypted.
  package func insert(_ item: KeychainItem, replacingExisting: Bool) throws(KeyhaulError) -> InsertResult {
    var item = item
    let existing = try existingRow(like: item)
    guard existing == nil || replacingExisting else { return .kept }
    let appClipFlag = item[.appClip]
    item[.appClip] = nil
    let reference = existing?.reference ?? item[.persistentReference]?.dataValue ?? []
    item[.persistentReference] = .data(
      reference.count == 16
        ? reference : try Self.translatingErrors { [random] () throws(DataProtectionError) in try random.bytes(16) })
    var values = try values(of: item)
    if let appClipFlag = appClipFlag?.integerValue, columns[item.kind]?.contains("clip") == true {
      values.append((.appClip, .integer(appClipFlag)))
    }
    if let existing {
      try overwrite(existing.number, of: item.kind, with: values)
      return .replaced
    }
    let names = values.map { "\"\($0.code.rawValue)\"" }.joined(separator: ", ")
    let placeholders = values.map { _ in "?" }.joined(separator: ", ")
    try database.run("INSERT INTO main.\(item.kind.rawValue)(\(names)) VALUES (\(placeholders))", values.map(\.value))
    return .added
  }

  /// Replaces the item of a row, encrypted with a new item key. The persistent reference is kept if the item has it.
  ///
  /// - Throws: `.databaseDuplicate` if another row has the item's primary key; `.malformed` if the item cannot be
  ///   encrypted or the row does not exist.
  package func replace(row: Int64, with item: KeychainItem) throws(KeyhaulError) {
    if let existing = try existingRow(like: item), existing.number != row {
      throw KeyhaulError(.databaseDuplicate, "another \(item.kind.reportName) has the same primary key")
    }
    var item = item
    item[.appClip] = nil
    try overwrite(row, of: item.kind, with: try values(of: item))
  }

  /// Deletes a row.
  ///
  /// - Throws: `.malformed` if the row does not exist.
  package func remove(row: Int64, of kind: ItemKind) throws(KeyhaulError) {
    guard try database.run("DELETE FROM main.\(kind.rawValue) WHERE rowid = ?", [.integer(row)]) == 1 else {
      throw .missingRow
    }
  }

  private func overwrite(
    _ row: Int64, of kind: ItemKind, with values: [(code: AttributeCode, value: ColumnValue)]
  ) throws(KeyhaulError) {
    let assignments = values.map { "\"\($0.code.rawValue)\" = ?" }.joined(separator: ", ")
    let count = try database.run(
      "UPDATE main.\(kind.rawValue) SET \(assignments) WHERE rowid = ?", values.map(\.value) + [.integer(row)])
    guard count == 1 else { throw .missingRow }
  }

  /// Returns whether the database is unchanged since it was read. Call it before any change.
  ///
  /// SQLite undoes an unfinished change when it opens a database. The file and its journal may then differ from the
  /// ones that were read, although the content is equal.
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

  // MARK: Rows

  private func existingRow(
    like item: KeychainItem
  ) throws(KeyhaulError) -> (number: Int64, reference: [UInt8]?)? {
    let columnNames = columns[item.kind] ?? []
    var conditions: [String] = []
    var values: [ColumnValue] = []
    for definition in ColumnDefinitions.primaryKey(of: item.kind) where columnNames.contains(definition.code.rawValue) {
      let value = try column(item[definition.code], definition)
      // Empty data may be stored as text or as a blob.
      let name = "\"\(definition.code.rawValue)\""
      conditions.append(value.isEmptyTextOrBlob ? "(\(name) = ? OR \(name) = x'')" : "\(name) = ?")
      values.append(value)
    }
    let reference = columnNames.contains("persistref") ? "persistref" : "NULL"
    var existing: (number: Int64, reference: [UInt8]?)?
    try database.forEachRow(
      "SELECT rowid, \(reference) FROM main.\(item.kind.rawValue) WHERE \(conditions.joined(separator: " AND "))",
      values
    ) { row in existing = row.integer(0).map { ($0, row.data(1)) } }
    return existing
  }

  private func values(of item: KeychainItem) throws(KeyhaulError) -> [(code: AttributeCode, value: ColumnValue)] {
    guard let protection = item.protection else {
      throw .unstorableItem("an item has no protection class")
    }
    try createKeyIfNeeded(of: protection)
    var values: [(code: AttributeCode, value: ColumnValue)] = []
    let columnNames = columns[item.kind] ?? []
    for definition in ColumnDefinitions.all(of: item.kind)
    where columnNames.contains(definition.code.rawValue) && !Self.speciallyWrittenColumns.contains(definition.code) {
      values.append((definition.code, try column(item[definition.code], definition)))
    }
    let version: DatabaseItemBlob.Version = schema.major >= 12 ? .v8 : .v7
    do throws(ItemCryptoError) {
      var itemToEncrypt = item
      let control = try Self.removeAccessControl(from: &itemToEncrypt, protection)
      let blob = try keys.seal(
        itemToEncrypt, accessControl: control, version: version, wrapping: .simulator(keyStore), random: random)
      values += [("data", .blob(try Self.bytes(of: blob))), ("sha1", .blob(try item.digest()))]
    } catch {
      throw .unstorableItem("an item cannot be encrypted: \(error.reason)")
    }
    return values
  }

  /// Columns whose values are not computed from the attribute of the same name.
  private static let speciallyWrittenColumns: Set<AttributeCode> = ["rowid", "data", "sha1", .appClip]

  private static func bytes(of blob: DatabaseItemBlob) throws(ItemCryptoError) -> [UInt8] {
    do throws(FormatError) { return try blob.serialized() } catch { throw ItemCryptoError(.malformed(error)) }
  }

  /// Removes the constraints from the item, because a database item stores them separately.
  ///
  /// - Returns: The access control with these constraints, or `nil` if the item has none.
  private static func removeAccessControl(
    from item: inout KeychainItem, _ protection: ProtectionClass
  ) throws(ItemCryptoError) -> ItemAccessControl? {
    guard let constraints = item[.accessControl]?.dictionaryValue else { return nil }
    item[.accessControl] = nil
    do throws(FormatError) {
      return try ItemAccessControl(members: [
        ItemAccessControl.protectionKey: .string(protection.rawValue),
        ItemAccessControl.constraintsKey: .dictionary(constraints),
      ])
    } catch {
      throw ItemCryptoError(.malformed(error))
    }
  }

  private func column(
    _ value: PropertyValue?, _ definition: AttributeDefinition
  ) throws(KeyhaulError) -> ColumnValue {
    do throws(KeychainRuleError) {
      return try ItemColumns.value(value, for: definition)
    } catch {
      throw .unstorableItem("an item cannot be stored: \(error.reason)")
    }
  }
}

extension SimulatorKeychain {
  /// Creates the key of a class if the database has none. An existing key is never replaced, because other rows need
  /// it.
  func createKeyIfNeeded(of protection: ProtectionClass) throws(KeyhaulError) {
    let keyClass = protection.keyClass
    guard wrappedMetadataKeys[keyClass]?.isEmpty ?? true else { return }
    let key = try Self.translatingErrors { [random] () throws(DataProtectionError) in
      SensitiveBytes(copying: try random.bytes(32))
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

extension SimulatorKeychain {
  /// Replaces a database file with a snapshot, byte for byte.
  ///
  /// The snapshot is written and synced beside the file. The file's log is then merged and removed, because SQLite
  /// would apply it to the new file, and the new file takes the name. If the process is killed at any moment, the file
  /// either has its previous items or is the snapshot.
  ///
  /// - Parameters:
  ///   - path: The path of the database to replace.
  ///   - snapshot: The database to write (`KeychainDatabase.image`).
  ///   - image: The database to replace, as it was read.
  ///   - system: The file system.
  /// - Throws: `.databaseBusy` if another process has the file open or has changed it, `.unchangeable` if the
  ///   snapshot's keys are not a Simulator's, and errors of writing. An error of stage `afterCommit` if the file was
  ///   replaced but may not be on the disk yet.
  package static func replace(
    at path: String, with snapshot: KeychainDatabase, changing image: [UInt8], system: FileSystem = .real
  ) throws(KeyhaulError) {
    let snapshotKeys = snapshot.wrappedMetadataKeys.values.filter { !$0.isEmpty }
    guard snapshotKeys.allSatisfy({ SimulatorKeyStore(detectedIn: $0) != nil }) else {
      throw KeyhaulError(.unchangeable, "the snapshot's keys are not a Simulator's keys")
    }
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.databaseNotWritable, "it has no file name")
    }
    let database = try KeychainConnection(path: path)
    guard try database.hasContent(of: image) else {
      throw KeyhaulError(.databaseBusy, "another process has changed it since Keyhaul read it")
    }
    var replacement = FileReplacement(destination, system)
    replacement.preservedAccess = .all
    let result = try replacement.write(
      explaining: { refusal in
        switch refusal {
        case .system(let errno): KeyhaulError(.databaseDisk, errno.reason, errno: errno)
        case .occupied: KeyhaulError(.databaseNotWritable, "it is not a regular file")
        }
      },
      check: { (_) throws(KeyhaulError) in try database.removeLog() },
      fill: { (file) throws(KeyhaulError) in
        do throws(Errno) {
          try system.writeAll(snapshot.image, to: file)
        } catch {
          throw KeyhaulError(.databaseDisk, error.reason, errno: error)
        }
        return Int64(snapshot.image.count)
      })
    database.close()
    if let errno = result.nameFailure {
      throw KeyhaulError(.databaseDisk, errno.reason, errno: errno).with(stage: .afterCommit)
    }
  }
}
