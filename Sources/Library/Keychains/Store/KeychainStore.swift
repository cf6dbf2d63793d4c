package import Basics
import CSQLite
import GRDB
package import KeychainFormats
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A device's keychain: Apple's `keychain-2.db`, with items encrypted by the device's class keys.
///
/// The store does not keep the class keys that a call receives. A call that changes something is one transaction: if the
/// process is killed, the file has either the old or the new content. A store may be used from several threads, and calls
/// run one after another. A closure that receives a row or a transaction must not call the store.
///
/// After `close()` every call throws `.closed`.
package final class KeychainStore: Sendable {
  /// The moment at which a change becomes safe against a power failure. Killing the process never undoes a finished call.
  package enum Durability: Sendable {
    /// When the call returns. The call waits for the disk.
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
  /// The pause between two attempts while a call waits, in milliseconds.
  private static let busyPauseMilliseconds = 10
  /// The number of log pages (4 KiB each) after which SQLite merges the log into the file. One item changes about
  /// twenty pages, and many items change the same pages, so SQLite's default of 1000 would write each page repeatedly.
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

  /// Opens a keychain after comparing its schema with Apple's. Earlier versions of Keyhaul stored empty data as an empty
  /// blob, which Apple's daemon does not find. Such data is normalized in one transaction (`EmptyData`), which does not
  /// change any item.
  ///
  /// - Parameters:
  ///   - path: The path of `keychain-2.db` in a device's folder.
  ///   - durability: The moment at which a change becomes safe against a power failure.
  ///   - isForReading: Whether the caller only reads items. Empty data is then not normalized. The searches of this store
  ///     find it in both forms.
  ///   - shouldContinue: Called between the items of a large change. If it returns `false`, the change is rolled back and
  ///     throws `.cancelled`.
  /// - Throws: `.storeDamaged` for a link, a file that is not a database, a different schema, a trigger or a view;
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

  /// Merges the log into the file and closes the file. Deinitialization does the same, but ignores errors. Closing again
  /// has no effect.
  ///
  /// - Throws: An error if changes may not be on the disk yet. The keychain is closed regardless.
  package func close() throws(KeyhaulError) {
    try translatingErrors {
      // Also closes the queue if the checkpoint fails.
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

  /// Runs the closure in a transaction that is rolled back. All reads in it see the same state.
  package func read<Value>(
    _ body: (KeychainTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try translatingErrors {
      try queue.unsafeRead { database in
        try checkOpen()
        var value: Value?
        // GRDB's own read access sets a flag of SQLite, after which all statements have to be prepared again. This
        // transaction does not set the flag.
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

  /// Runs the closure, which throws errors of any type, in an IMMEDIATE transaction.
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
        if isBulk { try database.execute(sql: Self.bulkSettings) }
        defer { if isBulk { try? database.execute(sql: Self.defaultSettings) } }
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

  /// The settings for very many changes. Sorting for an index must not leave plaintext columns in a temporary file.
  private static let bulkSettings =
    "PRAGMA cache_size = -\(KeychainTransaction.bulkCacheKilobytes); PRAGMA temp_store = MEMORY"
  /// SQLite's settings for a new connection.
  private static let defaultSettings = "PRAGMA cache_size = -2000; PRAGMA temp_store = DEFAULT"

  // MARK: Opening

  private static func configuration(
    _ durability: Durability, _ shouldContinue: @escaping @Sendable () -> Bool
  ) -> Configuration {
    var configuration = Configuration()
    configuration.busyMode = .callback { pauseCount in
      guard pauseCount < busySeconds * 1000 / busyPauseMilliseconds, shouldContinue() else { return false }
      sqlite3_sleep(Int32(busyPauseMilliseconds))
      return true
    }
    configuration.prepareDatabase { database in
      // Keeps GRDB's queue until the process ends (see `DispatchQueues`).
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

  /// Normalizes empty data. Reads first, because most databases need no change and are then not written to.
  private func normalizeEmptyData() throws(KeyhaulError) {
    guard try read(EmptyData.needsNormalization(in:)) else { return }
    try write(isBulk: true, EmptyData.normalize(in:))
  }

  /// The way in which SQLite protects the file against an unfinished transaction.
  enum Journal: String {
    /// Changed pages are written to a log, and to the file only after the transaction.
    case writeAheadLog = "WAL"
    /// The original pages are kept in memory. If the process is killed, the file is damaged, so this is only for a new
    /// file (`provision`).
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
  /// The statements that create the tables of items, of the version and of the metadata keys (schema 12.11).
  package static var tableStatements: [String] {
    KeychainSchema.objects.filter { $0.category == .table }.map(\.sql)
  }
}
