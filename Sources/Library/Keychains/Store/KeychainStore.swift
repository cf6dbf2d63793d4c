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

/// A device's keychain: Apple's `keychain-2.db`, its items sealed under the device's class keys.
///
/// Keys are lent for each call and never kept. Every call that changes something is one transaction: killed at any
/// moment, the file holds what was there before or what should be there after. May be used from several threads; calls
/// take turns. A closure that is handed a row or a transaction must not call the store again.
///
/// After `close()` every call throws `.closed`.
package final class KeychainStore: Sendable {
  /// From when on a finished call survives a power cut. What kills no more than the process never undoes one.
  package enum Durability: Sendable {
    /// When the call returns: it waits for the disk.
    case eachCall
    /// When `close()` returns: many calls in a row wait for the disk once.
    case onClose
  }

  private let queue: DatabaseQueue
  private let durability: Durability
  private let shouldContinue: @Sendable () -> Bool
  /// Read and written on the queue alone.
  private nonisolated(unsafe) var isClosed = false
  private let commits = Atomic<Int>(0)

  /// How many transactions that may have changed something were committed through this value.
  package var commitCount: Int { commits.load(ordering: .acquiring) }

  /// How long a call waits for another process that is writing.
  private static let busySeconds = 5
  /// The pause, in milliseconds, between checks whether the wait has ended or is no longer wanted.
  private static let busyPause = 10
  /// After how many pages of 4 KiB the log is written back into the file. One item changes about twenty pages, and many
  /// items the same ones, so that SQLite's own number, 1000, would write each of them again and again.
  private static let checkpointPageCount = 4000

  private init(
    _ queue: DatabaseQueue, _ durability: Durability, shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    self.queue = queue
    self.durability = durability
    self.shouldContinue = shouldContinue
  }

  /// Makes an empty keychain in a new file of mode 0600.
  ///
  /// - Throws: `.storeIO` where something is at the path already.
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

  /// Opens a keychain after its schema was compared with Apple's. Rows that hold empty data in the form which Apple's
  /// daemon does not find are given the other in one transaction (`EmptyData`); what the items are stays as it is.
  ///
  /// - Parameters:
  ///   - path: The database, `keychain-2.db` in a device's directory.
  ///   - durability: When a change is safe from a power cut.
  ///   - isForReading: Whether such rows stay as they are. They are found all the same.
  ///   - shouldContinue: Asked between items by what changes many of them. Where it answers `false` the change is taken back
  ///     and ends with `.cancelled`.
  /// - Throws: `.storeDamaged` for a link, a file that is not a database, or one with another schema, a trigger or a view;
  ///   `.notAvailable` if there is no file; `.storeBusy`.
  package static func open(
    at path: String, durability: Durability = .eachCall, isForReading: Bool = false,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) throws(KeyhaulError) -> KeychainStore {
    try DatabaseFile(at: path).secureExisting()
    let store = KeychainStore(
      try openQueue(path, durability, shouldContinue), durability, shouldContinue: shouldContinue)
    try store.read { (transaction) throws(KeyhaulError) in try SchemaCheck.verify(transaction.database) }
    try store.use(.writeAheadLog)
    if !isForReading { try store.settleEmptyData() }
    return store
  }

  /// An empty keychain that is gone with its last holder.
  package static func inMemory() throws(KeyhaulError) -> KeychainStore {
    let queue = try translatingErrors { try DatabaseQueue(configuration: configuration(.eachCall) { true }) }
    let store = KeychainStore(queue, .eachCall)
    try store.write { (transaction) throws(KeyhaulError) in try SchemaCheck.create(in: transaction.database) }
    return store
  }

  /// Writes the log back into the file and closes it; without it the last holder's end does the same. Closing again does
  /// nothing.
  ///
  /// - Throws: Where what was changed may not be on the disk yet. The keychain is closed all the same.
  package func close() throws(KeyhaulError) {
    try translatingErrors {
      defer { try? queue.close() }
      try queue.writeWithoutTransaction { database in
        guard !isClosed else { return }
        isClosed = true
        // What closing does by itself, but that fails without a word.
        if durability == .onClose { try database.translatingErrors { try database.checkpoint(.full) } }
      }
      try queue.close()
    }
  }

  /// Compares every index with its table, before items are changed. For 100,000 items this took 0.7 s.
  ///
  /// - Throws: `.storeDamaged` if an index does not list every row. A missing row would not be found, and would be added a
  ///   second time.
  package func requireSoundIndexes() throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in try SchemaCheck.verifyIndexes(transaction.database) }
  }

  /// How many items of a kind there are, tombstones apart.
  package func count(of kind: ItemKind) throws(KeyhaulError) -> Int {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.count(kind, .singleUser(includingTombstones: false))
    }
  }

  // MARK: Transactions

  /// One transaction that sees one state and changes nothing.
  package func read<Value>(
    _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try translatingErrors {
      try queue.unsafeRead { database in
        try checkOpen()
        var value: Value?
        // Taken back instead of GRDB's own reading, which sets a flag of SQLite that every prepared statement is compiled
        // again after.
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

  /// The database layer itself would end the process.
  private func checkOpen() throws(KeyhaulError) {
    guard !isClosed else { throw KeyhaulError(.closed, "it was used after it was closed") }
  }

  /// One IMMEDIATE transaction; what the closure throws takes everything back.
  func write<Value>(
    isBulk: Bool = false, _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try write(translating: { $0 }, isBulk: isBulk, body)
  }

  /// - Parameters:
  ///   - translating: Turns an error of the database itself into one of the closure's.
  ///   - isBulk: Whether very many items may be written.
  func write<Value, Failure: Error>(
    translating: (KeyhaulError) -> Failure, isBulk: Bool = false,
    _ body: (KeychainTransaction) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var outcome: Result<Value, Failure>?
    do {
      try queue.writeWithoutTransaction { database in
        try checkOpen()
        // What an index is sorted by on the way is nobody's to find in a temporary file.
        let bulk = "PRAGMA cache_size = -\(KeychainTransaction.bulkCacheKilobytes); PRAGMA temp_store = MEMORY"
        if isBulk { try database.execute(sql: bulk) }
        // Back to SQLite's own, which are made with every connection.
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
      // Where the closure failed and the rollback too, the closure's reason is the one to tell.
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
      guard tries < busySeconds * 1000 / busyPause, shouldContinue() else { return false }
      sqlite3_sleep(Int32(busyPause))
      return true
    }
    configuration.prepareDatabase { database in
      DispatchQueues.keepCurrent()
      // FULL syncs the log with every transaction, NORMAL before it is written back. secure_delete: deleted items are
      // overwritten in the file. The three before the last are SQLite's advice for files that someone else may have
      // written.
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

  /// Most databases are as they should be, and are not written to.
  private func settleEmptyData() throws(KeyhaulError) {
    guard try read(EmptyData.needsSettling(in:)) else { return }
    try write(isBulk: true, EmptyData.settle(in:))
  }

  /// Where a transaction that is not finished keeps what takes it back.
  enum Journal: String {
    case writeAheadLog = "WAL"
    /// In this process: killed meanwhile, it leaves a damaged file. For one that nobody has yet (`provision`).
    case memory = "MEMORY"
  }

  /// Set after the schema was checked, as it writes to the file.
  ///
  /// - Throws: `.storeBusy` where the log shall go and somebody else has the file open.
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
  /// Adds an item as `SecItemAdd` does: both dates become `now`, what may not be absent gets its default, UUID and
  /// persistent reference are drawn. A tombstone or a corrupt row with the same primary key is replaced.
  ///
  /// - Throws: `.duplicateItem`; `.interactionNotAllowed` where the class is locked; `.authFailed` for the class that
  ///   needs a passcode on a device without one; `.parameter`.
  @discardableResult
  package func add(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    try write { (transaction) throws(KeyhaulError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Adds all of the items or, where one cannot be added, none.
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
    let prepared = try byRule(try NewItemDefaults.prepared(item, now: now, random: random))
    let row = try WritableRow(sealing: prepared, keys: keys, random: random)
    if try insert(row) != nil { return row }
    return try replaceDeadRow(with: row, keys: keys, random: random)
  }

  /// The row in the way has to be a tombstone or corrupt, else the item is a duplicate.
  private func replaceDeadRow(
    with row: WritableRow, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) -> WritableRow {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "the item conflicts with a row that cannot be found")
    }
    switch try ExistingRow(try RowSealing.open(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
    case .corrupt:
      try overwrite(existing.summary.reference.rowID, with: row)
      return row
    case .tombstone(let uuid, let reference):
      var item = row.item
      if let uuid { item[.uuid] = .string(uuid) }
      if let reference { item[.persistentReference] = .data(reference) }
      let revived = try WritableRow(sealing: item, keys: keys, random: random)
      try overwrite(existing.summary.reference.rowID, with: revived)
      return revived
    }
  }
}

extension KeychainStore {
  /// The items that a query means, opened.
  ///
  /// Rows that cannot be decoded are passed over and reported; one whose key is locked ends the search, as it does on
  /// a device. An item whose sealed access group is not among the asked-for ones does not count, whatever its column says.
  ///
  /// - Throws: `.interactionNotAllowed`, `.noSuchAttribute`, `.parameter`. Finding nothing is no error.
  package func find(_ query: ItemQuery, keys: ClassKeys) throws(KeyhaulError) -> FoundItems {
    try read { (transaction) throws(KeyhaulError) in
      var items: [StoredItem] = []
      var undecodable: [KeychainRow] = []
      try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
        switch row.content {
        case .fault(let fault):
          guard fault.isPermanent else { throw KeyhaulError(fault) }
          undecodable.append(row)
        case .item(var item):
          guard query.admits(item) else { return }
          if !query.wantsSecret { item.secrets = [:] }
          items.append(StoredItem(summary: row.summary, item: item))
        }
      }
      return FoundItems(items: items, undecodable: undecodable)
    }
  }

  /// The rows that `delete` would delete, those among them that cannot be opened. The query's limit does not count.
  ///
  /// - Throws: `.interactionNotAllowed` where the query has a condition and the key of a row is locked.
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
  /// Changes every item that a query means, all or none. Its limit does not count. A row that cannot be decoded is
  /// deleted on the way, as on a device.
  ///
  /// - Returns: How many items were changed.
  /// - Throws: `.itemNotFound` where nothing was (undecodable rows are gone all the same); `.duplicateItem` where a
  ///   changed item meets another; `.interactionNotAllowed`, `.authFailed`, `.noSuchAttribute`, `.parameter`, `.cancelled`.
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

/// One item before and after.
private struct UpdateStep {
  let old: KeychainItem
  let new: KeychainItem
  let rowID: Int64
}

extension KeychainTransaction {
  /// - Returns: How many items were changed.
  func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      try requireGoingOn()
      if let item = row.item, !query.admits(item) { return }
      rows.append(row)
    }
    var count = 0
    for row in rows {
      try requireGoingOn()
      switch row.content {
      case .fault(let fault):
        guard fault.isPermanent else { throw KeyhaulError(fault) }
        if query.condition == nil { try delete(row.summary.reference) }
      case .item(let item):
        let changed = try byRule(try changes.applied(to: item, now: now))
        let step = UpdateStep(old: item, new: changed, rowID: row.summary.reference.rowID)
        try carryOut(step, keys: keys, now: now, tombstones: tombstones, random: random)
        count += 1
      }
    }
    return count
  }

  /// An item that gets another primary key may leave a tombstone under the old one, and then becomes a new record.
  fileprivate func carryOut(
    _ step: UpdateStep, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeyhaulError) {
    var new = step.new
    let moves = try byRule(try PrimaryKey(of: step.old) != PrimaryKey(of: step.new))
    let leavesTombstone = moves && tombstones.leavesTombstone(of: step.old)
    if leavesTombstone { new[.uuid] = .string(try byRule(try NewItemDefaults.randomUUIDText(random))) }
    let row = try WritableRow(sealing: new, keys: keys, random: random)
    if moves { try removeConflictingRow(for: row, except: step.rowID, keys: keys) }
    try overwrite(step.rowID, with: row)
    guard leavesTombstone else { return }
    var tombstone = Tombstone.make(for: step.old, at: now)
    tombstone[.persistentReference] = .data(try byRule(try NewItemDefaults.randomBytes(random, count: 16)))
    guard try insert(WritableRow(sealing: tombstone, keys: keys, random: random)) != nil else {
      throw KeyhaulError(.storeDamaged, "cannot change the item: another item already has these attributes")
    }
  }

  /// A tombstone or corrupt row that an update runs into goes; a living item is a duplicate.
  private func removeConflictingRow(
    for row: WritableRow, except rowID: Int64, keys: ClassKeys
  ) throws(KeyhaulError) {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey),
      existing.summary.reference.rowID != rowID
    else { return }
    switch try ExistingRow(try RowSealing.open(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
    case .corrupt, .tombstone: try delete(existing.summary.reference)
    }
  }
}

extension KeychainStore {
  /// Deletes every item that a query means. Its limit does not count. Keys are needed for tombstones alone: an item
  /// that cannot be opened is deleted all the same and leaves none.
  ///
  /// - Returns: How many items are gone.
  /// - Throws: `.itemNotFound` where there was none; `.cancelled`.
  @discardableResult
  package func delete(
    _ query: ItemQuery, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy = .forbid,
    random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    try write { (transaction) throws(KeyhaulError) in
      let deletedRows = try transaction.rowsToDelete(query, keys: keys)
      guard !deletedRows.isEmpty else { throw .nothingMatches }
      for row in deletedRows {
        try transaction.requireGoingOn()
        try transaction.delete(row, keys: keys, now: now, tombstones: tombstones, random: random)
      }
      return deletedRows.count
    }
  }

  /// Deletes rows by their place, without keys and tombstones: what a search reported as undecodable, or the rows of a
  /// class whose key is gone for good.
  package func remove(_ rows: [RowReference]) throws(KeyhaulError) {
    try write { (transaction) throws(KeyhaulError) in
      for row in rows { try transaction.delete(row) }
    }
  }

  /// Deletes every row of a protection class, tombstones too, as destroying its key does.
  ///
  /// - Returns: How many rows are gone.
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
    let tombstone = try WritableRow(sealing: Tombstone.make(for: item, at: now), keys: keys, random: random)
    try overwrite(reference.rowID, with: tombstone)
  }
}

extension KeychainStore {
  /// Walks through all rows of the single user, opened: generic passwords, internet passwords, certificates, keys, each
  /// in the order of its row numbers. A row that does not open is handed over with its fault.
  package func forEachRow(
    includingTombstones: Bool, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.forEachOpenedRow(.singleUser(includingTombstones: includingTombstones), keys: keys, body)
    }
  }

  /// The same of every user, tombstones included: all rows that a restore can remove or meet.
  package func forEachRowOfEveryUser(
    keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.forEachOpenedRow(RowCondition(), keys: keys, body)
    }
  }

  /// The same rows at once. Their secrets stay in memory as long as the array does.
  package func rows(includingTombstones: Bool, keys: ClassKeys) throws(KeyhaulError) -> [KeychainRow] {
    var rows: [KeychainRow] = []
    try forEachRow(includingTombstones: includingTombstones, keys: keys) { rows.append($0) }
    return rows
  }

  /// What the columns of the same rows say; needs no key.
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
  /// The place of each of these rows among all items, tombstones apart, in the order in which a backup numbers them; a
  /// row that is not there has none. Needs no key, and memory for the wanted rows alone.
  package func places(of rows: Set<RowReference>) throws(KeyhaulError) -> [RowReference: Int] {
    guard !rows.isEmpty else { return [:] }
    return try read { (transaction) throws(KeyhaulError) in
      var places: [RowReference: Int] = [:]
      var place = 0
      for kind in ItemKind.allCases {
        let condition = RowCondition.singleUser(includingTombstones: false)
        try transaction.database.forEachRow(
          "SELECT rowid FROM \(kind.rawValue)" + condition.clause, condition.arguments
        ) { row in
          let reference = RowReference(kind: kind, rowID: row.columnValue(0).integerValue ?? 0)
          if rows.contains(reference) { places[reference] = place }
          place += 1
        }
      }
      return places
    }
  }
}

extension KeychainTransaction {
  func forEachOpenedRow(
    _ condition: RowCondition, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    for kind in ItemKind.allCases {
      try forEachRow(kind, condition) { (raw) throws(KeyhaulError) in
        try body(try RowSealing.open(raw, keys: keys))
      }
    }
  }
}

extension KeychainStore {
  /// The statements that make the tables of items, of the version and of the keys, of schema 12.11.
  package static var tableStatements: [String] {
    KeychainSchema.objects.filter { $0.category == .table }.map(\.sql)
  }
}
