import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Searching the keychain")
struct SearchingTests {
  private func accounts(_ keychain: Keychain, _ query: ItemQuery) throws -> Set<String> {
    Set(try keychain.find(query).compactMap { $0.item[.account]?.stringValue })
  }

  private func keychainWithItems() throws -> Keychain {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("anna", group: "one"))
    try keychain.add(.genericPassword("ben", service: "web", group: "two"))
    try keychain.add(.genericPassword("cleo", group: "one").with([.synchronizable: .integer(1)]))
    try keychain.add(.internetPassword(group: "one").with([.account: .string("dora")]))
    try keychain.add(KeychainItem(kind: .certificate, attributes: [.accessGroup: .string("one")]))
    return keychain
  }

  @Test("Searches filter by attributes, kind, group and synchronization")
  func filters() throws {
    let keychain = try keychainWithItems()
    #expect(try accounts(keychain, ItemQuery()) == ["anna", "ben", "cleo", "dora"])
    #expect(try keychain.find(ItemQuery()).count == 5)
    #expect(try accounts(keychain, ItemQuery(kind: .genericPassword)) == ["anna", "ben", "cleo"])
    #expect(try accounts(keychain, ItemQuery(attributes: [.service: .string("mail")])) == ["anna", "cleo"])
    #expect(try accounts(keychain, ItemQuery(attributes: [.account: .data(Array("ben".utf8))])) == ["ben"])
    #expect(try accounts(keychain, ItemQuery(attributes: [.port: .string("993")])) == ["dora"])
    #expect(try accounts(keychain, ItemQuery(accessGroups: .only(["two", "three"]))) == ["ben"])
    #expect(try accounts(keychain, ItemQuery(accessGroups: .only([]))) == [])
    #expect(try accounts(keychain, ItemQuery(synchronization: .localOnly)) == ["anna", "ben", "dora"])
    #expect(try accounts(keychain, ItemQuery(synchronization: .synchronizedOnly)) == ["cleo"])
    #expect(try accounts(keychain, ItemQuery(attributes: [.account: .string("zoe")])) == [])
  }

  @Test("A search by an unknown attribute fails if it names a kind of item, and finds nothing otherwise")
  func unknownAttributes() throws {
    let keychain = try keychainWithItems()
    #expect(try keychain.find(ItemQuery(attributes: ["zzzz": .integer(1)])).isEmpty)
    for code in [AttributeCode.server, .valueData, .encryptedData, "zzzz", "acct=acct OR 1"] {
      let error = #expect(throws: KeyhaulError.self) {
        try keychain.find(ItemQuery(kind: .genericPassword, attributes: [code: .string("a")]))
      }
      #expect(error?.code == .noSuchAttribute)
    }
  }

  @Test("The limit applies to all kinds together, and a limit of zero finds nothing")
  func limits() throws {
    let keychain = try keychainWithItems()
    for limit in [0, 1, 4, 5] { #expect(try keychain.find(ItemQuery(limit: limit)).count == limit) }
    #expect(try keychain.find(ItemQuery(limit: 6)).count == 5)
  }

  @Test("Items are found by row and by persistent reference")
  func references() throws {
    let keychain = try keychainWithItems()
    let dora = try #require(try keychain.find(ItemQuery(kind: .internetPassword)).first)
    #expect(try accounts(keychain, ItemQuery(row: dora.summary.reference)) == ["dora"])
    #expect(try accounts(keychain, ItemQuery(persistentReference: dora.persistentReference)) == ["dora"])
    #expect(try keychain.find(ItemQuery(persistentReference: [UInt8](repeating: 0, count: 16))).isEmpty)
  }

  @Test("A search returns secrets only on request")
  func secrets() throws {
    let keychain = try keychainWithItems()
    let query = ItemQuery(attributes: [.account: .string("anna")])
    #expect(try keychain.find(query).map(\.item.secretText) == [nil])
    var withSecret = query
    withSecret.wantsSecret = true
    #expect(try keychain.find(withSecret).map(\.item.secretText) == ["correct horse"])
  }

  @Test("Changing an item's access group column does not make the item visible to that group")
  func changedGroup() throws {
    let keychain = try keychainWithItems()
    try keychain.tamper("UPDATE genp SET agrp = 'two' WHERE agrp = 'one'")
    #expect(try accounts(keychain, ItemQuery(accessGroups: .only(["two"]))) == ["ben"])
  }

  @Test("Searches skip tombstones by default, and items of other users always")
  func hidden() throws {
    let keychain = try Keychain()
    try keychain.restore(.genericPassword("gone").with([.tombstone: .integer(1), .synchronizable: .integer(1)]))
    try keychain.restore(.genericPassword("system").with([.multiUser: .data(IncomingItem.systemKeychainUser)]))
    try keychain.restore(.genericPassword("here"))
    #expect(try accounts(keychain, ItemQuery()) == ["here"])
    #expect(try accounts(keychain, ItemQuery(tombstones: .included)) == ["here", "gone"])
    #expect(try accounts(keychain, ItemQuery(tombstones: .only)) == ["gone"])
    #expect(try keychain.store.count(of: .genericPassword) == 1)
    #expect(try keychain.store.rowSummaries(includingTombstones: true).count == 2)
  }

  @Test("A matching item whose class key is not in memory ends the search with an error")
  func locked() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("locked"))
    try keychain.add(.genericPassword("open", as: .afterFirstUnlock))
    let keys = try keychain.lockedKeys()
    let error = #expect(throws: KeyhaulError.self) { try keychain.store.find(ItemQuery(), keys: keys) }
    #expect(error?.code == .interactionNotAllowed)
    let query = ItemQuery(attributes: [.account: .string("open")])
    #expect(try keychain.store.find(query, keys: keys).items.count == 1)
  }
}

@Suite("Listing keychain rows")
struct RowListingTests {
  @Test("Rows are listed by kind and number, with column values even if a class key is not in memory")
  func order() throws {
    let keychain = try Keychain()
    try keychain.add(KeychainItem(kind: .key, attributes: [.accessGroup: .string("g"), .protection: .string("dk")]))
    try keychain.add(.internetPassword())
    try keychain.add(.genericPassword("b", as: .afterFirstUnlock))
    try keychain.add(
      .genericPassword("a", group: "shared", as: .whenUnlockedThisDeviceOnly).with([
        .sharingGroup: .string("family"), .tokenID: .string("t"), .synchronizable: .integer(1), .appClip: .integer(1),
      ]), at: 42)
    let keys = try keychain.lockedKeys()

    let rows = try keychain.store.rows(includingTombstones: false, keys: keys)

    #expect(rows.map(\.summary.kind.rawValue) == ["genp", "genp", "inet", "keys"])
    #expect(rows.map(\.summary.reference.rowID) == [1, 2, 1, 1])
    #expect(
      rows.map(\.fault) == [nil, .locked(.whenUnlockedThisDeviceOnly), .locked(.whenUnlocked), nil])
    let summary = rows[1].summary
    #expect(summary.accessGroup == "shared")
    #expect(summary.protection == .whenUnlockedThisDeviceOnly)
    #expect(summary.isSynchronizable && summary.isAppClip && summary.hasTokenID && !summary.isTombstone)
    #expect(summary.sharingGroup == "family")
    #expect(summary.modificationDate == .seconds(42))
    #expect(summary.digest?.count == 20)
    #expect(summary.multiUser == [])
    #expect(summary.uuid?.count == 36)
    #expect(rows[0].summary.sharingGroup == nil)
    #expect(rows[0].item?.secretText == "correct horse")
  }
}
