import Basics
import Foundation
import GRDB
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

/// Columns with unhashed data that may be empty, for each table.
private let dataColumns: [ItemKind: [String]] = [
  .genericPassword: ["musr", "persistref"], .internetPassword: ["musr", "persistref"],
  .certificate: ["musr", "persistref", "pkhh"], .key: ["musr", "persistref", "klbl"],
]

@Suite("Empty data in keychain columns")
struct EmptyDataTests {
  /// Adds an item of each kind with only an access group, and for certificates an empty hash of the public key.
  private func addMinimalItems(to keychain: Keychain) throws {
    for kind in ItemKind.allCases {
      var item = KeychainItem(kind: kind, attributes: [.accessGroup: .string("g"), .protection: .string("ak")])
      if kind == .certificate { item[.publicKeyHash] = .data([]) }
      try keychain.add(item)
    }
  }

  /// Changes the database to the form that the first versions of Keyhaul wrote.
  private func writeEmptyBlobs(in keychain: Keychain) throws {
    for (kind, columns) in dataColumns {
      for column in columns {
        try keychain.tamper("UPDATE \(kind.rawValue) SET \(column) = x'' WHERE \(column) = ''")
      }
    }
  }

  private func allRows(_ keychain: Keychain) throws -> [[[String]]] {
    try ItemKind.allCases.map { try keychain.sql("SELECT * FROM \($0.rawValue) ORDER BY rowid") }
  }

  /// Returns the type and length of each value in the columns with unhashed data, such as `blob0`.
  private func typesAndLengths(of kind: ItemKind, _ keychain: Keychain) throws -> [String] {
    let columns = (dataColumns[kind] ?? []).map { "typeof(\($0)) || length(\($0))" }.joined(separator: ",")
    return try keychain.sql("SELECT \(columns) FROM \(kind.rawValue)").flatMap { $0 }
  }

  @Test("Empty data is stored as empty text, which Apple's daemon searches for, and no column has an empty blob")
  func emptyText() throws {
    let keychain = try Keychain()
    try addMinimalItems(to: keychain)
    try keychain.add(.genericPassword("given").with([.multiUser: .data([]), "pcsk": .data([]), "pcsi": .string("")]))
    try keychain.restore(.genericPassword("restored").with([.multiUser: .data([])]).dated(5))
    for kind in ItemKind.allCases {
      #expect(try !typesAndLengths(of: kind, keychain).contains("'blob0'"))
      #expect(try keychain.sql("SELECT count(*) FROM \(kind.rawValue) WHERE musr = ''") != [["0"]])
      for definition in ColumnDefinitions.all(of: kind) {
        let column = definition.code.rawValue
        let blobs = try keychain.sql(
          "SELECT count(*) FROM \(kind.rawValue) WHERE typeof(\(column)) = 'blob' AND length(\(column)) = 0")
        #expect(blobs == [["0"]], "\(kind.rawValue).\(column)")
      }
    }
    #expect(try keychain.sql("SELECT typeof(klbl), length(klbl) FROM keys") == [["'text'", "0"]])
    #expect(try keychain.sql("SELECT typeof(pkhh), length(pkhh) FROM cert") == [["'text'", "0"]])
    #expect(try keychain.sql("SELECT typeof(pcsk) FROM genp WHERE pcsk IS NOT NULL") == [["'text'"]])
  }

  @Test("Both forms of empty data have the same results in searches, counts and primary keys")
  func bothForms() throws {
    let keychain = try Keychain()
    try addMinimalItems(to: keychain)
    let summariesWithText = try keychain.store.rowSummaries(includingTombstones: true)
    try writeEmptyBlobs(in: keychain)
    // Four values in `musr`, and one each in `pkhh` and `klbl`. `sql` writes a blob as x and its hexadecimal digits.
    let emptyBlob = "x"
    #expect(try allRows(keychain).joined().joined().filter { $0 == emptyBlob }.count == 6)
    let summariesWithBlobs = try keychain.store.rowSummaries(includingTombstones: true)
    #expect(summariesWithBlobs.map(\.primaryKey) == summariesWithText.map(\.primaryKey))
    #expect(summariesWithBlobs.map(\.multiUser) == [[], [], [], []])
    #expect(try ItemKind.allCases.map { try keychain.store.count(of: $0) } == [1, 1, 1, 1])
    let byLabel = ItemQuery(kind: .key, attributes: [.applicationLabel: .data([])])
    let byHash = ItemQuery(kind: .certificate, attributes: [.publicKeyHash: .string("")])
    #expect(try keychain.find(byLabel).count == 1 && keychain.find(byHash).count == 1)
    for item in try keychain.find(ItemQuery()) {
      let primaryKey = try ItemColumns.primaryKeyValues(of: item.item)
      let row = try keychain.store.read { (transaction) throws(KeyhaulError) in
        try transaction.row(item.item.kind, primaryKey: primaryKey)
      }
      #expect(row?.summary.reference == item.summary.reference)
    }
  }

  @Test("An item of the system user is not found")
  func otherUser() throws {
    let keychain = try Keychain()
    try keychain.restore(.genericPassword().with([.multiUser: .data(IncomingItem.systemKeychainUser)]).dated(5))
    #expect(try keychain.find(ItemQuery()).isEmpty)
  }
}

@Suite("Keychain databases with empty blobs")
struct OldEmptyDataTests {
  /// Creates a keychain in which `musr` and `klbl` are empty blobs.
  private func oldKeychain(_ accounts: [String] = ["anna", "ben"]) throws -> Keychain {
    let keychain = try Keychain()
    for account in accounts { try keychain.add(.genericPassword(account)) }
    try keychain.add(.internetPassword())
    for kind in [ItemKind.certificate, .key] {
      try keychain.add(KeychainItem(kind: kind, attributes: [.accessGroup: .string("g"), .protection: .string("ak")]))
    }
    try keychain.store.close()
    for kind in ItemKind.allCases { try keychain.tamper("UPDATE \(kind.rawValue) SET musr = x''") }
    try keychain.tamper("UPDATE keys SET klbl = x''")
    return keychain
  }

  /// Returns the types of the empty values in `musr` and `klbl`: `blob`, `text`, or both.
  private func emptyDataTypes(in path: String) throws -> Set<String> {
    let queue = try DatabaseQueue(path: path)
    return try queue.read { database in
      var types: Set<String> = []
      for kind in ItemKind.allCases {
        types.formUnion(try String.fetchAll(database, sql: "SELECT DISTINCT typeof(musr) FROM \(kind.rawValue)"))
      }
      return types.union(try String.fetchAll(database, sql: "SELECT DISTINCT typeof(klbl) FROM keys"))
    }
  }

  /// Returns the columns that a normalization must not change.
  private func unchangedColumns(_ keychain: Keychain) throws -> [[String]] {
    try keychain.sql(
      "SELECT rowid, acct, svce, agrp, hex(data), hex(persistref), UUID, hex(sha1), mdat, cdat FROM genp ORDER BY rowid"
    )
  }

  @Test("Opening a database only for reading leaves empty blobs as they are")
  func reading() throws {
    let keychain = try oldKeychain()
    let fileBefore = try Data(keychain.directory.read("keychain-2.db"))
    let store = try KeychainStore.open(at: keychain.path, isForReading: true)
    #expect(try store.find(ItemQuery(), keys: keychain.keys).items.count == 5)
    #expect(try store.find(ItemQuery(wantsSecret: true), keys: keychain.keys).items[0].item.secretText != nil)
    try store.close()
    #expect(try Data(keychain.directory.read("keychain-2.db")) == fileBefore)
    #expect(try emptyDataTypes(in: keychain.path) == ["blob"])
  }

  @Test("Opening a database for writing normalizes empty blobs once and changes nothing else")
  func normalizing() throws {
    let keychain = try oldKeychain()
    let columnsBefore = try unchangedColumns(keychain)
    let store = try KeychainStore.open(at: keychain.path)
    #expect(try emptyDataTypes(in: keychain.path) == ["text"])
    #expect(try unchangedColumns(keychain) == columnsBefore)
    #expect(try store.find(ItemQuery(), keys: keychain.keys).items.count == 5)
    let duplicate = #expect(throws: KeyhaulError.self) {
      try store.add(.genericPassword("anna"), keys: keychain.keys, now: .seconds(2), random: keychain.random)
    }
    #expect(duplicate?.code == .duplicateItem)
    try store.close()

    let normalized = try Data(keychain.directory.read("keychain-2.db"))
    try KeychainStore.open(at: keychain.path).close()
    #expect(try Data(keychain.directory.read("keychain-2.db")) == normalized)
  }

  @Test(
    "Empty blobs that an older program has written since are normalized again, in any column",
    arguments: [
      "UPDATE genp SET musr = x'' WHERE rowid = 2", "UPDATE keys SET klbl = x''", "UPDATE cert SET musr = x''",
      "UPDATE inet SET persistref = x''", "UPDATE cert SET pkhh = x''",
    ])
  func laterBlobs(change: String) throws {
    let keychain = try oldKeychain()
    try KeychainStore.open(at: keychain.path).close()
    try keychain.tamper(change)
    try KeychainStore.open(at: keychain.path).close()
    for (kind, columns) in dataColumns {
      for column in columns {
        let count = try keychain.sql("SELECT count(*) FROM \(kind.rawValue) WHERE \(column) = x''")
        #expect(count == [["0"]], "\(kind.rawValue).\(column)")
      }
    }
  }

  @Test("After a power failure during normalization, the database has its old state, and opening normalizes it")
  func powerLoss() throws {
    let keychain = try oldKeychain((0..<300).map { "account \($0)" })
    let copyBefore = keychain.directory.path("before.db")
    let copyDuring = keychain.directory.path("during.db")
    func copyFiles(to path: String) throws {
      for suffix in ["", "-wal"] where FileManager.default.fileExists(atPath: keychain.path + suffix) {
        try FileManager.default.copyItem(atPath: keychain.path + suffix, toPath: path + suffix)
      }
    }
    let store = try KeychainStore.open(at: keychain.path, isForReading: true)
    try copyFiles(to: copyBefore)
    try store.write { (transaction) throws(KeyhaulError) in
      try EmptyData.normalize(in: transaction)
      try translatingErrors { try copyFiles(to: copyDuring) }
    }
    try store.close()
    #expect(try emptyDataTypes(in: keychain.path) == ["text"])
    // The copies are in the state after a power failure, in which the change is not committed.
    for path in [copyBefore, copyDuring] {
      #expect(try emptyDataTypes(in: path) == ["blob"], "\(path)")
      let opened = try KeychainStore.open(at: path)
      #expect(try emptyDataTypes(in: path) == ["text"] && opened.count(of: .genericPassword) == 300, "\(path)")
    }
  }

  @Test("A failed normalization changes nothing")
  func failedNormalization() throws {
    let keychain = try oldKeychain()
    let store = try KeychainStore.open(at: keychain.path, isForReading: true)
    #expect(throws: KeyhaulError.self) {
      try store.write { (transaction) throws(KeyhaulError) in
        try EmptyData.normalize(in: transaction)
        throw KeyhaulError(.diskFull, "the disk is full")
      }
    }
    #expect(try emptyDataTypes(in: keychain.path) == ["blob"])
  }

  @Test(
    "Of two duplicate rows, the row modified last stays; if the dates are equal, the row with empty text stays",
    arguments: [(5, 9, "text"), (9, 5, "blob"), (7, 7, "text")] as [(Double, Double, String)])
  func duplicates(dateOfBlob: Double, dateOfText: Double, remaining: String) throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword().with([.comment: .string("blob")]), at: dateOfBlob)
    try keychain.tamper("UPDATE genp SET musr = x''")
    // The unique index accepts a second row with the same primary key, because the values of `musr` differ.
    try keychain.add(.genericPassword().with([.comment: .string("text")]), at: dateOfText)
    #expect(try keychain.sql("SELECT typeof(musr) FROM genp ORDER BY rowid") == [["'blob'"], ["'text'"]])
    try keychain.store.close()

    let store = try KeychainStore.open(at: keychain.path)
    let items = try store.find(ItemQuery(), keys: keychain.keys).items
    try store.close()
    #expect(items.map { $0.item[.comment] } == [.string(remaining)])
    #expect(try keychain.sql("SELECT typeof(musr), count(*) FROM genp") == [["'text'", "1"]])
  }

  @Test("Rows with NULL in their primary key are not duplicates, and an invalid date counts as missing")
  func unusualRows() throws {
    let keychain = try oldKeychain(["anna", "ben", "carl"])
    try keychain.tamper("UPDATE genp SET acct = zeroblob(20), vwht = NULL WHERE rowid < 3")
    try keychain.tamper("UPDATE genp SET mdat = x'ffff' WHERE rowid = 1")
    try keychain.tamper(
      "INSERT INTO genp(acct, svce, agrp, vwht, tkid, musr, persistref, ggrp, mdat, data) "
        + "SELECT acct, svce, agrp, vwht, tkid, '', persistref, ggrp, 'x', data FROM genp WHERE rowid = 3")
    try KeychainStore.open(at: keychain.path).close()
    #expect(
      try keychain.sql("SELECT rowid, typeof(musr) FROM genp ORDER BY rowid") == [
        ["1", "'text'"], ["2", "'text'"], ["3", "'text'"],
      ])
  }

  @Test("The search for empty blobs uses only indexes")
  func queryPlan() throws {
    let keychain = try Keychain()
    for group in 0..<40 {
      try keychain.store.add(
        contentsOf: (0..<25).map { .genericPassword("\($0)", group: "group \(group)") }, keys: keychain.keys,
        now: .seconds(1), random: keychain.random)
    }
    let steps = try EmptyData.probeSQL(for: .genericPassword).flatMap { sql in
      try keychain.sql("EXPLAIN QUERY PLAN " + sql).compactMap(\.last)
    }
    #expect(steps.contains { $0.hasPrefix("'SEARCH genp USING") })
    #expect(!steps.contains { $0.hasPrefix("'SCAN genp") }, "\(steps)")
    #expect(try keychain.store.read(EmptyData.needsNormalization(in:)) == false)
    try keychain.tamper("UPDATE genp SET musr = x'' WHERE rowid = 987")
    #expect(try keychain.store.read(EmptyData.needsNormalization(in:)))
  }
}
