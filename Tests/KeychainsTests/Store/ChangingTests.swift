import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Changing items")
struct Changing {
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

  private func failure(_ body: () throws -> Int) -> KeyhaulError.Code? {
    #expect(throws: KeyhaulError.self) { _ = try body() }?.code
  }

  @Test("a new secret and a new label leave everything else, with the date of now")
  func secretAndLabel() throws {
    let keychain = try Keychain()
    let before = try keychain.add(.genericPassword())
    #expect(try update(keychain, [.label: .string("L"), .modificationDate: .date(.seconds(9))], secret: "new") == 1)
    let after = try keychain.only()
    #expect(after.secretText == "new")
    #expect(after[.label] == .string("L"))
    #expect(after.modificationDate == .seconds(2000))
    for code in [AttributeCode.creationDate, .uuid, .persistentReference, .account] {
      #expect(after[code] == before.item[code])
    }
    #expect(try keychain.sql("SELECT rowid, labl FROM genp") == [["1", "x" + SHA1.hash(Array("L".utf8)).hex]])
  }

  @Test("a clock that stands still or goes back makes the item a little younger all the same")
  func clock() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(), at: 1000)
    #expect(try update(keychain, [.label: .string("L")], at: 1000) == 1)
    #expect(try keychain.sql("SELECT mdat FROM genp") == [["1000.001"]])
  }

  @Test("another protection class seals the item under another key")
  func protection() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword())
    #expect(try update(keychain, [.protection: .string("ck")]) == 1)
    #expect(try keychain.sql("SELECT pdmn, substr(hex(data), 9, 2) FROM genp") == [["'ck'", "'07'"]])
    let keys = try keychain.lockedKeys()
    #expect(try keychain.store.find(ItemQuery(wantsSecret: true), keys: keys).items.count == 1)
  }

  @Test("a collision takes back the whole update")
  func collision() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b"))
    let before = try keychain.sql("SELECT * FROM genp")
    #expect(failure { try update(keychain, [.account: .string("c")]) } == .duplicateItem)
    #expect(try keychain.sql("SELECT * FROM genp") == before)
  }

  @Test("nothing to change is not found; what cannot be changed is refused")
  func refusals() throws {
    let keychain = try Keychain()
    #expect(failure { try update(keychain, [.label: .string("L")]) } == .itemNotFound)
    try keychain.add(.genericPassword())
    #expect(failure { try update(keychain, [.sharingGroup: .string("f")]) } == .parameter)
    #expect(failure { try update(keychain, [.appClip: .integer(1)]) } == .parameter)
    #expect(failure { try update(keychain, [.valueData: .data([1])]) } == .parameter)
    #expect(failure { try update(keychain, [.server: .string("s")]) } == .noSuchAttribute)
    #expect(failure { try update(keychain, [.account: .boolean(true)]) } == .parameter)
    #expect(failure { try update(keychain, [.protection: .string("zz")]) } == .parameter)
  }

  @Test("an undecodable row is deleted on the way")
  func undecodable() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b"))
    try keychain.tamper("UPDATE genp SET data = x'' WHERE rowid = 1")
    #expect(try update(keychain, [.label: .string("L")]) == 1)
    try keychain.tamper("UPDATE genp SET data = x''")
    #expect(failure { try update(keychain, [.label: .string("L")]) } == .itemNotFound)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("a locked item stops the update")
  func locked() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword())
    let keys = try keychain.lockedKeys()
    let changes = ItemChanges(attributes: [.label: .string("L")])
    #expect(
      failure {
        try keychain.store.update(
          ItemQuery(), with: changes, keys: keys, now: .seconds(1), random: keychain.random)
      } == .interactionNotAllowed)
  }

  @Test("renaming a synchronized item leaves a tombstone and makes a new record; renaming a local one doesn't")
  func renaming() throws {
    let keychain = try Keychain()
    let before = try keychain.add(.genericPassword("old").with([.synchronizable: .integer(1)]))
    #expect(try update(keychain, [.account: .string("new")], tombstones: .leave) == 1)

    let rows = try keychain.store.rows(includingTombstones: true, keys: keychain.keys).compactMap(\.item)
    let tombstone = try #require(rows.first { $0.isTombstone })
    let renamed = try #require(rows.first { !$0.isTombstone })
    #expect(rows.count == 2)
    #expect(tombstone[.account] == .string("old"))
    #expect(tombstone[.uuid] == before.item[.uuid])
    #expect(tombstone[.persistentReference] != before.item[.persistentReference])
    #expect(tombstone.secrets.isEmpty)
    #expect(renamed[.account] == .string("new"))
    #expect(renamed[.uuid] != before.item[.uuid])
    #expect(renamed[.persistentReference] == before.item[.persistentReference])

    let local = try Keychain()
    try local.add(.genericPassword("old"))
    #expect(try update(local, [.account: .string("new")], tombstones: .leave) == 1)
    #expect(try local.sql("SELECT count(*) FROM genp") == [["1"]])
  }
}

@Suite("Deleting items")
struct Deleting {
  private func delete(
    _ keychain: Keychain, _ query: ItemQuery = ItemQuery(), at seconds: Double = 2000,
    tombstones: TombstonePolicy = .leave
  ) throws -> Int {
    try keychain.store.delete(
      query, keys: keychain.keys, now: .seconds(seconds), tombstones: tombstones, random: keychain.random)
  }

  @Test("takes every match, and finding none is an error")
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

  @Test("a synchronized item leaves its key, class, UUID and reference, later than it was, and no secret")
  func tombstone() throws {
    let keychain = try Keychain()
    let item = try keychain.add(
      .genericPassword().with([.synchronizable: .integer(1), .label: .string("L")]), at: 3000)
    #expect(try delete(keychain, at: 2000) == 1)
    let left = try keychain.only()
    let expected: Set<AttributeCode> = [
      .account, .service, .accessGroup, .synchronizable, .multiUser, .creationDate, .modificationDate, .protection,
      .uuid, .persistentReference, .tombstone, .digest,
    ]
    #expect(Set(left.attributes.keys) == expected)
    #expect(left.secrets.isEmpty)
    for code in [AttributeCode.account, .uuid, .persistentReference, .creationDate, .protection] {
      #expect(left[code] == item.item[code])
    }
    #expect(left.modificationDate == .seconds(3000.001))
    #expect(try keychain.sql("SELECT tomb, labl FROM genp") == [["1", "NULL"]])
  }

  @Test("it leaves nothing where that is forbidden, or where it is locked")
  func withoutTombstone() throws {
    let item = KeychainItem.genericPassword().with([.synchronizable: .integer(1)])
    let forbidden = try Keychain()
    try forbidden.add(item)
    #expect(try delete(forbidden, tombstones: .forbid) == 1)
    #expect(try forbidden.sql("SELECT count(*) FROM genp") == [["0"]])

    let locked = try Keychain()
    try locked.add(item)
    let keys = try locked.lockedKeys()
    try locked.store.delete(ItemQuery(), keys: keys, now: .seconds(1), tombstones: .leave, random: locked.random)
    #expect(try locked.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("a tombstone that is deleted is gone")
  func tombstones() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword().with([.synchronizable: .integer(1)]))
    #expect(try delete(keychain) == 1)
    #expect(try delete(keychain, ItemQuery(tombstones: .only)) == 1)
    #expect(try keychain.sql("SELECT count(*) FROM genp") == [["0"]])
  }

  @Test("a class whose key is destroyed takes its rows with it, and no others")
  func protectionClass() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a", as: .whenPasscodeSetThisDeviceOnly))
    try keychain.add(.genericPassword("b", as: .whenUnlockedThisDeviceOnly))
    try keychain.add(.internetPassword().with([.protection: .string("akpu")]))
    #expect(try keychain.store.removeAll(protectedBy: .whenPasscodeSetThisDeviceOnly) == 2)
    #expect(try keychain.sql("SELECT pdmn FROM genp UNION ALL SELECT pdmn FROM inet") == [["'aku'"]])
  }

  @Test("rows that a search reported go by their place")
  func byPlace() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("a"))
    try keychain.add(.genericPassword("b"))
    try keychain.tamper("UPDATE genp SET data = NULL WHERE rowid = 1")
    let found = try keychain.store.find(ItemQuery(), keys: keychain.keys)
    try keychain.store.remove(found.undecodable.map(\.summary.reference))
    #expect(try keychain.sql("SELECT rowid FROM genp") == [["2"]])
  }

  @Test("what was deleted is not left in the file")
  func overwritten() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(group: "planted-group"))
    #expect(try delete(keychain) == 1)
    try keychain.store.close()
    let bytes = try keychain.directory.read("keychain-2.db")
    #expect(!String(decoding: bytes, as: UTF8.self).contains("planted-group"))
  }
}
