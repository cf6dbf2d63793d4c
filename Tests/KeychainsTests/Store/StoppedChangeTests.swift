import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Stopping changes of many items")
struct StoppedChangeTests {
  private static let rows = "SELECT * FROM genp ORDER BY rowid"
  private static let schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"

  private func items(_ count: Int) -> [KeychainItem] {
    (0..<count).map { .genericPassword("person-\($0)", secret: "secret \($0)") }
  }

  /// Performs a change that is stopped after a number of checks, and expects that nothing has changed.
  private func expectRollback(
    of change: (KeychainStore, Keychain) throws(KeyhaulError) -> Void, afterChecks checkCount: Int,
    on keychain: Keychain
  ) throws {
    let before = (rows: try keychain.sql(Self.rows), schema: try keychain.sql(Self.schema))
    let budget = CheckBudget(count: checkCount)
    let store = try KeychainStore.open(at: keychain.path, shouldContinue: { budget.useCheck() })
    let error = #expect(throws: KeyhaulError.self) { try change(store, keychain) }
    #expect(error?.code == .cancelled, "\(String(describing: error))")
    #expect(try keychain.sql(Self.rows) == before.rows)
    #expect(try keychain.sql(Self.schema) == before.schema)
    #expect(try keychain.sql("PRAGMA integrity_check") == [["'ok'"]])
  }

  // The store checks before each of the 2,100 items and then before each index, which is created after the items.
  @Test("Stopping a restore between two items or two indexes rolls it back", arguments: [0, 1_000, 2_100, 2_105])
  func restore(checkCount: Int) throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("before"))
    let incoming = try items(2_100).map { try IncomingItem($0) }
    let kinds = incoming.map(\.item.kind)
    try expectRollback(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.restore { (transaction) throws(KeyhaulError) in
          try transaction.deleteNonSynced()
          try transaction.importing(kinds) { () throws(KeyhaulError) in
            for item in incoming { try transaction.importItem(item, keys: keychain.keys, random: keychain.random) }
          }
        }
      }, afterChecks: checkCount, on: keychain)
  }

  @Test("Stopping the creation of a device from a description rolls it back")
  func provision() throws {
    let items = items(10)
    try expectRollback(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.provision(items, keys: keychain.keys, random: keychain.random)
      }, afterChecks: 5, on: try Keychain())
  }

  // The items exceed SQLite's cache, so the file already has new pages when the change stops. For this number of items,
  // the indexes of the table are dropped and created again.
  @Test("Stopping a change of a file without a log rolls it back")
  func withoutLogStopped() throws {
    let secret = String(repeating: "s", count: 6_000)
    let items = (0..<2_100).map { KeychainItem.genericPassword("person-\($0)", secret: secret) }
    let keychain = try Keychain()
    try keychain.store.close()
    try expectRollback(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.provision(items, isUnfinished: true, keys: keychain.keys, random: keychain.random)
      }, afterChecks: 2_102, on: keychain)
    #expect(try keychain.sql("PRAGMA journal_mode") == [["'wal'"]])
  }

  @Test("A database that was filled without a log has the same content, and has a log afterwards")
  func withoutLog() throws {
    let withLog = try provisionedDatabase(hasLog: true)
    let withoutLog = try provisionedDatabase(hasLog: false)
    #expect(withLog.rows.count == 2_100)
    #expect(withLog.rows == withoutLog.rows)
    #expect(withLog.schema == withoutLog.schema)
  }

  /// Fills a database with or without a log, and returns its rows and schema.
  private func provisionedDatabase(hasLog: Bool) throws -> (rows: [[String]], schema: [[String]]) {
    let keychain = try Keychain()
    try keychain.store.close()
    let log = keychain.path + "-wal"
    let store = try KeychainStore.open(
      at: keychain.path, shouldContinue: { FileManager.default.fileExists(atPath: log) == hasLog })
    // With this many items, the indexes of the table are dropped and created again.
    try store.provision(items(2_100), isUnfinished: !hasLog, keys: keychain.keys, random: keychain.random)
    #expect(try keychain.sql("PRAGMA journal_mode") == [["'wal'"]])
    #expect(try keychain.sql("PRAGMA integrity_check") == [["'ok'"]])
    return (rows: try keychain.sql(Self.rows), schema: try keychain.sql(Self.schema))
  }

  @Test("Stopping an update or a deletion rolls it back", arguments: [0, 12])
  func changes(checkCount: Int) throws {
    let keychain = try Keychain()
    for item in items(10) { try keychain.add(item) }
    let changes = ItemChanges(attributes: [.label: .string("new")])
    try expectRollback(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.update(
          ItemQuery(), with: changes, keys: keychain.keys, now: .reference, random: keychain.random)
      }, afterChecks: checkCount, on: keychain)
    // The store checks twice for each updated item, but only once for each deleted item.
    try expectRollback(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.delete(ItemQuery(), keys: keychain.keys, now: .reference, random: keychain.random)
      }, afterChecks: min(checkCount, 5), on: keychain)
  }

  @Test("A change that is not stopped completes")
  func completed() throws {
    let keychain = try Keychain()
    let budget = CheckBudget(count: 1_000)
    let store = try KeychainStore.open(at: keychain.path, shouldContinue: { budget.useCheck() })
    try store.provision(items(10), keys: keychain.keys, random: keychain.random)
    #expect(try keychain.store.count(of: .genericPassword) == 10)
  }
}
