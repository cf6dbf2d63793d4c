import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("A change of many items that nobody waits for any more")
struct StoppedChangeTests {
  private static let rows = "SELECT * FROM genp ORDER BY rowid"
  private static let schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"

  private func items(_ count: Int) -> [KeychainItem] {
    (0..<count).map { .genericPassword("person-\($0)", secret: "secret \($0)") }
  }

  /// Does a change that is told to stop when it has been asked so often, and looks that nothing of it is left.
  private func expectNothing(
    of change: (KeychainStore, Keychain) throws(KeyhaulError) -> Void, after count: Int, on keychain: Keychain
  ) throws {
    let before = (try keychain.sql(Self.rows), try keychain.sql(Self.schema))
    let patience = Patience(of: count)
    let store = try KeychainStore.open(at: keychain.path, shouldContinue: { patience.holds })
    let error = #expect(throws: KeyhaulError.self) { try change(store, keychain) }
    #expect(error?.code == .cancelled, "\(String(describing: error))")
    #expect(try keychain.sql(Self.rows) == before.0)
    #expect(try keychain.sql(Self.schema) == before.1)
    #expect(try keychain.sql("PRAGMA integrity_check") == [["'ok'"]])
  }

  // After the 2,100 items come the indexes of their table.
  @Test("takes back a restore, between two items and between two indexes", arguments: [0, 1_000, 2_100, 2_105])
  func restore(count: Int) throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("before"))
    let incoming = try items(2_100).map { try IncomingItem($0) }
    let kinds = incoming.map(\.item.kind)
    try expectNothing(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.restore { (transaction) throws(KeyhaulError) in
          try transaction.deleteNonSynced()
          try transaction.importing(kinds) { () throws(KeyhaulError) in
            for item in incoming { try transaction.importItem(item, keys: keychain.keys, random: keychain.random) }
          }
        }
      }, after: count, on: keychain)
  }

  @Test("takes back the making of a device from a description")
  func provision() throws {
    let items = items(10)
    try expectNothing(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.provision(items, keys: keychain.keys, random: keychain.random)
      }, after: 5, on: try Keychain())
  }

  // More than SQLite holds of the file, so that what is taken back is there already; the indexes of the table are gone then.
  @Test("takes it back in a file that is nobody's yet too, where there is no log for it")
  func unfinished() throws {
    let secret = String(repeating: "s", count: 6_000)
    let items = (0..<2_100).map { KeychainItem.genericPassword("person-\($0)", secret: secret) }
    let keychain = try Keychain()
    try keychain.store.close()
    try expectNothing(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.provision(items, isUnfinished: true, keys: keychain.keys, random: keychain.random)
      }, after: 2_102, on: keychain)
    #expect(try keychain.sql("PRAGMA journal_mode") == [["'wal'"]])
  }

  @Test("without a log holds what it holds with one, and has one from then on")
  func madeWithoutLog() throws {
    let made = try [false, true].map { isUnfinished in
      let keychain = try Keychain()
      try keychain.store.close()
      let log = keychain.path + "-wal"
      let store = try KeychainStore.open(
        at: keychain.path, shouldContinue: { FileManager.default.fileExists(atPath: log) != isUnfinished })
      // Enough for the indexes of the table to be made behind them.
      try store.provision(items(2_100), isUnfinished: isUnfinished, keys: keychain.keys, random: keychain.random)
      #expect(try keychain.sql("PRAGMA journal_mode") == [["'wal'"]])
      #expect(try keychain.sql("PRAGMA integrity_check") == [["'ok'"]])
      return (rows: try keychain.sql(Self.rows), schema: try keychain.sql(Self.schema))
    }
    #expect(made[0].rows.count == 2_100)
    #expect(made[0].rows == made[1].rows)
    #expect(made[0].schema == made[1].schema)
  }

  @Test("takes back an update and a deletion", arguments: [0, 12])
  func changes(count: Int) throws {
    let keychain = try Keychain()
    for item in items(10) { try keychain.add(item) }
    let changes = ItemChanges(attributes: [.label: .string("new")])
    try expectNothing(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.update(
          ItemQuery(), with: changes, keys: keychain.keys, now: .reference, random: keychain.random)
      }, after: count, on: keychain)
    try expectNothing(
      of: { (store, keychain) throws(KeyhaulError) in
        try store.delete(ItemQuery(), keys: keychain.keys, now: .reference, random: keychain.random)
      }, after: min(count, 5), on: keychain)
  }

  @Test("goes through where the patience lasts")
  func patient() throws {
    let keychain = try Keychain()
    let patience = Patience(of: 1_000)
    let store = try KeychainStore.open(at: keychain.path, shouldContinue: { patience.holds })
    try store.provision(items(10), keys: keychain.keys, random: keychain.random)
    #expect(try keychain.store.count(of: .genericPassword) == 10)
  }
}
