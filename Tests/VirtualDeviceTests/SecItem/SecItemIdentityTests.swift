import Basics
import KeychainCrypto
import KeychainFormats
import Testing

@testable import VirtualDevice

/// Source: Apple `SecItemDb.c` (the join of `keys` and `cert`), `SecItem.m` (`explode_identity`).
@Suite("SecItem: identities")
struct SecItemIdentityTests {
  private static let hash = Array("twenty bytes of hash".utf8)

  private let certificate: SecItemQuery = [
    "class": "cert", "issr": .bytes("issuer"), "slnr": .bytes("1"), "pkhh": .data(hash), "labl": "Anna",
    "v_Data": .bytes("certificate"),
  ]
  private let key: SecItemQuery = [
    "class": "keys", "klbl": .data(hash), "kcls": 1, "priv": true, "atag": .bytes("tag"), "v_Data": .bytes("key"),
  ]

  private func phone(_ queries: SecItemQuery...) throws -> SecItemPhone {
    let phone = try SecItemPhone()
    for query in queries { try phone.add(query) }
    return phone
  }

  @Test("A certificate or a key alone is not an identity (-25300)")
  func singleParts() throws {
    #expect(try phone(certificate).statusOfFinding(["class": "idnt"]) == -25300)
    #expect(try phone(key).statusOfFinding(["class": "idnt"]) == -25300)
    #expect(try phone(certificate, key).statusOfFinding(["class": "idnt"]) == 0)
  }

  @Test("A certificate with a public key or another key is not an identity")
  func nonmatchingKey() throws {
    #expect(try phone(certificate, key.replacing("priv", with: false)).statusOfFinding(["class": "idnt"]) == -25300)
    let other = key.replacing("klbl", with: .bytes("another"))
    #expect(try phone(certificate, other).statusOfFinding(["class": "idnt"]) == -25300)
  }

  @Test("An identity has the attributes of both parts and the secret of its key")
  func shape() throws {
    let phone = try phone(certificate, key)
    let all = try phone.find(["class": "idnt", "r_Attributes": true, "r_Data": true, "r_Ref": true])
    #expect(all?["class"] == "idnt")
    #expect(all?["labl"] == "Anna" && all?["atag"] == .bytes("tag"))
    #expect(all?["v_Data"]?.text == "key" && all?["certdata"]?.text == "certificate")
    let reference = try phone.find(["class": "idnt", "r_Ref": true])?.referenceValue
    #expect(reference?.certificate?.kind == .certificate && reference?.key?.kind == .key)
  }

  @Test("An identity is found by attributes of its certificate and of its key")
  func search() throws {
    let phone = try phone(certificate, key)
    #expect(phone.statusOfFinding(["class": "idnt", "labl": "Anna"]) == 0)
    #expect(phone.statusOfFinding(["class": "idnt", "labl": "Berta"]) == -25300)
    #expect(phone.statusOfFinding(["class": "idnt", "atag": .bytes("tag")]) == 0)
    #expect(phone.statusOfFinding(["class": "idnt", "slnr": .bytes("2")]) == -25300)
    #expect(phone.statusOfFinding(["class": "idnt", "acct": "a"]) == -25303)
  }

  @Test("The persistent reference of an identity is its certificate's with another class")
  func reference() throws {
    let phone = try phone(certificate, key)
    let reference = try #require(try phone.find(["class": "idnt", "r_PersistentRef": true])?.dataValue)
    let certificateReference = try phone.find(["class": "cert", "r_PersistentRef": true])?.dataValue
    #expect(reference == Array("idnt".utf8) + (certificateReference ?? []).dropFirst(4))
    #expect(phone.statusOfFinding(["v_PersistentRef": .data(reference)]) == 0)
    #expect(phone.statusOfFinding(["class": "cert", "v_PersistentRef": .data(reference)]) == -25306)
    let row = Array("idnt".utf8) + [0, 0, 0, 0, 0, 0, 0, 1]
    #expect(phone.statusOfFinding(["class": "idnt", "v_PersistentRef": .data(row)]) == 0)
  }

  @Test("A key with two certificates is two identities")
  func two() throws {
    let phone = try phone(certificate, certificate.replacing("slnr", with: .bytes("2")), key)
    let found = try phone.find(["class": "idnt", "r_Ref": true, "m_Limit": "m_LimitAll"])?.arrayValue
    #expect(found?.count == 2)
    #expect(try phone.find(["class": "idnt", "r_Ref": true, "m_Limit": 1])?.referenceValue != nil)
  }

  @Test("Both parts of an identity must be in the app's groups")
  func groups() throws {
    let phone = try phone(certificate, key.replacing("agrp", with: "TEAM.shared"))
    #expect(phone.statusOfFinding(["class": "idnt"]) == 0)
    #expect(phone.statusOfFinding(["class": "idnt"], as: "shop") == -25300)
    #expect(phone.statusOfFinding(["class": "idnt", "agrp": "TEAM.mail"]) == -25300)
  }

  @Test("An identity with a locked part is locked")
  func locked() throws {
    let phone = try phone(certificate, key)
    phone.lock()
    #expect(phone.statusOfFinding(["class": "cert"]) == 0)
    #expect(phone.statusOfFinding(["class": "idnt"]) == -25308)
  }

  @Test("An identity can be added by reference, even if its certificate exists")
  func adding() throws {
    let identity = try #require(
      try phone(certificate, key).find(["class": "idnt", "r_Ref": true])?.referenceValue)
    let query: SecItemQuery = ["v_Ref": .reference(identity), "r_PersistentRef": true]
    let other = try phone(certificate)
    #expect(other.statusOfAdding(query) == 0)
    #expect(other.statusOfAdding(query) == -25299)
    #expect(other.statusOfFinding(["class": "idnt"]) == 0)
    let fresh = try SecItemPhone()
    let added = try fresh.add(query)?.dataValue
    #expect(added?.starts(with: Array("idnt".utf8)) == true)
    #expect(try fresh.find(["class": "idnt", "r_PersistentRef": true])?.dataValue == added)
    #expect(try fresh.find(query)?.dataValue == added)
    #expect(fresh.statusOfAdding(["class": "idnt", "v_Ref": .reference(identity), "acct": "a"]) != 0)
  }

  @Test("Deleting identities by class deletes all parts, and by reference the key only if no other needs it")
  func deleting() throws {
    let byClass = try phone(certificate, key)
    try byClass.delete(["class": "idnt"])
    #expect(
      byClass.statusOfFinding(["class": "cert"]) == -25300 && byClass.statusOfFinding(["class": "keys"]) == -25300)

    let phone = try phone(certificate, certificate.replacing("slnr", with: .bytes("2")), key)
    let first = try phone.find(["class": "idnt", "slnr": .bytes("1"), "r_Ref": true])?.referenceValue
    try phone.delete(["v_Ref": .reference(try #require(first))])
    #expect(phone.statusOfFinding(["class": "keys"]) == 0)
    let second = try phone.find(["class": "idnt", "r_Ref": true])?.referenceValue
    try phone.delete(["v_Ref": .reference(try #require(second))])
    #expect(phone.statusOfFinding(["class": "keys"]) == -25300)
  }

  @Test("An identity can be deleted by its persistent reference, unless combined with a class or attributes")
  func deletingPersistently() throws {
    let phone = try phone(certificate, certificate.replacing("slnr", with: .bytes("2")), key)
    for (number, keyStatus) in [("1", 0), ("2", -25300)] as [(SecItemValue, Int32)] {
      let found = try phone.find([
        "class": "idnt", "slnr": .data([number == "1" ? 0x31 : 0x32]), "r_PersistentRef": true,
      ])
      let reference = SecItemValue.data(try #require(found?.dataValue))
      #expect(phone.statusOfDeleting(["class": "keys", "v_PersistentRef": reference]) == -25306)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference, "labl": "Anna"]) == -50)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference], as: "shop") == -25300, "another app's")
      #expect(phone.statusOfFinding(["v_PersistentRef": reference]) == 0)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference]) == 0)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference]) == -25300)
      #expect(phone.statusOfFinding(["class": "keys"]) == keyStatus, "a key stays while a certificate needs it")
    }
    #expect(phone.statusOfFinding(["class": "cert"]) == -25300)
  }

  @Test("The class of identities beside an identity's reference has no effect on the four calls")
  func classBesideReference() throws {
    let found = try phone(certificate, key).find(["class": "idnt", "r_Ref": true])?.referenceValue
    let query: SecItemQuery = ["class": "idnt", "v_Ref": .reference(try #require(found))]
    let phone = try SecItemPhone()
    #expect(phone.statusOfFinding(query) == -25300)
    #expect(try phone.add(query.replacing("r_PersistentRef", with: true))?.dataValue?.count == 20)
    #expect(phone.statusOfAdding(query) == -25299)
    #expect(phone.statusOfFinding(query) == 0)
    #expect(phone.statusOfUpdating(query, ["labl": "new"]) == 0)
    #expect(phone.statusOfFinding(["class": "idnt", "labl": "new"]) == 0)
    #expect(phone.statusOfDeleting(query) == 0)
    #expect(phone.statusOfFinding(["class": "cert"]) == -25300)
    #expect(phone.statusOfFinding(["class": "keys"]) == -25300)
  }

  @Test("An update changes both parts of an identity")
  func updating() throws {
    let phone = try phone(certificate, key)
    try phone.update(["class": "idnt"], ["labl": "both"])
    #expect(phone.statusOfFinding(["class": "cert", "labl": "both"]) == 0)
    #expect(phone.statusOfFinding(["class": "keys", "labl": "both"]) == 0)
    #expect(phone.statusOfUpdating(["class": "idnt"], ["slnr": .bytes("9")]) == -25303, "keys have no serial number")
  }
}
