import Basics
import GRDB
public import KeychainFormats
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
public final class KeychainStore: Sendable {
  /// From when on a finished call survives a power cut. What kills no more than the process never undoes one.
  public enum Durability: Sendable {
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
  private static let busySeconds = 5.0
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
  /// - Throws: `.io` where something is at the path already.
  public static func create(at path: String) throws(KeychainStoreError) -> KeychainStore {
    let file = DatabaseFile(at: path)
    try file.create()
    do throws(KeychainStoreError) {
      let store = KeychainStore(try openQueue(path, .eachCall), .eachCall)
      try store.use(.writeAheadLog)
      try store.write { (transaction) throws(KeychainStoreError) in try SchemaCheck.create(in: transaction.database) }
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
  /// - Throws: `.damaged` for a link, a file that is not a database, or one with another schema, a trigger or a view;
  ///   `.notAvailable` where there is no file; `.busy`.
  public static func open(
    at path: String, durability: Durability = .eachCall, isForReading: Bool = false,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) throws(KeychainStoreError) -> KeychainStore {
    try DatabaseFile(at: path).secureExisting()
    let store = KeychainStore(try openQueue(path, durability), durability, shouldContinue: shouldContinue)
    try store.read { (transaction) throws(KeychainStoreError) in try SchemaCheck.verify(transaction.database) }
    try store.use(.writeAheadLog)
    if !isForReading { try store.settleEmptyData() }
    return store
  }

  /// An empty keychain that is gone with its last holder.
  public static func inMemory() throws(KeychainStoreError) -> KeychainStore {
    let queue = try translatingErrors { try DatabaseQueue(configuration: configuration(.eachCall)) }
    let store = KeychainStore(queue, .eachCall)
    try store.write { (transaction) throws(KeychainStoreError) in try SchemaCheck.create(in: transaction.database) }
    return store
  }

  /// Writes the log back into the file and closes it; without it the last holder's end does the same. Closing again does
  /// nothing.
  ///
  /// - Throws: Where what was changed may not be on the disk yet. The keychain is closed all the same.
  public func close() throws(KeychainStoreError) {
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

  /// How many items of a kind there are, tombstones apart.
  public func count(of kind: ItemKind) throws(KeychainStoreError) -> Int {
    try read { (transaction) throws(KeychainStoreError) in
      try transaction.count(kind, .singleUser(includingTombstones: false))
    }
  }

  // MARK: Transactions

  /// One transaction that sees one state and changes nothing.
  package func read<Value>(
    _ body: (KeychainTransaction) throws(KeychainStoreError) -> Value
  ) throws(KeychainStoreError) -> Value {
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
        guard let value else { throw KeychainStoreError(.io, "the transaction did not begin") }
        return value
      }
    }
  }

  /// The database layer itself would end the process.
  private func checkOpen() throws(KeychainStoreError) {
    guard !isClosed else { throw KeychainStoreError(.closed, "it was used after its end") }
  }

  /// One IMMEDIATE transaction; what the closure throws takes everything back.
  func write<Value>(
    isBulk: Bool = false, _ body: (KeychainTransaction) throws(KeychainStoreError) -> Value
  ) throws(KeychainStoreError) -> Value {
    try write(translating: { $0 }, isBulk: isBulk, body)
  }

  /// - Parameters:
  ///   - translating: Turns an error of the database itself into one of the closure's.
  ///   - isBulk: Whether very many items may be written.
  func write<Value, Failure: Error>(
    translating: (KeychainStoreError) -> Failure, isBulk: Bool = false,
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
      throw translating(KeychainStoreError(fromDatabase: error))
    }
    guard let outcome else { throw translating(KeychainStoreError(.io, "the transaction did not begin")) }
    return try outcome.get()
  }

  // MARK: Opening

  private static func configuration(_ durability: Durability) -> Configuration {
    var configuration = Configuration()
    configuration.busyMode = .timeout(busySeconds)
    configuration.prepareDatabase { database in
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
    _ path: String, _ durability: Durability
  ) throws(KeychainStoreError) -> DatabaseQueue {
    try translatingErrors { try DatabaseQueue(path: path, configuration: configuration(durability)) }
  }

  /// Most databases are as they should be, and are not written to.
  private func settleEmptyData() throws(KeychainStoreError) {
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
  /// - Throws: `.busy` where the log shall go and somebody else has the file open.
  func use(_ journal: Journal) throws(KeychainStoreError) {
    try translatingErrors {
      try queue.writeWithoutTransaction { database in
        try checkOpen()
        try database.translatingErrors { try database.execute(sql: "PRAGMA journal_mode = \(journal.rawValue)") }
      }
    }
  }
}
