import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Updating keychain items")
struct UpdatingTests {
  private func update(
    _ keychain: Keychain, _ attributes: AttributeMap<PropertyValue>,
    secret: String? = nil, at seconds: Double = 2000, tombstones: TombstonePolicy = .forbid
  ) throws -> Int {
    let bytes = secret.map { SensitiveBytes(copying: Array($0.utf8)) }
    let secrets: AttributeMap<SensitiveBytes> = bytes.map { [.valueData: $0] } ?? [:]
    return try keychain.store.update(
      ItemQuery(), with: ItemChanges(attributes: attributes, secrets: secrets), keys: keychain.keys,
      now: .seconds(seconds),
      tombstones: tombstones, random: keychain.random)
  }

  /// Returns the code of the error that a closure must throw.
  private func errorCode(_ body: () throws -> Int) -> KeyhaulError.Code? {
    #expect(throws: KeyhaulError.self) { _ = try body() }?.code
  }

  @Test("Updating the secret and the label changes nothing else except the modification date")
  func secretAndLabel() throws {
    let keychain = try Keychain()
    let oldItem = try keychain.add(.genericPassword())
    #expect(try update(keychain, [.label: .string("L"), .modificationDate: .date(.seconds(9))], secret: "new") == 1)
    let newItem = try keychain.only()
    #expect(newItem.secretText == "new")
    #expect(newItem[.label] == .string("L"))
    #expect(newItem.modificationDate == .seconds(2000))
    for code in [AttributeCode.creationDate, .uuid, .persistentReference, .account] {
      #expect(newItem[code] == oldItem.item[code])
    }
    #expect(try keychain.sql("SELECT rowid, labl FROM genp") == [["1", "x" + SHA1.hash(Array("L".utf8)).hex]])
  }

  @Test("An update makes the modification date later even if the clock stands still or goes back")
  func clock() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(), at: 1000)
    #expect(try update(keychain, [.label: .string("L")], at: 1000) == 1)
    #expect(try keychain.sql("SELECT mdat FROM genp") == [["1000.001"]])
  }

  @Test("Changing the protection class encrypts the item with another key")
  func protection() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword())
    #expect(try update(keychain, [.protection: .string("ck")]) == 1)
    // In an encrypted item, the class follows the version word of 4 bytes.
    #expect(try keychain.sql("SELECT pdmn, substr(hex(data), 9, 2) FROM genp") == [["'ck'", "'07'"]])
    let keys = try keychain.lockedKeys()
    #expect(try keychain.store.find(ItemQuery(wantsSecret: true), keys: keys).items.count == 1)
  }

  @Test("A conflict with another item rolls back the whole update")
  func conflict() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b"))
    let rowsBefore = try keychain.sql("SELECT * FROM genp")
    #expect(errorCode { try update(keychain, [.account: .string("c")]) } == .duplicateItem)
    #expect(try keychain.sql("SELECT * FROM genp") == rowsBefore)
  }

  @Test("An update without a match or with an invalid change fails")
  func refusals() throws {
    let keychain = try Keychain()
    #expect(errorCode { try update(keychain, [.label: .string("L")]) } == .itemNotFound)
    try keychain.add(.genericPassword())
    #expect(errorCode { try update(keychain, [.sharingGroup: .string("f")]) } == .parameter)
    #expect(errorCode { try update(keychain, [.appClip: .integer(1)]) } == .parameter)
    #expect(errorCode { try update(keychain, [.valueData: .data([1])]) } == .parameter)
    #expect(errorCode { try update(keychain, [.server: .string("s")]) } == .noSuchAttribute)
    #expect(errorCode { try update(keychain, [.account: .boolean(true)]) } == .parameter)
    #expect(errorCode { try update(keychain, [.protection: .string("zz")]) } == .parameter)
  }

  @Test("An update deletes undecodable rows")
  func undecodable() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b"))
    try keychain.tamper("UPDATE genp SET data = x'' WHERE rowid = 1")
    #expect(try update(keychain, [.label: .string("L")]) == 1)
    try keychain.tamper("UPDATE genp SET data = x''")
    #expect(errorCode { try update(keychain, [.label: .string("L")]) } == .itemNotFound)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("An item whose class key is not in memory stops an update")
  func locked() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword())
    let keys = try keychain.lockedKeys()
    let changes = ItemChanges(attributes: [.label: .string("L")])
    #expect(
      errorCode {
        try keychain.store.update(
          ItemQuery(), with: changes, keys: keys, now: .seconds(1), random: keychain.random)
      } == .interactionNotAllowed)
  }

  @Test("Renaming a synchronized item leaves a tombstone and makes a new record")
  func renamingSynchronizedItem() throws {
    let keychain = try Keychain()
    let itemBefore = try keychain.add(.genericPassword("old").with([.synchronizable: .integer(1)]))
    #expect(try update(keychain, [.account: .string("new")], tombstones: .leave) == 1)

    let rows = try keychain.store.rows(includingTombstones: true, keys: keychain.keys).compactMap(\.item)
    let tombstone = try #require(rows.first { $0.isTombstone })
    let renamed = try #require(rows.first { !$0.isTombstone })
    #expect(rows.count == 2)
    #expect(tombstone[.account] == .string("old"))
    #expect(tombstone[.uuid] == itemBefore.item[.uuid])
    #expect(tombstone[.persistentReference] != itemBefore.item[.persistentReference])
    #expect(tombstone.secrets.isEmpty)
    #expect(renamed[.account] == .string("new"))
    #expect(renamed[.uuid] != itemBefore.item[.uuid])
    #expect(renamed[.persistentReference] == itemBefore.item[.persistentReference])
  }

  @Test("Renaming a local item leaves no tombstone")
  func renamingLocalItem() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("old"))
    #expect(try update(keychain, [.account: .string("new")], tombstones: .leave) == 1)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["1"]])
  }
}

@Suite("Deleting keychain items")
struct DeletingTests {
  private func delete(
    _ keychain: Keychain, _ query: ItemQuery = ItemQuery(), at seconds: Double = 2000,
    tombstones: TombstonePolicy = .leave
  ) throws -> Int {
    try keychain.store.delete(
      query, keys: keychain.keys, now: .seconds(seconds), tombstones: tombstones, random: keychain.random)
  }

  @Test("A deletion removes every match, and fails if there is none")
  func matches() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b", service: "web"))
    try keychain.add(.internetPassword())
    #expect(try delete(keychain, ItemQuery(attributes: [.service: .string("mail")], limit: 0)) == 1)
    #expect(try delete(keychain, ItemQuery(kind: .genericPassword)) == 1)
    let error = #expect(throws: KeyhaulError.self) { _ = try delete(keychain, ItemQuery(kind: .genericPassword)) }
    #expect(error?.code == .itemNotFound)
    #expect(try keychain.store.count(of: .internetPassword) == 1)
  }

  @Test("The tombstone of a synchronized item has its identifiers and a later date, but no secret")
  func tombstone() throws {
    let keychain = try Keychain()
    let item = try keychain.add(
      .genericPassword().with([.synchronizable: .integer(1), .label: .string("L")]), at: 3000)
    #expect(try delete(keychain, at: 2000) == 1)
    let remaining = try keychain.only()
    let expected: Set<AttributeCode> = [
      .account, .service, .accessGroup, .synchronizable, .multiUser, .creationDate, .modificationDate, .protection,
      .uuid, .persistentReference, .tombstone, .digest,
    ]
    #expect(Set(remaining.attributes.keys) == expected)
    #expect(remaining.secrets.isEmpty)
    for code in [AttributeCode.account, .uuid, .persistentReference, .creationDate, .protection] {
      #expect(remaining[code] == item.item[code])
    }
    #expect(remaining.modificationDate == .seconds(3000.001))
    #expect(try keychain.sql("SELECT tomb, labl FROM genp") == [["1", "NULL"]])
  }

  @Test("A deletion leaves no tombstone if tombstones are forbidden")
  func forbiddenTombstone() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword().with([.synchronizable: .integer(1)]))
    #expect(try delete(keychain, tombstones: .forbid) == 1)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("Deleting an item whose class key is not in memory leaves no tombstone")
  func lockedItem() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword().with([.synchronizable: .integer(1)]))
    let keys = try keychain.lockedKeys()
    try keychain.store.delete(ItemQuery(), keys: keys, now: .seconds(1), tombstones: .leave, random: keychain.random)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("Deleting a tombstone removes its row")
  func tombstones() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword().with([.synchronizable: .integer(1)]))
    #expect(try delete(keychain) == 1)
    #expect(try delete(keychain, ItemQuery(tombstones: .only)) == 1)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("Removing a protection class deletes its rows and no others")
  func protectionClass() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a", as: .whenPasscodeSetThisDeviceOnly))
    try keychain.add(.genericPassword("b", as: .whenUnlockedThisDeviceOnly))
    try keychain.add(.internetPassword().with([.protection: .string("akpu")]))
    #expect(try keychain.store.removeAll(protectedBy: .whenPasscodeSetThisDeviceOnly) == 2)
    #expect(try keychain.sql("SELECT pdmn FROM genp UNION ALL SELECT pdmn FROM inet") == [["'aku'"]])
  }

  @Test("Undecodable rows that a search reported can be removed by reference")
  func byReference() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b"))
    try keychain.tamper("UPDATE genp SET data = NULL WHERE rowid = 1")
    let found = try keychain.store.find(ItemQuery(), keys: keychain.keys)
    try keychain.store.remove(found.undecodableRows.map(\.summary.reference))
    #expect(try keychain.sql("SELECT rowid FROM genp") == [["2"]])
  }

  @Test("Deleted items are overwritten in the file")
  func overwritten() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(group: "planted-group"))
    #expect(try delete(keychain) == 1)
    try keychain.store.close()
    let bytes = try keychain.directory.read("keychain-2.db")
    #expect(!String(decoding: bytes, as: UTF8.self).contains("planted-group"))
  }
}
