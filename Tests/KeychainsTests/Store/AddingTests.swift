import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules
@testable import Keychains

@Suite("Adding keychain items")
struct AddingTests {
  /// Returns the code of the error that a closure must throw.
  private func errorCode(_ body: () throws -> Void) -> KeyhaulError.Code? {
    #expect(throws: KeyhaulError.self, performing: body)?.code
  }

  @Test("Adding an item returns it with the current date and the default attributes")
  func defaults() throws {
    let keychain = try Keychain()
    let item = KeychainItem(
      kind: .internetPassword,
      attributes: [
        .accessGroup: .string("g"), .creationDate: .date(.seconds(5)), .modificationDate: .date(.seconds(6)),
      ])

    let stored = try keychain.add(item, at: 700)

    let expected: AttributeMap<PropertyValue> = [
      .accessGroup: .string("g"), .protection: .string("ak"), .creationDate: .date(.seconds(700)),
      .modificationDate: .date(.seconds(700)), .account: .string(""), .securityDomain: .string(""),
      .server: .string(""), .protocolType: .integer(0), .authenticationType: .string(""), .port: .integer(0),
      .path: .string(""), .synchronizable: .integer(0), .tombstone: .integer(0), .multiUser: .data([]),
    ]
    #expect(stored.item.without(.uuid, .persistentReference, .digest).attributes == expected)
    #expect(stored.rowID == 1)
    #expect(stored.persistentReference == stored.item[.persistentReference]?.dataValue)
    #expect(try keychain.only(.internetPassword).attributes == stored.item.attributes)
  }

  @Test("By default, certificates are always accessible, the push service's on this device only; others when unlocked")
  func defaultProtection() throws {
    let keychain = try Keychain()
    for kind in ItemKind.allCases {
      try keychain.add(KeychainItem(kind: kind, attributes: [.accessGroup: .string("g")]))
    }
    let ofPushService = KeychainItem(kind: .certificate, attributes: [.accessGroup: .string("com.apple.apsd")])
    try keychain.add(ofPushService)
    #expect(try keychain.sql("SELECT pdmn FROM genp") == [["'ak'"]])
    #expect(try keychain.sql("SELECT pdmn FROM keys") == [["'ak'"]])
    #expect(try keychain.sql("SELECT agrp, pdmn FROM cert") == [["'g'", "'dk'"], ["'com.apple.apsd'", "'dku'"]])
  }

  @Test("Adding an item with the primary key of an existing item fails, and the existing item stays")
  func duplicate() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(secret: "first"))
    #expect(errorCode { try keychain.add(.genericPassword(secret: "second")) } == .duplicateItem)
    #expect(try keychain.only().secretText == "first")
  }

  @Test("If one of several items cannot be added, none of them is added")
  func several() throws {
    let keychain = try Keychain()
    let items = ["a", "b", "a"].map { KeychainItem.genericPassword($0) }
    #expect(
      errorCode {
        try keychain.store.add(contentsOf: items, keys: keychain.keys, now: .seconds(1), random: keychain.random)
      } == .duplicateItem)
    #expect(try keychain.store.count(of: .genericPassword) == 0)
    try keychain.store.add(
      contentsOf: Array(items.prefix(2)), keys: keychain.keys, now: .seconds(1), random: keychain.random)
    #expect(try keychain.store.count(of: .genericPassword) == 2)
  }

  @Test("A dry run of adding an item has the same result and changes no row")
  func dryRun() throws {
    let keychain = try Keychain()
    func validate(_ item: KeychainItem, keys: ClassKeys) throws -> StoredItem {
      try keychain.store.validateAdding(item, keys: keys, now: .seconds(1), random: keychain.random)
    }
    let lockedKeys = try keychain.lockedKeys()

    let validated = try validate(.genericPassword("a"), keys: keychain.keys)
    #expect(validated.item[.account] == KeychainItem.genericPassword("a")[.account])
    #expect(try keychain.store.count(of: .genericPassword) == 0)

    try keychain.add(.genericPassword("a", secret: "first"))
    #expect(errorCode { _ = try validate(.genericPassword("a"), keys: keychain.keys) } == .duplicateItem)
    #expect(errorCode { _ = try validate(.genericPassword("b"), keys: lockedKeys) } == .interactionNotAllowed)
    #expect(try keychain.only().secretText == "first")
  }

  @Test("An added item replaces a corrupt row and keeps the row's number")
  func replacesCorrupt() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(secret: "first"))
    try keychain.tamper("UPDATE genp SET data = x'03000000'")
    let stored = try keychain.add(.genericPassword(secret: "second"))
    #expect(stored.rowID == 1)
    #expect(try keychain.only().secretText == "second")
  }

  @Test("A row with a wrong digest counts as corrupt")
  func replacesWrongDigest() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword(secret: "first"))
    try keychain.tamper("UPDATE genp SET sha1 = zeroblob(20)")
    try keychain.add(.genericPassword(secret: "second"))
    #expect(try keychain.only().secretText == "second")
  }

  @Test("An added item replaces a tombstone and keeps the tombstone's UUID and persistent reference")
  func replacesTombstone() throws {
    let keychain = try Keychain()
    let item = KeychainItem.genericPassword().with([.synchronizable: .integer(1)])
    let firstItem = try keychain.add(item)
    try keychain.store.delete(
      ItemQuery(), keys: keychain.keys, now: .seconds(2000), tombstones: .leave, random: keychain.random)

    let secondItem = try keychain.add(item, at: 3000)

    #expect(secondItem.rowID == firstItem.rowID)
    #expect(secondItem.item[.uuid] == firstItem.item[.uuid])
    #expect(secondItem.persistentReference == firstItem.persistentReference)
    #expect(try keychain.only().isTombstone == false)
  }

  @Test("While the device is locked, only items of accessible classes can be added")
  func locked() throws {
    let keychain = try Keychain()
    let lockedKeys = try keychain.lockedKeys()
    func add(_ protection: ProtectionClass) throws {
      let item = KeychainItem.genericPassword(protection.rawValue, as: protection)
      try keychain.store.add(item, keys: lockedKeys, now: .seconds(1), random: keychain.random)
    }
    for protection in [ProtectionClass.whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly] {
      #expect(errorCode { try add(protection) } == .interactionNotAllowed)
    }
    for protection in [ProtectionClass.afterFirstUnlock, .always, .alwaysThisDeviceOnly] { try add(protection) }
    #expect(try keychain.sql("SELECT pdmn FROM genp") == [["'ck'"], ["'dk'"], ["'dku'"]])
    #expect(KeyhaulError(.interactionNotAllowed, "").category == .locked)
  }

  @Test("A duplicate is detected although the existing item's class key is not in memory")
  func lockedDuplicate() throws {
    let keychain = try Keychain()
    try keychain.add(.genericPassword())
    let lockedKeys = try keychain.lockedKeys()
    let item = KeychainItem.genericPassword(as: .always)
    #expect(
      errorCode { try keychain.store.add(item, keys: lockedKeys, now: .seconds(1), random: keychain.random) }
        == .duplicateItem)
  }

  @Test("An item that requires a passcode cannot be added on a device without a passcode")
  func withoutPasscode() throws {
    let item = KeychainItem.genericPassword(as: .whenPasscodeSetThisDeviceOnly)
    let phone = try Keychain()
    try phone.add(item)
    let phoneWithoutPasscode = try Keychain("open phone", passcode: "")
    #expect(errorCode { try phoneWithoutPasscode.add(item) } == .authFailed)
  }

  @Test("An item requires an access group and an existing protection class")
  func requirements() throws {
    let keychain = try Keychain()
    #expect(errorCode { try keychain.add(.genericPassword().without(.accessGroup)) } == .parameter)
    #expect(errorCode { try keychain.add(.genericPassword().with([.protection: .string("zz")])) } == .parameter)
  }

  private static let constraints: PropertyDictionary = [
    "od": .dictionary(["pkofn": .integer(1)]), "odel": .boolean(true),
  ]
  private static let itemWithAccessControl = KeychainItem.genericPassword().with([
    .accessControl: .dictionary(constraints)
  ])

  @Test("An access control is stored unchanged")
  func accessControl() throws {
    let keychain = try Keychain()
    try keychain.add(Self.itemWithAccessControl)

    let found = try #require(try keychain.find(ItemQuery(wantsSecret: true)).first)

    // The order differs, because DER sorts the pairs.
    #expect(Set(found.accessControl?.entries ?? []) == Set(Self.constraints.entries))
    #expect(found.item.secretText == "correct horse")
    // The first word is little-endian: version 6, and bit 31 for a fixed initialization vector.
    #expect(try keychain.sql("SELECT substr(hex(data), 1, 8) FROM genp") == [["'06000080'"]])
  }

  @Test("A synchronized item with an access control, and an invalid access control, are refused")
  func refusedAccessControls() throws {
    let keychain = try Keychain()
    let item = Self.itemWithAccessControl
    #expect(errorCode { try keychain.add(item.with([.synchronizable: .integer(1)])) } == .parameter)
    #expect(errorCode { try keychain.add(item.with([.accessControl: .data([1])])) } == .parameter)
  }

  @Test("An item that exceeds the largest encrypted size is rejected, and a slightly smaller one is stored")
  func size() throws {
    let keychain = try Keychain()
    var item = KeychainItem.genericPassword()
    item.secret = SensitiveBytes(copying: [UInt8](repeating: 7, count: ItemBlob.maximumByteCount))
    #expect(errorCode { try keychain.add(item) } == .parameter)
    item.secret = SensitiveBytes(copying: [UInt8](repeating: 7, count: ItemBlob.maximumByteCount - 2000))
    try keychain.add(item)
    #expect(try keychain.only().secret?.count == ItemBlob.maximumByteCount - 2000)
  }
}
