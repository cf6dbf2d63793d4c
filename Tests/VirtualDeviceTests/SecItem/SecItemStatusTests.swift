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
    #expect(phone.statusOfAdding(item) == .success)
    #expect(phone.statusOfFinding(["class": "genp"]) == .success)
    #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"]) == .success)
    #expect(phone.statusOfDeleting(["class": "genp"]) == .success)
  }

  @Test("-4 errSecUnimplemented: a match key of another class")
  func unimplemented() throws {
    #expect(try SecItemPhone().statusOfFinding(["class": "genp", "m_Policy": .null]) == .unimplemented)
  }

  @Test("-34 errSecDiskFull: no page is left for the item, and nothing is stored")
  func diskFull() throws {
    let phone = try SecItemPhone()
    try phone.run("PRAGMA max_page_count = 1")
    let large = item.replacing("v_Data", with: .data([UInt8](repeating: 7, count: 100_000)))
    #expect(phone.statusOfAdding(large) == .diskFull)
    #expect(phone.statusOfFinding(["class": "genp"]) == .itemNotFound)
  }

  @Test("-36 errSecIO: the database cannot be written to")
  func io() throws {
    let phone = try SecItemPhone()
    try phone.add(item)
    try phone.run("PRAGMA query_only = 1")
    #expect(phone.statusOfAdding(item.replacing("acct", with: "berta")) == .ioError)
    #expect(phone.statusOfFinding(["class": "genp"]) == .success, "reading still works")
  }

  @Test("-50 errSecParam: a query without a class")
  func parameter() throws {
    #expect(try SecItemPhone().statusOfFinding(["acct": "anna"]) == .parameter)
  }

  @Test("-128 errSecUserCanceled: the user dismissed the dialog")
  func userCanceled() throws {
    let phone = try phoneWithProtectedItem(answer: .cancel)
    #expect(phone.statusOfFinding(["class": "genp", "r_Data": true]) == .userCanceled)
    #expect(phone.requests.map(\.operation) == [.decrypt])
    #expect(phone.requests.map(\.requirement.factors) == [[.userPresence]])
  }

  @Test("-34018 errSecMissingEntitlement: no access group, another app's group, or the system keychain")
  func missingEntitlement() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item, as: "none") == .missingEntitlement)
    #expect(phone.statusOfAdding(item.replacing("agrp", with: "TEAM.shop")) == .missingEntitlement)
    #expect(phone.statusOfFinding(["class": "genp", "u_SystemKeychain": true]) == .missingEntitlement)
  }

  @Test("-34020 errSecRestrictedAPI: a synchronized item of an App Clip")
  func restricted() throws {
    #expect(try SecItemPhone().statusOfAdding(item.replacing("sync", with: true), as: "clip") == .restrictedAPI)
  }

  @Test("-34020 errSecRestrictedAPI: any call of an App Clip with other groups than its own")
  func otherGroups() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item, as: "clip") == .success)
    for app in ["clip with two groups", "clip with another app's group"] {
      #expect(phone.statusOfAdding(item, as: app) == .restrictedAPI)
      #expect(phone.statusOfFinding(["class": "genp"], as: app) == .restrictedAPI)
      #expect(phone.statusOfFinding(["class": "idnt"], as: app) == .restrictedAPI)
      #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"], as: app) == .restrictedAPI)
      #expect(phone.statusOfDeleting(["class": "genp"], as: app) == .restrictedAPI)
      #expect(phone.statusOfDeleting(["class": "idnt"], as: app) == .restrictedAPI)
    }
    #expect(
      phone.statusOfFinding(["class": "genp"], as: "clip with its own group") == .itemNotFound, "its group has no item")
    #expect(phone.statusOfFinding(["class": "genp"], as: "clip") == .success)
  }

  @Test("-50 errSecParam: the App Clip flag in a query")
  func clip() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfAdding(item.replacing("clip", with: 1)) == .parameter)
    #expect(phone.statusOfAdding(item) == .success)
    #expect(phone.statusOfFinding(["class": "genp", "clip": 0]) == .parameter)
    #expect(phone.statusOfUpdating(["class": "genp"], ["clip": 1]) == .parameter)
    #expect(phone.statusOfDeleting(["class": "genp", "clip": true]) == .parameter)
    #expect(phone.statusOfFinding(["class": "genp"]) == .success)
  }

  @Test("-25291 errSecNotAvailable: the keychain is closed, missing, in use or damaged")
  func notAvailable() throws {
    let phone = try SecItemPhone()
    try phone.store.close()
    #expect(phone.statusOfAdding(item) == .notAvailable)
    #expect(phone.statusOfFinding(["class": "genp"]) == .notAvailable)
    #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"]) == .notAvailable)
    #expect(phone.statusOfDeleting(["class": "genp"]) == .notAvailable)
    let error = #expect(throws: KeyhaulError.self) { try KeychainStore.open(at: "/nowhere/keychain-2.db") }
    #expect(error.map { SecItemError($0).status } == .notAvailable)
    #expect(SecItemError(KeyhaulError(.storeBusy, "")).status == .notAvailable)
    #expect(SecItemError(KeyhaulError(.storeDamaged, "")).status == .notAvailable)
  }

  @Test("-25291 errSecNotAvailable: an unexpected database error")
  func brokenDatabase() throws {
    let phone = try SecItemPhone()
    try phone.run("ALTER TABLE genp RENAME COLUMN labl TO lost")
    #expect(phone.statusOfAdding(item) == .notAvailable)
  }

  @Test("-25293 errSecAuthFailed: failed authentication, or the passcode class without a passcode")
  func authFailed() throws {
    #expect(
      try phoneWithProtectedItem(answer: .deny).statusOfFinding(["class": "genp", "r_Data": true]) == .authFailed)
    let withoutPasscode = try SecItemPhone(passcode: "")
    #expect(withoutPasscode.statusOfAdding(item.replacing("pdmn", with: "akpu")) == .authFailed)
  }

  @Test("-25299 errSecDuplicateItem: the same primary key twice")
  func duplicate() throws {
    let phone = try SecItemPhone()
    try phone.add(item)
    #expect(phone.statusOfAdding(item) == .duplicateItem)
  }

  @Test("-25300 errSecItemNotFound: no match")
  func notFound() throws {
    let phone = try SecItemPhone()
    #expect(phone.statusOfFinding(["class": "genp"]) == .itemNotFound)
    #expect(phone.statusOfUpdating(["class": "genp"], ["labl": "l"]) == .itemNotFound)
    #expect(phone.statusOfDeleting(["class": "genp"]) == .itemNotFound)
  }

  @Test("-25303 errSecNoSuchAttr: an attribute of another class")
  func noSuchAttribute() throws {
    #expect(try SecItemPhone().statusOfAdding(["class": "genp", "srvr": "h"]) == .noSuchAttribute)
  }

  @Test("-25306 errSecNoSuchClass: an unknown class")
  func noSuchClass() throws {
    #expect(try SecItemPhone().statusOfAdding(["class": "note"]) == .noSuchClass)
  }

  @Test("-25308 errSecInteractionNotAllowed: a class key that is not in memory, or a forbidden dialog")
  func interactionNotAllowed() throws {
    let phone = try SecItemPhone()
    phone.lock()
    #expect(phone.statusOfAdding(item) == .interactionNotAllowed)
    #expect(
      try phoneWithProtectedItem(answer: .allow).statusOfFinding([
        "class": "genp", "r_Data": true, "u_AuthUI": "u_AuthUIF",
      ]) == .interactionNotAllowed)
  }

  @Test("-26275 errSecDecode: a search skips and deletes undecryptable items")
  func decode() throws {
    let phone = try SecItemPhone()
    try phone.add(item)
    try phone.add(item.replacing("acct", with: "berta"))
    try phone.store.write { (transaction) throws(KeyhaulError) in
      // The bytes of the first item become a version number without contents.
      try transaction.database.run("UPDATE genp SET data=x'03000000' WHERE rowid=1")
    }
    let rows = try phone.store.rows(includingTombstones: true, keys: phone.keys)
    #expect(rows[0].fault.map { KeyhaulError($0).status } == .decode)
    #expect(phone.statusOfFinding(["class": "genp"]) == .itemNotFound, "the deleted row counts toward the limit of one")
    #expect(phone.statusOfFinding(["class": "genp"]) == .success)
    #expect(try phone.store.rowSummaries(includingTombstones: true).count == 1)
    #expect(SecItemError(KeyhaulError(.decode, "")).status == .decode)
  }

  @Test("Every database error has one of Apple's statuses")
  func databaseErrors() {
    let expected: [(code: KeyhaulError.Code, status: SecItemStatus)] = [
      (.duplicateItem, .duplicateItem), (.itemNotFound, .itemNotFound),
      (.interactionNotAllowed, .interactionNotAllowed), (.authFailed, .authFailed), (.decode, .decode),
      (.parameter, .parameter), (.noSuchAttribute, .noSuchAttribute), (.storeIO, .ioError), (.diskFull, .diskFull),
      (.notAvailable, .notAvailable), (.closed, .notAvailable), (.cancelled, .userCanceled),
      (.storeBusy, .notAvailable), (.storeDamaged, .notAvailable),
    ]
    #expect(Set(expected.map(\.code)) == Set(KeyhaulError.Code.storeCodes))
    for (code, status) in expected {
      let error = KeyhaulError(code, "a reason")
      #expect(error.status == status)
      #expect(SecItemError(error) == SecItemError(status, "a reason"))
    }
  }

  @Test("The statuses that these tests cause have Apple's numbers")
  func numbers() {
    let expected: [(status: SecItemStatus, number: Int32)] = [
      (.success, 0), (.unimplemented, -4), (.diskFull, -34), (.ioError, -36), (.parameter, -50),
      (.userCanceled, -128), (.missingEntitlement, -34018), (.restrictedAPI, -34020), (.notAvailable, -25291),
      (.authFailed, -25293), (.duplicateItem, -25299), (.itemNotFound, -25300), (.noSuchAttribute, -25303),
      (.noSuchClass, -25306), (.interactionNotAllowed, -25308), (.decode, -26275),
    ]
    for (status, number) in expected { #expect(status.rawValue == number) }
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

  /// Creates a phone with an item that requires the user, who gives an answer.
  private func phoneWithProtectedItem(answer: AuthenticationOutcome) throws -> SecItemPhone {
    let phone = try SecItemPhone()
    try phone.add(
      item.replacing("accc", with: .accessControl(try AccessControl(protection: .whenUnlocked, flags: .userPresence))))
    phone.answer = answer
    return phone
  }
}
