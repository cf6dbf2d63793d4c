package import Basics
import CSQLite
import GRDB
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A device's keychain: Apple's `keychain-2.db`, with items encrypted by the device's class keys.
///
/// Calls do not keep the keys. A call that changes something is one transaction: if the process is
/// killed, the file has either the old or the new content. A store may be used from several threads, and calls run one
/// after another. A closure that receives a row or a transaction must not call the store.
///
/// After `close()` every call throws `.closed`.
package final class KeychainStore: Sendable {
  /// The time from which a finished call survives a power failure. Killing the process never undoes a finished call.
  package enum Durability: Sendable {
    /// When the call returns. It waits for the disk.
    case eachCall
    /// When `close()` returns. Many calls wait for the disk once.
    case onClose
  }

  private let queue: DatabaseQueue
  private let durability: Durability
  private let shouldContinue: @Sendable () -> Bool
  /// Accessed only on the queue.
  private nonisolated(unsafe) var isClosed = false
  private let commits = Atomic<Int>(0)

  /// The number of committed transactions of this store that may have changed something.
  package var commitCount: Int { commits.load(ordering: .acquiring) }

  /// The time that a call waits for another process that is writing, in seconds.
  private static let busySeconds = 5
  /// The pause between checks for the end of the wait, in milliseconds.
  private static let busyPauseMilliseconds = 10
  /// The number of log pages (4 KiB each) after which SQLite merges the log into the file. One item changes about
  /// twenty pages, and many items change the same ones, so SQLite's default of 1000 would write each of them
  /// repeatedly.
  private static let checkpointPageCount = 4000

  private init(
    _ queue: DatabaseQueue, _ durability: Durability, shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    self.queue = queue
    self.durability = durability
    self.shouldContinue = shouldContinue
  }

  /// Creates an empty keychain in a new file of mode 0600.
  ///
  /// - Throws: `.storeIO` if something exists at the path.
  package static func create(at path: String) throws(KeyhaulError) -> KeychainStore {
    let file = DatabaseFile(at: path)
    try file.create()
    do throws(KeyhaulError) {
      let store = KeychainStore(try openQueue(path, .eachCall) { true }, .eachCall)
      try store.use(.writeAheadLog)
      try store.write { (transaction) throws(KeyhaulError) in try SchemaCheck.create(in: transaction.database) }
      return store
    } catch {
      file.remove()
      throw error
    }
  }

  /// Opens a keychain after comparing its schema with Apple's. Empty data that Apple's daemon would not find is
  /// normalized in one transaction (`EmptyData`), which does not change any item.
  ///
  /// - Parameters:
  ///   - path: The path of `keychain-2.db` in a device's folder.
  ///   - durability: The time from which a change survives a power failure.
  ///   - isForReading: Whether empty data is left as it is. Searches find such rows too.
  ///   - shouldContinue: Called between items of a change of many items. If it returns `false`, the change is rolled
  ///     back and throws `.cancelled`.
  /// - Throws: `.storeDamaged` for a link, a file that is not a database, or one with another schema, a trigger or a
  ///   view; `.notAvailable` if there is no file; `.storeBusy`.
  package static func open(
    at path: String, durability: Durability = .eachCall, isForReading: Bool = false,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) throws(KeyhaulError) -> KeychainStore {
    try DatabaseFile(at: path).secureExisting()
    let store = KeychainStore(
      try openQueue(path, durability, shouldContinue), durability, shouldContinue: shouldContinue)
    try store.read { (transaction) throws(KeyhaulError) in try SchemaCheck.verify(transaction.database) }
    try store.use(.writeAheadLog)
    if !isForReading { try store.normalizeEmptyData() }
    return store
  }

  /// Creates an empty keychain in memory.
  package static func inMemory() throws(KeyhaulError) -> KeychainStore {
    let queue = try translatingErrors { try DatabaseQueue(configuration: configuration(.eachCall) { true }) }
    let store = KeychainStore(queue, .eachCall)
    try store.write { (transaction) throws(KeyhaulError) in try SchemaCheck.create(in: transaction.database) }
    return store
  }

  /// Merges the log into the file and closes it. Deinitialization does the same, but ignores errors. Closing again has
  /// no effect.
  ///
  /// - Throws: An error if changes may not be on the disk yet. The keychain is closed regardless.
  package func close() throws(KeyhaulError) {
    try translatingErrors {
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { database in
        guard !isClosed else { return }
        isClosed = true
        // Closing also merges the log, but does not report errors.
        if durability == .onClose { try database.translatingErrors { try database.checkpoint(.full) } }
      }
      try queue.close()
    }
  }

  /// Compares every index with its table, before items are changed. For 100,000 items this took 0.7 s.
  ///
  /// - Throws: `.storeDamaged` if an index does not list every row. An item whose row is missing would not be found,
  ///   and would be added a second time.
  package func requireSoundIndexes() throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in try SchemaCheck.verifyIndexes(transaction.database) }
  }

  /// Returns the number of items of a kind, without tombstones.
  package func count(of kind: ItemKind) throws(KeyhaulError) -> Int {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.count(kind, .singleUser(includingTombstones: false))
    }
  }

  // MARK: Transactions

  /// Runs the closure in a transaction that sees one state and changes nothing.
  package func read<Value>(
    _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try translatingErrors {
      try queue.unsafeRead { database in
        try checkOpen()
        var value: Value?
        // A rollback replaces GRDB's own read access, which sets a flag of SQLite that requires all statements to be
        // prepared again.
        try database.translatingErrors {
          try database.inTransaction(.deferred) {
            value = try body(KeychainTransaction(database: database, shouldContinue: shouldContinue))
            return .rollback
          }
        }
        guard let value else { throw KeyhaulError(.storeIO, "the transaction did not begin") }
        return value
      }
    }
  }

  /// Checks that the store is open. After it is closed, GRDB would end the process.
  private func checkOpen() throws(KeyhaulError) {
    guard !isClosed else { throw KeyhaulError(.closed, "it was used after it was closed") }
  }

  /// Runs the closure in an IMMEDIATE transaction. An error of the closure rolls everything back.
  ///
  /// - Parameters:
  ///   - isBulk: Whether very many items may be written.
  ///   - body: The changes.
  func write<Value>(
    isBulk: Bool = false, _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try write(translating: { $0 }, isBulk: isBulk, body)
  }

  /// Runs the closure in an IMMEDIATE transaction with another type of errors.
  ///
  /// - Parameters:
  ///   - translating: Converts an error of the database.
  ///   - isBulk: Whether very many items may be written.
  ///   - body: The changes.
  func write<Value, Failure: Error>(
    translating: (KeyhaulError) -> Failure, isBulk: Bool = false,
    _ body: (KeychainTransaction) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var outcome: Result<Value, Failure>?
    do {
      try queue.writeWithoutTransaction { database in
        try checkOpen()
        // Sorting for an index must not leave plaintext columns in a temporary file.
        let bulk = "PRAGMA cache_size = -\(KeychainTransaction.bulkCacheKilobytes); PRAGMA temp_store = MEMORY"
        if isBulk { try database.execute(sql: bulk) }
        // These are the defaults that SQLite sets for a new connection.
        defer { if isBulk { try? database.execute(sql: "PRAGMA cache_size = -2000; PRAGMA temp_store = DEFAULT") } }
        try database.translatingErrors {
          try database.inTransaction(.immediate) {
            do throws(Failure) {
              outcome = .success(try body(KeychainTransaction(database: database, shouldContinue: shouldContinue)))
              return .commit
            } catch {
              outcome = .failure(error)
              return .rollback
            }
          }
        }
        if case .success? = outcome { commits.add(1, ordering: .acquiringAndReleasing) }
      }
    } catch {
      // If the rollback fails too, the closure's error is the cause.
      if case .failure(let failure)? = outcome { throw failure }
      throw translating(KeyhaulError(fromDatabase: error))
    }
    guard let outcome else { throw translating(KeyhaulError(.storeIO, "the transaction did not begin")) }
    return try outcome.get()
  }

  // MARK: Opening

  private static func configuration(
    _ durability: Durability, _ shouldContinue: @escaping @Sendable () -> Bool
  ) -> Configuration {
    var configuration = Configuration()
    configuration.busyMode = .callback { tries in
      guard tries < busySeconds * 1000 / busyPauseMilliseconds, shouldContinue() else { return false }
      sqlite3_sleep(Int32(busyPauseMilliseconds))
      return true
    }
    configuration.prepareDatabase { database in
      DispatchQueues.keepCurrent()
      // FULL syncs the log with every transaction, NORMAL before it is merged. `secure_delete` overwrites deleted items
      // in the file. `trusted_schema`, `cell_size_check` and `mmap_size` follow SQLite's advice for untrusted files.
      for pragma in [
        "synchronous = \(durability == .eachCall ? "FULL" : "NORMAL")", "secure_delete = ON", "trusted_schema = OFF",
        "cell_size_check = ON", "mmap_size = 0", "wal_autocheckpoint = \(checkpointPageCount)",
      ] {
        try database.translatingErrors { try database.execute(sql: "PRAGMA \(pragma)") }
      }
    }
    return configuration
  }

  private static func openQueue(
    _ path: String, _ durability: Durability, _ shouldContinue: @escaping @Sendable () -> Bool
  ) throws(KeyhaulError) -> DatabaseQueue {
    try translatingErrors { try DatabaseQueue(path: path, configuration: configuration(durability, shouldContinue)) }
  }

  /// Normalizes empty data if any row needs it. Most databases are not written to.
  private func normalizeEmptyData() throws(KeyhaulError) {
    guard try read(EmptyData.needsNormalization(in:)) else { return }
    try write(isBulk: true, EmptyData.normalize(in:))
  }

  /// The location of the data that undoes an unfinished transaction.
  enum Journal: String {
    case writeAheadLog = "WAL"
    /// In memory. If the process is killed, the file is damaged, so this is only for a new file (`provision`).
    case memory = "MEMORY"
  }

  /// Sets the journal mode. Call this only after the schema was checked, because it writes to the file.
  ///
  /// - Throws: `.storeBusy` if the log is to be removed and another process has the file open.
  func use(_ journal: Journal) throws(KeyhaulError) {
    try translatingErrors {
      try queue.writeWithoutTransaction { database in
        try checkOpen()
        try database.translatingErrors { try database.execute(sql: "PRAGMA journal_mode = \(journal.rawValue)") }
      }
    }
  }
}

extension KeychainStore {
  /// Adds an item as `SecItemAdd` does: both dates become `now`, missing attributes get their defaults, and the UUID
  /// and persistent reference are random. A tombstone or corrupt row with the same primary key is replaced.
  ///
  /// - Throws: `.duplicateItem`; `.interactionNotAllowed` if the class is locked; `.authFailed` for the class that
  ///   requires a passcode, if the device has none; `.parameter`.
  @discardableResult
  package func add(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    try write { (transaction) throws(KeyhaulError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Adds either all items or, if one cannot be added, none.
  package func add(
    contentsOf items: [KeychainItem], keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) {
    try write(isBulk: true) { (transaction) throws(KeyhaulError) in
      for item in items { _ = try transaction.addRow(item, keys: keys, now: now, random: random) }
    }
  }
}

extension KeychainTransaction {
  func add(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    let row = try addRow(item, keys: keys, now: now, random: random)
    guard let raw = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "a row that was just written is missing")
    }
    return StoredItem(summary: raw.summary, item: row.item)
  }

  fileprivate func addRow(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> WritableRow {
    let prepared = try translatingRuleErrors(try NewItemDefaults.prepared(item, now: now, random: random))
    let row = try WritableRow(encrypting: prepared, keys: keys, random: random)
    if try insert(row) != nil { return row }
    return try replaceDeadRow(with: row, keys: keys, random: random)
  }

  /// Replaces the tombstone or corrupt row with the same primary key.
  ///
  /// - Throws: `.duplicateItem` if the row is an item.
  private func replaceDeadRow(
    with row: WritableRow, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) -> WritableRow {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "the item conflicts with a row that cannot be found")
    }
    switch try ExistingRow(try RowEncryption.decrypt(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
    case .corrupt:
      try overwrite(existing.summary.reference.rowID, with: row)
      return row
    case .tombstone(let uuid, let reference):
      var item = row.item
      if let uuid { item[.uuid] = .string(uuid) }
      if let reference { item[.persistentReference] = .data(reference) }
      let revived = try WritableRow(encrypting: item, keys: keys, random: random)
      try overwrite(existing.summary.reference.rowID, with: revived)
      return revived
    }
  }
}

extension KeychainStore {
  /// Returns the matching items, decrypted.
  ///
  /// Rows that cannot be decoded are skipped and reported. A row whose key is locked ends the search, as on a device.
  /// The access group inside the encrypted item decides whether it matches, not the column.
  ///
  /// - Throws: `.interactionNotAllowed`, `.noSuchAttribute`, `.parameter`. An empty result is not an error.
  package func find(_ query: ItemQuery, keys: ClassKeys) throws(KeyhaulError) -> QueryResult {
    try read { (transaction) throws(KeyhaulError) in
      var items: [StoredItem] = []
      var undecodable: [KeychainRow] = []
      try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
        switch row.content {
        case .fault(let fault):
          guard fault.isPermanent else { throw KeyhaulError(fault) }
          undecodable.append(row)
        case .item(var item):
          guard query.matches(item) else { return }
          if !query.wantsSecret { item.secrets = [:] }
          items.append(StoredItem(summary: row.summary, item: item))
        }
      }
      return QueryResult(items: items, undecodable: undecodable)
    }
  }

  /// Returns the rows that `delete` would delete, including those that cannot be decrypted. The query's limit is
  /// ignored.
  ///
  /// - Throws: `.interactionNotAllowed` if the query has a condition and the key of a row is locked.
  package func rows(
    matching query: ItemQuery, keys: ClassKeys
  ) throws(KeyhaulError) -> [KeychainRow] {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.rowsToDelete(query, keys: keys).map { row in
        guard !query.wantsSecret, var item = row.item else { return row }
        item.secrets = [:]
        return KeychainRow(summary: row.summary, content: .item(item))
      }
    }
  }
}

extension KeychainStore {
  /// Updates every matching item, or none. The query's limit is ignored. Rows that cannot be decoded are deleted, as on
  /// a device.
  ///
  /// - Returns: The number of updated items.
  /// - Throws: `.itemNotFound` if no item was updated (undecodable rows are deleted nevertheless); `.duplicateItem` if
  ///   an updated item conflicts with another one; `.interactionNotAllowed`, `.authFailed`, `.noSuchAttribute`,
  ///   `.parameter`, `.cancelled`.
  @discardableResult
  package func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy = .forbid, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    let count = try write { (transaction) throws(KeyhaulError) in
      try transaction.update(query, with: changes, keys: keys, now: now, tombstones: tombstones, random: random)
    }
    guard count > 0 else { throw .nothingMatches }
    return count
  }
}

extension KeyhaulError {
  static var nothingMatches: KeyhaulError { KeyhaulError(.itemNotFound, "nothing matches the search") }
}

/// An item before and after an update.
private struct UpdateStep {
  let old: KeychainItem
  let new: KeychainItem
  let rowID: Int64
}

extension KeychainTransaction {
  /// Updates every matching item.
  ///
  /// - Returns: The number of updated items.
  func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      try checkCancellation()
      if let item = row.item, !query.matches(item) { return }
      rows.append(row)
    }
    var count = 0
    for row in rows {
      try checkCancellation()
      switch row.content {
      case .fault(let fault):
        guard fault.isPermanent else { throw KeyhaulError(fault) }
        if query.condition == nil { try delete(row.summary.reference) }
      case .item(let item):
        let changed = try translatingRuleErrors(try changes.applied(to: item, now: now))
        let step = UpdateStep(old: item, new: changed, rowID: row.summary.reference.rowID)
        try apply(step, keys: keys, now: now, tombstones: tombstones, random: random)
        count += 1
      }
    }
    return count
  }

  /// Writes an updated item. If its primary key changes, the item becomes a new record, and a tombstone may be added
  /// with the old key.
  fileprivate func apply(
    _ step: UpdateStep, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeyhaulError) {
    var new = step.new
    let changesPrimaryKey = try translatingRuleErrors(try PrimaryKey(of: step.old) != PrimaryKey(of: step.new))
    let leavesTombstone = changesPrimaryKey && tombstones.leavesTombstone(of: step.old)
    if leavesTombstone { new[.uuid] = .string(try translatingRuleErrors(try NewItemDefaults.randomUUIDText(random))) }
    let row = try WritableRow(encrypting: new, keys: keys, random: random)
    if changesPrimaryKey { try removeConflictingRow(for: row, except: step.rowID, keys: keys) }
    try overwrite(step.rowID, with: row)
    guard leavesTombstone else { return }
    var tombstone = Tombstone.make(for: step.old, at: now)
    tombstone[.persistentReference] = .data(
      try translatingRuleErrors(try NewItemDefaults.randomBytes(random, count: 16)))
    guard try insert(WritableRow(encrypting: tombstone, keys: keys, random: random)) != nil else {
      throw KeyhaulError(.storeDamaged, "cannot change the item: another item already has these attributes")
    }
  }

  /// Deletes a tombstone or corrupt row that has the new primary key of an updated item.
  ///
  /// - Throws: `.duplicateItem` if the row is an item.
  private func removeConflictingRow(
    for row: WritableRow, except rowID: Int64, keys: ClassKeys
  ) throws(KeyhaulError) {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey),
      existing.summary.reference.rowID != rowID
    else { return }
    switch try ExistingRow(try RowEncryption.decrypt(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
    case .corrupt, .tombstone: try delete(existing.summary.reference)
    }
  }
}

extension KeychainStore {
  /// Deletes every matching item. The query's limit is ignored. Keys are needed only for tombstones: an item that
  /// cannot be decrypted is deleted without one.
  ///
  /// - Returns: The number of deleted items.
  /// - Throws: `.itemNotFound` if nothing matches; `.cancelled`.
  @discardableResult
  package func delete(
    _ query: ItemQuery, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy = .forbid,
    random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    try write { (transaction) throws(KeyhaulError) in
      let deletedRows = try transaction.rowsToDelete(query, keys: keys)
      guard !deletedRows.isEmpty else { throw .nothingMatches }
      for row in deletedRows {
        try transaction.checkCancellation()
        try transaction.delete(row, keys: keys, now: now, tombstones: tombstones, random: random)
      }
      return deletedRows.count
    }
  }

  /// Deletes rows by number, without keys or tombstones: rows that a search reported as undecodable, or rows of a class
  /// whose key no longer exists.
  package func remove(_ rows: [RowReference]) throws(KeyhaulError) {
    try write { (transaction) throws(KeyhaulError) in
      for row in rows { try transaction.delete(row) }
    }
  }

  /// Deletes every row of a protection class, including tombstones, as destroying the class key does.
  ///
  /// - Returns: The number of deleted rows.
  @discardableResult
  package func removeAll(protectedBy protection: ProtectionClass) throws(KeyhaulError) -> Int {
    try write { (transaction) throws(KeyhaulError) in
      var count = 0
      for kind in ItemKind.allCases {
        try transaction.database.run("DELETE FROM \(kind.rawValue) WHERE pdmn=?", [.text(protection.rawValue)])
        count += transaction.database.changesCount
      }
      return count
    }
  }
}

extension KeychainTransaction {
  fileprivate func delete(
    _ row: KeychainRow, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeyhaulError) {
    let reference = row.summary.reference
    guard let item = row.item, tombstones.leavesTombstone(of: item) else {
      return try delete(reference)
    }
    let tombstone = try WritableRow(encrypting: Tombstone.make(for: item, at: now), keys: keys, random: random)
    try overwrite(reference.rowID, with: tombstone)
  }
}

extension KeychainStore {
  /// Calls the closure with every row of the single user, decrypted: generic passwords, internet passwords,
  /// certificates and keys, each by row number. A row that cannot be decrypted is passed with its fault.
  package func forEachRow(
    includingTombstones: Bool, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.forEachDecryptedRow(.singleUser(includingTombstones: includingTombstones), keys: keys, body)
    }
  }

  /// Calls the closure with every row of every user, including tombstones: all rows that a restore may remove or
  /// replace.
  package func forEachRowOfEveryUser(
    keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.forEachDecryptedRow(RowCondition(), keys: keys, body)
    }
  }

  /// Returns every row of the single user. Their secrets stay in memory as long as the array does.
  package func rows(includingTombstones: Bool, keys: ClassKeys) throws(KeyhaulError) -> [KeychainRow] {
    var rows: [KeychainRow] = []
    try forEachRow(includingTombstones: includingTombstones, keys: keys) { rows.append($0) }
    return rows
  }

  /// Returns the column values of every row of the single user, without any key.
  package func rowSummaries(includingTombstones: Bool) throws(KeyhaulError) -> [RowSummary] {
    try read { (transaction) throws(KeyhaulError) in
      var summaries: [RowSummary] = []
      for kind in ItemKind.allCases {
        try transaction.forEachRow(kind, .singleUser(includingTombstones: includingTombstones)) {
          summaries.append($0.summary)
        }
      }
      return summaries
    }
  }
}

extension KeychainStore {
  /// Returns the positions of rows among all items without tombstones, in the order in which a backup numbers them.
  /// Rows that do not exist are omitted. Memory use depends only on the number of requested rows.
  package func positions(of rows: Set<RowReference>) throws(KeyhaulError) -> [RowReference: Int] {
    guard !rows.isEmpty else { return [:] }
    return try read { (transaction) throws(KeyhaulError) in
      var positions: [RowReference: Int] = [:]
      var position = 0
      for kind in ItemKind.allCases {
        let condition = RowCondition.singleUser(includingTombstones: false)
        try transaction.database.forEachRow(
          "SELECT rowid FROM \(kind.rawValue)" + condition.clause, condition.arguments
        ) { row in
          let reference = RowReference(kind: kind, rowID: row.columnValue(0).integerValue ?? 0)
          if rows.contains(reference) { positions[reference] = position }
          position += 1
        }
      }
      return positions
    }
  }
}

extension KeychainTransaction {
  func forEachDecryptedRow(
    _ condition: RowCondition, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    for kind in ItemKind.allCases {
      try forEachRow(kind, condition) { (raw) throws(KeyhaulError) in
        try body(try RowEncryption.decrypt(raw, keys: keys))
      }
    }
  }
}

extension KeychainStore {
  /// The statements that create the tables of items, of the version and of the metadata keys (schema 12.11).
  package static var tableStatements: [String] {
    KeychainSchema.objects.filter { $0.category == .table }.map(\.sql)
  }
}
