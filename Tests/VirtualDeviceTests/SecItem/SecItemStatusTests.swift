import Basics
import KeychainCrypto
import KeychainFormats
import Testing

@testable import Keychains
@testable import VirtualDevice

/// Source: Apple `SecBase.h`, `SecBasePriv.h`.
@Suite("SecItem: causes of each status")
struct SecItemStatusTests {
  private let item: SecItemQuery = ["class": "genp", "acct": "anna", "v_Data": .bytes("secret")]

  @Test("0 errSecSuccess: a successful call")
  func success() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item) == 0)
    #expect(phone.statusOfFinding(["class": "genp"]) == 0)
    #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"]) == 0)
    #expect(phone.statusOfDeleting(["class": "genp"]) == 0)
  }

  @Test("-4 errSecUnimplemented: a match key of another class")
  func unimplemented() throws {
    #expect(try SecItemPhone().statusOfFinding(["class": "genp", "m_Policy": .null]) == -4)
  }

  @Test("-34 errSecDiskFull: no page is left for the item, and nothing is stored")
  func diskFull() throws {
    let phone = try SecItemPhone()
    try phone.run("PRAGMA max_page_count = 1")
    let large = item.replacing("v_Data", with: .data([UInt8](repeating: 7, count: 100_000)))
    #expect(phone.statusOfAdding(large) == -34)
    #expect(phone.statusOfFinding(["class": "genp"]) == -25300)
  }

  @Test("-36 errSecIO: the database cannot be written to")
  func io() throws {
    let phone = try SecItemPhone()
    try phone.add(item)
    try phone.run("PRAGMA query_only = 1")
    #expect(phone.statusOfAdding(item.replacing("acct", with: "berta")) == -36)
    #expect(phone.statusOfFinding(["class": "genp"]) == 0, "reading still works")
  }

  @Test("-50 errSecParam: a query without a class")
  func parameter() throws {
    #expect(try SecItemPhone().statusOfFinding(["acct": "anna"]) == -50)
  }

  @Test("-128 errSecUserCanceled: the user dismissed the dialog")
  func userCanceled() throws {
    let phone = try guarded(.cancel)
    #expect(phone.statusOfFinding(["class": "genp", "r_Data": true]) == -128)
    #expect(phone.requests.map(\.operation) == [.decrypt])
    #expect(phone.requests.map(\.requirement.factors) == [[.userPresence]])
  }

  @Test("-34018 errSecMissingEntitlement: no access group, another app's, or a special keychain")
  func missingEntitlement() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item, as: "none") == -34018)
    #expect(phone.statusOfAdding(item.replacing("agrp", with: "TEAM.shop")) == -34018)
    #expect(phone.statusOfFinding(["class": "genp", "u_SystemKeychain": true]) == -34018)
  }

  @Test("-34020 errSecRestrictedAPI: a synchronized item of an App Clip")
  func restricted() throws {
    #expect(try SecItemPhone().statusOfAdding(item.replacing("sync", with: true), as: "clip") == -34020)
  }

  @Test("-34020 errSecRestrictedAPI: any call of an App Clip with other groups than its own")
  func otherGroups() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item, as: "clip") == 0)
    for app in ["clip with two groups", "clip with another app's group"] {
      #expect(phone.statusOfAdding(item, as: app) == -34020)
      #expect(phone.statusOfFinding(["class": "genp"], as: app) == -34020)
      #expect(phone.statusOfFinding(["class": "idnt"], as: app) == -34020)
      #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"], as: app) == -34020)
      #expect(phone.statusOfDeleting(["class": "genp"], as: app) == -34020)
      #expect(phone.statusOfDeleting(["class": "idnt"], as: app) == -34020)
    }
    #expect(phone.statusOfFinding(["class": "genp"], as: "clip with its own group") == -25300, "its group has no item")
    #expect(phone.statusOfFinding(["class": "genp"], as: "clip") == 0)
  }

  @Test("-50 errSecParam: the App Clip flag in a query")
  func clip() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item.replacing("clip", with: 1)) == -50)
    #expect(phone.statusOfAdding(item) == 0)
    #expect(phone.statusOfFinding(["class": "genp", "clip": 0]) == -50)
    #expect(phone.statusOfUpdating(["class": "genp"], ["clip": 1]) == -50)
    #expect(phone.statusOfDeleting(["class": "genp", "clip": true]) == -50)
    #expect(phone.statusOfFinding(["class": "genp"]) == 0)
  }

  @Test("-25291 errSecNotAvailable: the keychain is closed, missing, in use or damaged")
  func notAvailable() throws {
    let phone = try SecItemPhone()
    try phone.store.close()
    #expect(phone.statusOfAdding(item) == -25291)
    #expect(phone.statusOfFinding(["class": "genp"]) == -25291)
    #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"]) == -25291)
    #expect(phone.statusOfDeleting(["class": "genp"]) == -25291)
    let error = #expect(throws: KeyhaulError.self) { try KeychainStore.open(at: "/nowhere/keychain-2.db") }
    #expect(error.map { SecItemError($0).status.rawValue } == -25291)
    #expect(SecItemError(KeyhaulError(.storeBusy, "")).status.rawValue == -25291)
    #expect(SecItemError(KeyhaulError(.storeDamaged, "")).status.rawValue == -25291)
  }

  @Test("-25291 errSecNotAvailable: an unexpected database error")
  func brokenDatabase() throws {
    let phone = try SecItemPhone()
    try phone.run("ALTER TABLE genp RENAME COLUMN labl TO lost")
    #expect(phone.statusOfAdding(item) == -25291)
  }

  @Test("-25293 errSecAuthFailed: failed authentication, or the passcode class without a passcode")
  func authFailed() throws {
    #expect(try guarded(.deny).statusOfFinding(["class": "genp", "r_Data": true]) == -25293)
    let open = try SecItemPhone(passcode: "")
    #expect(open.statusOfAdding(item.replacing("pdmn", with: "akpu")) == -25293)
  }

  @Test("-25299 errSecDuplicateItem: the same primary key twice")
  func duplicate() throws {
    let phone = try SecItemPhone()
    try phone.add(item)
    #expect(phone.statusOfAdding(item) == -25299)
  }

  @Test("-25300 errSecItemNotFound: no match")
  func notFound() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfFinding(["class": "genp"]) == -25300)
    #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"]) == -25300)
    #expect(phone.statusOfDeleting(["class": "genp"]) == -25300)
  }

  @Test("-25303 errSecNoSuchAttr: an attribute of another class")
  func noSuchAttribute() throws {
    #expect(try SecItemPhone().statusOfAdding(["class": "genp", "srvr": "h"]) == -25303)
  }

  @Test("-25306 errSecNoSuchClass: an unknown class")
  func noSuchClass() throws {
    #expect(try SecItemPhone().statusOfAdding(["class": "note"]) == -25306)
  }

  @Test("-25308 errSecInteractionNotAllowed: a locked class, or a forbidden dialog")
  func interactionNotAllowed() throws {
    let phone = try SecItemPhone()
    phone.lock()
    #expect(phone.statusOfAdding(item) == -25308)
    #expect(
      try guarded(.allow).statusOfFinding(["class": "genp", "r_Data": true, "u_AuthUI": "u_AuthUIF"]) == -25308)
  }

  @Test("-26275 errSecDecode: a search skips and deletes undecryptable items")
  func decode() throws {
    let phone = try SecItemPhone()
    try phone.add(item)
    try phone.add(item.replacing("acct", with: "berta"))
    try phone.store.write { (transaction) throws(KeyhaulError) in
      try transaction.database.run("UPDATE genp SET data=x'03000000' WHERE rowid=1")
    }
    let rows = try phone.store.rows(includingTombstones: true, keys: phone.keys)
    #expect(rows[0].fault.map { KeyhaulError($0).status.rawValue } == -26275)
    #expect(phone.statusOfFinding(["class": "genp"]) == -25300, "the deleted row counts toward the limit of one")
    #expect(phone.statusOfFinding(["class": "genp"]) == 0)
    #expect(try phone.store.rowSummaries(includingTombstones: true).count == 1)
    #expect(SecItemError(KeyhaulError(.decode, "")).status.rawValue == -26275)
  }

  @Test("Every database error has one of Apple's statuses")
  func databaseErrors() {
    let expected: [(KeyhaulError.Code, Int32)] = [
      (.duplicateItem, -25299), (.itemNotFound, -25300), (.interactionNotAllowed, -25308), (.authFailed, -25293),
      (.decode, -26275), (.parameter, -50), (.noSuchAttribute, -25303), (.storeIO, -36), (.diskFull, -34),
      (.notAvailable, -25291), (.closed, -25291), (.cancelled, -128), (.storeBusy, -25291), (.storeDamaged, -25291),
    ]
    #expect(Set(expected.map(\.0)) == Set(KeyhaulError.Code.storeCodes))
    for (code, number) in expected {
      let error = KeyhaulError(code, "a reason")
      #expect(error.status.rawValue == number)
      #expect(SecItemError(error) == SecItemError(error.status, "a reason"))
    }
  }

  @Test("Every status has a unique name, number and description")
  func names() {
    let all = SecItemStatus.allCases
    #expect(all.count == 26)
    #expect(Set(all.map(\.constantName)).count == all.count)
    #expect(all.allSatisfy { $0.constantName.hasPrefix("errSec") })
    #expect(Set(all.map(\.sentence)).count == all.count)
    #expect(all.allSatisfy { $0.sentence.hasSuffix(".") })
    #expect(SecItemStatus(rawValue: -25300)?.constantName == "errSecItemNotFound")
    for status in all {
      let error = SecItemError(status, "because")
      #expect(error.summary.contains("\(status.rawValue)") && !error.advice.isEmpty)
    }
  }

  private func guarded(_ answer: AuthenticationOutcome) throws -> SecItemPhone {
    let phone = try SecItemPhone()
    try phone.add(
      item.replacing("accc", with: .accessControl(try AccessControl(protection: .whenUnlocked, flags: .userPresence))))
    phone.answer = answer
    return phone
  }
}
