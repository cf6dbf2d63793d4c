import Basics
import KeychainFormats
import Testing

@testable import Keychains
@testable import VirtualDevice

@Suite("SecItem: results")
struct SecItemResultTests {
  private let completeItem: SecItemQuery = [
    "class": "genp", "acct": "anna", "svce": .bytes("mail"), "labl": 7, "type": "42", "invi": true,
    "v_Data": .bytes("secret"),
  ]

  @Test("Blob attributes keep the types of their values, and numbers are converted")
  func values() throws {
    let phone = try SecItemPhone()
    try phone.add(completeItem)
    let found = try phone.find(["class": "genp", "r_Attributes": true])
    #expect(found?["acct"] == "anna")
    #expect(found?["svce"] == .bytes("mail"))
    #expect(found?["labl"] == 7)
    #expect(found?["type"] == 42)
    #expect(found?["invi"] == 1)
    #expect(found?["agrp"] == "TEAM.mail")
    #expect(found?["pdmn"] == "ak")
    #expect(found?["sync"] == 0)
    // The phone's date at the start.
    #expect(found?["cdat"] == .date(1000) && found?["mdat"] == .date(1000))
  }

  @Test("A search returns all attributes except secrets and identifiers, and an addition returns fewer")
  func keys() throws {
    let phone = try SecItemPhone()
    let added = try phone.add(completeItem.replacing("r_Attributes", with: true))
    let found = try phone.find(["class": "genp", "r_Attributes": true])
    let common: Set = [
      "acct", "svce", "labl", "type", "invi", "agrp", "pdmn", "sync", "cdat", "mdat", "sha1", "accc",
    ]
    #expect(Set(added?.dictionaryValue?.keys.map { $0 } ?? []) == common)
    #expect(Set(found?.dictionaryValue?.keys.map { $0 } ?? []) == common.union(["tomb", "musr"]))
    #expect(found?["musr"] == .data([]))
  }

  @Test("Dates of the caller are ignored when an item is added")
  func dates() throws {
    let phone = try SecItemPhone()
    try phone.add(["class": "genp", "cdat": .date(5), "mdat": .date(6)])
    #expect(try phone.find(["class": "genp", "r_Attributes": true])?["cdat"] == .date(1000))
  }

  @Test(
    "An update sets the current time as the modification date, but at least a millisecond more than the old date")
  func updateDates() throws {
    let phone = try SecItemPhone()
    try phone.add(completeItem)
    try phone.update(["class": "genp"], ["labl": "new"])
    #expect(try phone.find(["class": "genp", "r_Attributes": true])?["mdat"] == .date(1000.001))
    phone.now = 2000
    try phone.update(["class": "genp"], ["labl": "newer", "mdat": .date(9000)])
    let found = try phone.find(["class": "genp", "r_Attributes": true])
    #expect(found?["mdat"] == .date(2000) && found?["cdat"] == .date(1000))
  }

  @Test("An update that fails for one item changes none")
  func rollback() throws {
    let phone = try SecItemPhone()
    for account in ["a", "b", "c"] { try phone.add(["class": "genp", "acct": .string(account)]) }
    #expect(phone.statusOfUpdating(["class": "genp"], ["acct": "z"]) == .duplicateItem)
    for account in ["a", "b", "c"] {
      #expect(phone.statusOfFinding(["class": "genp", "acct": .string(account)]) == .success)
    }
  }

  @Test("The default group is the app's first, or the application identifier if there is no other")
  func defaultGroup() {
    let caller = SecItemCaller(
      keychainAccessGroups: ["A", "B"], associatedApplicationIdentifiers: ["C"], applicationIdentifier: "D",
      applicationGroups: ["E"])
    #expect(caller.accessGroups == ["A", "B", "C", "D", "E", "com.apple.token"])
    #expect(SecItemCaller(applicationIdentifier: "D").accessGroups == ["D", "com.apple.token"])
    #expect(SecItemCaller().accessGroups.isEmpty)
  }

  @Test(
    "With iCloud Keychain, a deleted synchronized item leaves a tombstone, whose identifiers the next item gets")
  func tombstones() throws {
    let phone = try SecItemPhone()
    phone.isSyncing = true
    let item: SecItemQuery = ["class": "genp", "acct": "a", "sync": true, "r_PersistentRef": true]
    let reference = try phone.add(item)
    try phone.delete(["class": "genp", "sync": true])
    #expect(phone.statusOfFinding(["class": "genp", "sync": true]) == .itemNotFound)
    #expect(phone.statusOfFinding(["class": "genp", "sync": true, "tomb": true]) == .success)
    #expect(try phone.add(item) == reference)
    try phone.delete(["class": "genp", "sync": true, "u_Tomb": false])
    #expect(phone.statusOfFinding(["class": "genp", "sync": true, "tomb": true]) == .itemNotFound)
  }

  @Test("The key u_Tomb decides about tombstones, also for local items (SecItemDb.c, s3dl_should_make_tombstone)")
  func requestedTombstones() throws {
    let phone = try SecItemPhone()
    let search: SecItemQuery = ["class": "genp", "acct": "a"]
    let tombstone = search.replacing("tomb", with: true)
    try phone.add(search)
    try phone.delete(search.replacing("u_Tomb", with: true))
    #expect(phone.statusOfFinding(search) == .itemNotFound)
    #expect(phone.statusOfFinding(tombstone) == .success)
    try phone.delete(tombstone.replacing("u_Tomb", with: true))
    #expect(phone.statusOfFinding(tombstone) == .success)
    try phone.delete(tombstone)
    #expect(phone.statusOfFinding(tombstone) == .itemNotFound)

    try phone.add(search)
    try phone.update(search.replacing("u_Tomb", with: true), ["acct": "b"])
    #expect(phone.statusOfFinding(tombstone) == .success)
    #expect(phone.statusOfFinding(["class": "genp", "acct": "b"]) == .success)
  }

  @Test("An item that is added as a tombstone stays one until the next addition replaces it")
  func addedTombstone() throws {
    let phone = try SecItemPhone()
    try phone.add(["class": "genp", "acct": "a", "tomb": true])
    #expect(phone.statusOfFinding(["class": "genp"]) == .itemNotFound)
    #expect(phone.statusOfFinding(["class": "genp", "tomb": true]) == .success)
    #expect(phone.statusOfAdding(["class": "genp", "acct": "a"]) == .success)
    #expect(phone.statusOfFinding(["class": "genp"]) == .success)
    #expect(phone.statusOfFinding(["class": "genp", "tomb": true]) == .itemNotFound)
  }

  @Test("Items of an App Clip are flagged in the database")
  func appClip() throws {
    let phone = try SecItemPhone()
    try phone.add(["class": "genp"], as: "clip")
    #expect(try phone.store.rowSummaries(includingTombstones: false).map(\.isAppClip) == [true])
    #expect(try phone.find(["class": "genp", "r_Attributes": true])?["clip"] == nil)
  }

  @Test("Before iOS 5, an item without a class was always accessible")
  func oldDefault() throws {
    let phone = try SecItemPhone()
    phone.defaultProtection = .always
    try phone.restart()
    #expect(phone.statusOfAdding(["class": "genp"]) == .success)
    #expect(try phone.find(["class": "genp", "r_Attributes": true])?["pdmn"] == "dk")
  }

  @Test("An item on a token is always accessible, is found by its token reference and returns the object's value")
  func tokens() throws {
    let phone = try SecItemPhone()
    let reference = try phone.add([
      "class": "keys", "atag": .bytes("t"), "tkid": "com.apple.setoken", "toid": .bytes("object"),
      "v_Data": .bytes("public"), "r_PersistentRef": true,
    ])
    // A reference to an item on a token begins with `tkpr` instead of the item's class.
    #expect(reference?.dataValue?.starts(with: Array("tkpr".utf8)) == true)
    try phone.restart()
    #expect(try phone.find(["class": "keys", "r_Data": true])?.text == "public")
    #expect(try phone.find(["class": "keys", "r_Attributes": true])?["pdmn"] == "dk")
    let byReference: SecItemQuery = ["v_PersistentRef": reference ?? .null]
    #expect(try phone.find(byReference.replacing("r_Data", with: true))?.text == "public")
    #expect(phone.statusOfFinding(byReference.replacing("atag", with: .bytes("t"))) == .parameter)
    #expect(phone.statusOfAdding(byReference) == .parameter)
    #expect(phone.statusOfUpdating(byReference, ["labl": "l"]) == .success)
    #expect(phone.statusOfDeleting(byReference) == .success)
    #expect(phone.statusOfFinding(byReference) == .itemNotFound)
  }

  @Test("The description of a value does not reveal it")
  func printing() {
    let secret = SecItemValue.secret(SensitiveBytes(copying: Array("hunter2".utf8)))
    let value = SecItemValue.dictionary(["v_Data": secret, "acct": "anna", "svce": .bytes("mail")])
    var dumped = ""
    dump(value, to: &dumped)
    for text in ["\(value)", String(reflecting: value), dumped, "\(secret)"] {
      #expect(!text.contains("hunter2") && !text.contains("anna"))
    }
  }
}
