import Basics
import GRDB
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Primary keys of items")
struct PrimaryKeyTests {
  private func areDuplicates(_ first: KeychainItem, _ second: KeychainItem) throws -> Bool {
    let keychain = try Keychain()
    try keychain.add(first)
    do {
      try keychain.add(second)
      return false
    } catch let error as KeyhaulError where error.code == .duplicateItem {
      return true
    }
  }

  @Test("Generic passwords that differ only in their generic attribute, label and secret are duplicates")
  func genericAttribute() throws {
    let first = KeychainItem.genericPassword(secret: "one").with([.generic: .data([1]), .label: .string("a")])
    let second = KeychainItem.genericPassword(secret: "two").with([.generic: .data([2]), .label: .string("b")])
    #expect(try areDuplicates(first, second))
  }

  @Test(
    "Generic passwords that differ in an attribute of the primary key are not duplicates",
    arguments: [
      (.account, .string("x")), (.service, .string("x")), (.accessGroup, .string("x")), (.synchronizable, .integer(1)),
      (.syncViewHint, .string("x")),
      (.tokenID, .string("x")), (.sharingGroup, .string("x")),
    ] as [(AttributeCode, PropertyValue)])
  func genericPasswords(code: AttributeCode, value: PropertyValue) throws {
    let item = KeychainItem.genericPassword()
    #expect(try !areDuplicates(item, item.with([code: value])))
  }

  @Test(
    "Internet passwords that differ in an attribute of the primary key are not duplicates",
    arguments: [
      (.account, .string("x")), (.securityDomain, .string("x")), (.server, .string("x")),
      (.protocolType, .string("http")), (.authenticationType, .string("x")),
      (.port, .integer(143)), (.path, .string("x")),
    ] as [(AttributeCode, PropertyValue)])
  func internetPasswords(code: AttributeCode, value: PropertyValue) throws {
    let item = KeychainItem.internetPassword()
    #expect(try !areDuplicates(item, item.with([code: value])))
    #expect(try areDuplicates(item, item.with([.label: .string("x"), .comment: .string("y")])))
  }

  /// Pairs of items with unusual values. Some have the same primary key, and some do not.
  private static let pairs: [(KeychainItem, KeychainItem)] = {
    let generic = KeychainItem.genericPassword()
    let internet = KeychainItem.internetPassword()
    let key = KeychainItem(kind: .key, attributes: [.accessGroup: .string("g")])
    return [
      (generic.with([.account: .string("anna")]), generic.with([.account: .data(Array("anna".utf8))])),
      (generic.with([.account: .integer(0x6162_6364)]), generic.with([.account: .string("dcba")])),
      (generic.with([.account: .string("a\0b")]), generic.with([.account: .string("a\0c")])),
      (generic.with([.accessGroup: .string("a\0b")]), generic.with([.accessGroup: .string("a\0c")])),
      (generic.with([.accessGroup: .string("a\0b")]), generic.with([.accessGroup: .string("a")])),
      (generic.with([.accessGroup: .string("caf\u{E9}")]), generic.with([.accessGroup: .string("cafe\u{301}")])),
      (generic.with([.accessGroup: .string("G")]), generic.with([.accessGroup: .string("g")])),
      (generic.with([.accessGroup: .string("g")]), generic.with([.accessGroup: .data(Array("g".utf8))])),
      (internet.with([.port: .integer(7)]), internet.with([.port: .string("7")])),
      (internet.with([.port: .integer(7)]), internet.with([.port: .string("007")])),
      (internet.with([.port: .integer(7)]), internet.with([.port: .string(" +7.0e0 ")])),
      (internet.with([.port: .integer(1)]), internet.with([.port: .boolean(true)])),
      (internet.with([.port: .string("7x")]), internet.with([.port: .string("7")])),
      (internet.with([.protocolType: .string("htps")]), internet.with([.protocolType: .integer(0x6874_7073)])),
      (key.with([.keyClass: .integer(1)]), key.with([.keyClass: .string("1")])),
      (key.with([.startDate: .date(.seconds(-0.0))]), key),
      (key.with([.applicationLabel: .data([0x31])]), key.with([.applicationLabel: .string("1")])),
      (key.with([.startDate: .date(.seconds(1))]), key.with([.endDate: .date(.seconds(1))])),
    ]
  }()

  @Test("Two items have the same computed primary key exactly if SQLite rejects the second", arguments: pairs.indices)
  func agreement(index: Int) throws {
    let (first, second) = Self.pairs[index]
    #expect(try areDuplicates(first, second) == (PrimaryKey(of: first) == PrimaryKey(of: second)))
  }

  @Test("The primary key of a decrypted item equals the primary key of its row")
  func itemsAndRows() throws {
    let keychain = try Keychain()
    var items = Self.pairs.map(\.0)
    items.append(KeychainItem(kind: .certificate, attributes: [.accessGroup: .string("g"), .issuer: .data([1, 2])]))
    for (index, item) in items.enumerated() {
      // This attribute distinguishes items that are otherwise equal.
      let stored = try keychain.add(item.with([.syncViewHint: .string("\(index)")]))
      let summary = try #require(
        try keychain.store.rowSummaries(includingTombstones: true).first { $0.reference == stored.summary.reference })
      #expect(try PrimaryKey(of: stored.item) == summary.primaryKey)
    }
  }
}

@Suite("Text in numeric columns")
struct NumericAffinityTests {
  /// Returns the value that SQLite stores for a text in an INTEGER column.
  private func storedValue(of text: String) throws -> ColumnValue {
    try DatabaseQueue().write { database in
      try database.execute(sql: "CREATE TABLE t(n INTEGER)")
      try database.run("INSERT INTO t VALUES (?)", [.text(text)])
      return try ColumnValue.fetchOne(database, sql: "SELECT n FROM t") ?? .null
    }
  }

  @Test(
    "A text is converted to a number under the same conditions as in SQLite",
    arguments: [
      "", " ", "0", "7", "007", "-7", "+7", "--7", "7.", ".7", ".", "7.0", "7.5", "1e3", "1e", "1e+", "1e-3", "1E2",
      "e5",
      " 7", "7 ", "\t7\n", "\u{0B}7\u{0C}", "7 7", "0x10", "htps", "7\0", "\u{00A0}7", "٧", "nan", "inf", "Infinity",
      "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e18", "1e19",
      "1e400", "-9223372036854775808.0", "-9.223372036854775808e18", "9223372036854775807.0", "9223372036854774784.0",
      "-0", "-0.0", "0.1", "123456789012345678901234567890", "4611686018427387904.0", "1_000", "1,5",
    ])
  func text(_ text: String) throws {
    #expect(try NumericAffinity.storedValue(ofText: Array(text.utf8)) == storedValue(of: text), "\(text)")
  }

  @Test("10,000 random texts are converted as in SQLite (2,000 in a quick run)")
  func random() throws {
    var random = SeededRandom(seed: 20)
    let characters = Array("0123456789+-.eE x")
    try DatabaseQueue().write { database in
      try database.execute(sql: "CREATE TABLE t(n INTEGER)")
      for _ in 0..<Cases.count(10_000, quick: 2_000) {
        var text = ""
        for _ in 0..<Int.random(in: 0...7, using: &random) {
          text.append(characters[Int.random(in: 0..<characters.count, using: &random)])
        }
        try database.execute(sql: "DELETE FROM t")
        try database.run("INSERT INTO t VALUES (?)", [.text(text)])
        let stored = try ColumnValue.fetchOne(database, sql: "SELECT n FROM t") ?? .null
        #expect(NumericAffinity.storedValue(ofText: Array(text.utf8)) == stored, "\(text)")
      }
    }
  }
}
