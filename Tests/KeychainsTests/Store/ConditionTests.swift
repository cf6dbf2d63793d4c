import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Searches with a condition on decrypted items")
struct ConditionTests {
  /// Creates a keychain with three items of two classes. The first and the last meet the condition.
  private func keychainWithItems() throws -> Keychain {
    let keychain = try Keychain()
    try keychain.add(.genericPassword("anna", service: "chat.example"))
    try keychain.add(.genericPassword("ben", service: "mail.example", as: .always))
    try keychain.add(.genericPassword("cleo", service: "chatter", as: .always))
    return keychain
  }

  private let query = ItemQuery(
    kind: .genericPassword, condition: { $0[.service]?.stringValue?.hasPrefix("chat") ?? false })

  private func accounts(_ keychain: Keychain) throws -> [String?] {
    try keychain.find(ItemQuery()).map { $0.item[.account]?.stringValue }
  }

  private func delete(_ keychain: Keychain, keys: ClassKeys) throws -> Int {
    try keychain.store.delete(query, keys: keys, now: .seconds(2000), random: keychain.random)
  }

  private func update(_ keychain: Keychain, keys: ClassKeys) throws -> Int {
    try keychain.store.update(
      query, with: ItemChanges(attributes: [.label: .string("new")]), keys: keys, now: .seconds(2000),
      random: keychain.random)
  }

  @Test("A condition limits searches, updates and deletions to the items that meet it")
  func limitsCalls() throws {
    let keychain = try keychainWithItems()
    #expect(try keychain.find(query).map { $0.item[.account] } == [.string("anna"), .string("cleo")])
    #expect(try keychain.store.rows(matching: query, keys: keychain.keys).map(\.summary.reference.rowID) == [1, 3])
    #expect(try update(keychain, keys: keychain.keys) == 2)
    #expect(try keychain.find(ItemQuery(attributes: [.label: .string("new")])).count == 2)
    #expect(try delete(keychain, keys: keychain.keys) == 2)
    #expect(try accounts(keychain) == ["ben"])
  }

  @Test("Updates and deletions with a condition fail while the class key of a possible match is not in memory")
  func locked() throws {
    let keychain = try keychainWithItems()
    let lockedKeys = try keychain.lockedKeys()
    let calls: [() throws -> Void] = [
      { _ = try delete(keychain, keys: lockedKeys) }, { _ = try update(keychain, keys: lockedKeys) },
      { _ = try keychain.store.rows(matching: query, keys: lockedKeys) },
    ]
    for call in calls {
      let error = #expect(throws: KeyhaulError.self) { try call() }
      #expect(error?.code == .interactionNotAllowed)
    }
    #expect(try accounts(keychain) == ["anna", "ben", "cleo"])
    #expect(try keychain.find(ItemQuery(attributes: [.label: .string("new")])).isEmpty)
  }

  @Test("An update and a deletion with a condition skip undecryptable rows")
  func undecryptableRow() throws {
    let keychain = try keychainWithItems()
    try keychain.tamper("UPDATE genp SET data = substr(data, 1, 60) WHERE rowid = 1")
    #expect(try keychain.store.rows(matching: query, keys: keychain.keys).map(\.summary.reference.rowID) == [3])
    #expect(try update(keychain, keys: keychain.keys) == 1)
    #expect(try delete(keychain, keys: keychain.keys) == 1)
    #expect(try keychain.sql("SELECT rowid FROM genp") == [["1"], ["2"]])
  }

  @Test("A deletion without a condition includes undecryptable rows")
  func undecryptableRowWithoutCondition() throws {
    let keychain = try keychainWithItems()
    try keychain.tamper("UPDATE genp SET data = substr(data, 1, 60) WHERE rowid = 1")
    let withoutCondition = ItemQuery(kind: .genericPassword)
    #expect(try keychain.store.rows(matching: withoutCondition, keys: keychain.keys).count == 3)
    let deletedCount = try keychain.store.delete(
      withoutCondition, keys: keychain.keys, now: .seconds(1), random: keychain.random)
    #expect(deletedCount == 3)
  }
}
