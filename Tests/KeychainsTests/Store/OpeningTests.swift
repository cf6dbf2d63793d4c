import Basics
import Foundation
import GRDB
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import Keychains

@Suite("Opening keychain databases", .serialized)
struct OpeningTests {
  private static func mode(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
  }

  /// Returns the error with which the store must refuse a path.
  private func openingError(_ path: String) -> KeyhaulError? {
    #expect(throws: KeyhaulError.self) { try KeychainStore.open(at: path) }
  }

  @Test("An item is found again after closing and opening the file")
  func reopening() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(secret: "s3cret"))
    try keychain.store.close()

    let store = try KeychainStore.open(at: keychain.path)

    let found = try store.find(ItemQuery(wantsSecret: true), keys: keychain.keys)
    #expect(found.items.map(\.item.secretText) == ["s3cret"])
    #expect(try store.count(of: .genericPassword) == 1)
  }

  @Test(
    "Only the owner may read the database files, regardless of the umask", arguments: [0o000, 0o022, 0o777] as [mode_t])
  func modes(mask: mode_t) async {
    // A separate process, because a process has only one umask, and other tests create files at the same time.
    await #expect(processExitsWith: .exitCode(0)) { [mask = mask as mode_t] in
      let directory = try TemporaryDirectory()
      let previousMask = umask(mask)
      defer { umask(previousMask) }
      let store = try KeychainStore.create(at: directory.path("keychain-2.db"))
      _ = try store.count(of: .key)
      for name in ["keychain-2.db", "keychain-2.db-wal", "keychain-2.db-shm"] {
        guard try Self.mode(directory.path(name)) == 0o600 else { exit(1) }
      }
    }
  }

  @Test("Opening a database removes the permissions of other users")
  func tightening() throws {
    let keychain = try Keychain()
    try keychain.store.close()
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: keychain.path)
    let store = try KeychainStore.open(at: keychain.path)
    #expect(try Self.mode(keychain.path) == 0o600)
    try store.close()
  }

  @Test("The store uses a write-ahead log, syncs every commit and overwrites deleted data")
  func settings() throws {
    let keychain = try Keychain()
    try keychain.store.read { (transaction) throws(KeyhaulError) in
      let database = transaction.database
      #expect(try database.columnValues(sql: "PRAGMA journal_mode") == [[.text("wal")]])
      // 2 is FULL.
      #expect(try database.columnValues(sql: "PRAGMA synchronous") == [[.integer(2)]])
      #expect(try database.columnValues(sql: "PRAGMA secure_delete") == [[.integer(1)]])
      #expect(try database.columnValues(sql: "PRAGMA trusted_schema") == [[.integer(0)]])
    }
  }

  @Test("A store that is durable on close does not sync each call, and merges its log at the end")
  func durableOnClose() throws {
    let keychain = try Keychain()
    try keychain.store.close()
    let store = try KeychainStore.open(at: keychain.path, durability: .onClose)
    try store.read { (transaction) throws(KeyhaulError) in
      // 1 is NORMAL.
      #expect(try transaction.database.columnValues(sql: "PRAGMA synchronous") == [[.integer(1)]])
      #expect(try transaction.database.columnValues(sql: "PRAGMA journal_mode") == [[.text("wal")]])
    }
    try store.add(.genericPassword(), keys: keychain.keys, now: .seconds(1), random: keychain.random)
    #expect(FileManager.default.fileExists(atPath: keychain.path + "-wal"))
    try store.close()
    #expect(!FileManager.default.fileExists(atPath: keychain.path + "-wal"))
    #expect(try KeychainStore.open(at: keychain.path).count(of: .genericPassword) == 1)
  }

  @Test("Every call on a closed store throws, and closing again has no effect")
  func closed() throws {
    let keychain = try Keychain()
    let store = keychain.store
    try store.close()
    try store.close()
    let calls: [() throws -> Void] = [
      { _ = try store.count(of: .key) }, { _ = try keychain.find(ItemQuery()) },
      { try keychain.add(.genericPassword()) }, { _ = try store.rowSummaries(includingTombstones: true) },
      { _ = try store.indexes(of: [RowReference(kind: .key, rowID: 1)]) }, { try store.remove([]) },
      { try store.removeAll(protectedBy: .always) },
      { try store.provision([], isUnfinished: true, keys: keychain.keys, random: keychain.random) },
      { try keychain.restore(.genericPassword().dated(1)) },
    ]
    for call in calls {
      let error = #expect(throws: KeyhaulError.self) { try call() }
      #expect(error?.code == .closed)
      #expect(error?.category == .failed)
      #expect(error?.description == "the keychain is closed: it was used after it was closed")
    }
  }

  @Test("A call on a closed store in memory throws")
  func closedInMemory() throws {
    let store = try KeychainStore.inMemory()
    try store.close()
    #expect(throws: KeyhaulError.self) { try store.count(of: .key) }
  }

  @Test("While a store is being closed, calls on other threads finish or report that it is closed")
  func closedConcurrently() async throws {
    let store = try KeychainStore.inMemory()
    let errors = await withTaskGroup(of: String?.self) { group in
      for task in 0..<8 {
        group.addTask {
          for iteration in 0..<50 {
            do throws(KeyhaulError) {
              _ = try store.count(of: .genericPassword)
              if task == 0, iteration == 10 { try store.close() }
            } catch {
              return error.code == .closed ? nil : error.description
            }
          }
          return nil
        }
      }
      return await group.reduce(into: [String]()) { if let error = $1 { $0.append(error) } }
    }
    #expect(errors == [])
    #expect(throws: KeyhaulError.self) { try store.count(of: .key) }
  }

  @Test("Symbolic links to the database or its log are not followed")
  func links() throws {
    let keychain = try Keychain()
    try keychain.store.close()
    let link = keychain.directory.path("link.db")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: keychain.path)
    #expect(openingError(link)?.code == .storeDamaged)
    #expect(throws: KeyhaulError.self) { try KeychainStore.create(at: link) }

    try FileManager.default.createSymbolicLink(atPath: keychain.path + "-wal", withDestinationPath: "/etc/hostname")
    #expect(openingError(keychain.path)?.code == .storeDamaged)
  }

  @Test("Creating a store overwrites neither a file nor the log of another database")
  func creating() throws {
    let directory = try TemporaryDirectory()
    try directory.write([1, 2, 3], to: "keychain-2.db")
    #expect(throws: KeyhaulError.self) { try KeychainStore.create(at: directory.path("keychain-2.db")) }
    #expect(try directory.read("keychain-2.db") == [1, 2, 3])

    try directory.write([4], to: "other.db-wal")
    #expect(throws: KeyhaulError.self) { try KeychainStore.create(at: directory.path("other.db")) }
    #expect(!FileManager.default.fileExists(atPath: directory.path("other.db")))
  }

  @Test("A database with statistics from ANALYZE can be opened")
  func analyzed() throws {
    let keychain = try Keychain()
    try keychain.store.close()
    let queue = try DatabaseQueue(path: keychain.path)
    try queue.write { database in
      try database.execute(sql: "ANALYZE")
      #expect(try database.tableExists("sqlite_stat1"))
    }
    try queue.close()
    #expect(try KeychainStore.open(at: keychain.path).count(of: .genericPassword) == 0)
  }

  @Test("An absent file is reported as not available, and a folder or a file that is not a database as damaged")
  func notDatabases() throws {
    let directory = try TemporaryDirectory()
    #expect(openingError(directory.path("absent.db"))?.code == .notAvailable)
    #expect(openingError(directory.path)?.code == .storeDamaged)
    try directory.write(Array(repeating: UInt8(ascii: "A"), count: 8192), to: "text.db")
    #expect(openingError(directory.path("text.db"))?.code == .storeDamaged)
    try directory.write([], to: "empty.db")
    #expect(openingError(directory.path("empty.db"))?.code == .storeDamaged)
  }

  @Test(
    "A database whose definitions differ from Apple's schema is rejected",
    arguments: [
      "CREATE TRIGGER t AFTER INSERT ON genp BEGIN DELETE FROM inet; END",
      "CREATE VIEW v AS SELECT * FROM genp",
      "CREATE TABLE more(n)",
      "CREATE INDEX extra ON genp(acct)",
      "CREATE TEMP TABLE kept(n); DROP TABLE cert; CREATE VIEW cert AS SELECT 1",
      "DROP INDEX genpsvce",
      "DROP TABLE metadatakeys",
      "ALTER TABLE genp DROP COLUMN gena",
      "ALTER TABLE keys ADD COLUMN more BLOB",
      "ALTER TABLE genp ADD COLUMN more AS (hex(acct))",
      "UPDATE tversion SET minor = 10",
      "UPDATE tversion SET version = 11",
      "DELETE FROM tversion",
      "INSERT INTO tversion(version, minor) VALUES (13, 0)",
      "UPDATE tversion SET version = 'twelve'",
      "CREATE INDEX extra ON genp(abs(crtr))",
      "CREATE INDEX extra ON genp(acct || svce)",
      "CREATE INDEX extra ON genp(acct) WHERE tomb = 0",
      "CREATE INDEX extra ON genp(acct COLLATE NOCASE)",
      // Names that are reserved for SQLite, which only a manually edited schema gives to other objects.
      "CREATE INDEX extra ON genp(abs(crtr)); PRAGMA writable_schema = ON; UPDATE sqlite_master SET "
        + "name = 'sqlite_extra', sql = 'CREATE INDEX sqlite_extra ON genp(abs(crtr))' WHERE name = 'extra'",
      "CREATE INDEX extra ON genp(acct); PRAGMA writable_schema = ON; UPDATE sqlite_master SET "
        + "name = 'sqlite_autoindex_genp_9', sql = 'CREATE INDEX sqlite_autoindex_genp_9 ON genp(acct || 1)' "
        + "WHERE name = 'extra'",
      "CREATE TABLE more(n); PRAGMA writable_schema = ON; UPDATE sqlite_master SET "
        + "name = 'sqlite_more', tbl_name = 'sqlite_more', sql = 'CREATE TABLE sqlite_more(n)' WHERE name = 'more'",
    ])
  func otherSchema(change: String) throws {
    let keychain = try Keychain()
    try keychain.store.close()
    try keychain.tamper(change)
    let error = openingError(keychain.path)
    #expect(error?.code == .storeDamaged)
    #expect(error?.category == .damaged)
  }

  @Test("A database is accepted if its version contains the previous version in the upper half, as during an upgrade")
  func unfinishedUpgrade() throws {
    let keychain = try Keychain()
    try keychain.store.close()
    try keychain.tamper("UPDATE tversion SET version = 12 + (11 << 16), minor = 11 + (7 << 16)")
    try KeychainStore.open(at: keychain.path).close()
  }

  @Test("A store in memory works without a file")
  func inMemory() throws {
    let keychain = try Keychain()
    let store = try KeychainStore.inMemory()
    try store.add(.genericPassword(), keys: keychain.keys, now: .seconds(1), random: keychain.random)
    #expect(try store.count(of: .genericPassword) == 1)
  }
}
