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
    #expect(try phone(certificate).statusOfFinding(["class": "idnt"]) == .itemNotFound)
    #expect(try phone(key).statusOfFinding(["class": "idnt"]) == .itemNotFound)
    #expect(try phone(certificate, key).statusOfFinding(["class": "idnt"]) == .success)
  }

  @Test("A certificate with a public key or another key is not an identity")
  func nonmatchingKey() throws {
    #expect(
      try phone(certificate, key.replacing("priv", with: false)).statusOfFinding(["class": "idnt"]) == .itemNotFound)
    let otherKey = key.replacing("klbl", with: .bytes("another"))
    #expect(try phone(certificate, otherKey).statusOfFinding(["class": "idnt"]) == .itemNotFound)
  }

  @Test("An identity has the attributes of both parts and the secret of its key")
  func shape() throws {
    let phone = try phone(certificate, key)
    let identity = try phone.find(["class": "idnt", "r_Attributes": true, "r_Data": true, "r_Ref": true])
    #expect(identity?["class"] == "idnt")
    #expect(identity?["labl"] == "Anna" && identity?["atag"] == .bytes("tag"))
    #expect(identity?["v_Data"]?.text == "key" && identity?["certdata"]?.text == "certificate")
    let reference = try phone.find(["class": "idnt", "r_Ref": true])?.referenceValue
    #expect(reference?.certificate?.kind == .certificate && reference?.key?.kind == .key)
  }

  @Test("An identity is found by attributes of its certificate and of its key")
  func search() throws {
    let phone = try phone(certificate, key)
    #expect(phone.statusOfFinding(["class": "idnt", "labl": "Anna"]) == .success)
    #expect(phone.statusOfFinding(["class": "idnt", "labl": "Berta"]) == .itemNotFound)
    #expect(phone.statusOfFinding(["class": "idnt", "atag": .bytes("tag")]) == .success)
    #expect(phone.statusOfFinding(["class": "idnt", "slnr": .bytes("2")]) == .itemNotFound)
    #expect(phone.statusOfFinding(["class": "idnt", "acct": "a"]) == .noSuchAttribute)
  }

  @Test("The persistent reference of an identity is its certificate's with another class")
  func reference() throws {
    let phone = try phone(certificate, key)
    let reference = try #require(try phone.find(["class": "idnt", "r_PersistentRef": true])?.dataValue)
    let certificateReference = try phone.find(["class": "cert", "r_PersistentRef": true])?.dataValue
    #expect(reference == Array("idnt".utf8) + (certificateReference ?? []).dropFirst(4))
    #expect(phone.statusOfFinding(["v_PersistentRef": .data(reference)]) == .success)
    #expect(phone.statusOfFinding(["class": "cert", "v_PersistentRef": .data(reference)]) == .noSuchClass)
    // The older form of a reference, which ends in a row number.
    let row = Array("idnt".utf8) + [0, 0, 0, 0, 0, 0, 0, 1]
    #expect(phone.statusOfFinding(["class": "idnt", "v_PersistentRef": .data(row)]) == .success)
  }

  @Test("A key with two certificates is two identities")
  func twoCertificates() throws {
    let phone = try phone(certificate, certificate.replacing("slnr", with: .bytes("2")), key)
    let found = try phone.find(["class": "idnt", "r_Ref": true, "m_Limit": "m_LimitAll"])?.arrayValue
    #expect(found?.count == 2)
    #expect(try phone.find(["class": "idnt", "r_Ref": true, "m_Limit": 1])?.referenceValue != nil)
  }

  @Test("Both parts of an identity must be in the app's groups")
  func groups() throws {
    let phone = try phone(certificate, key.replacing("agrp", with: "TEAM.shared"))
    #expect(phone.statusOfFinding(["class": "idnt"]) == .success)
    #expect(phone.statusOfFinding(["class": "idnt"], as: "shop") == .itemNotFound)
    #expect(phone.statusOfFinding(["class": "idnt", "agrp": "TEAM.mail"]) == .itemNotFound)
  }

  @Test("An identity is not accessible if the class key of its private key is not in memory")
  func locked() throws {
    let phone = try phone(certificate, key)
    phone.lock()
    #expect(phone.statusOfFinding(["class": "cert"]) == .success)
    #expect(phone.statusOfFinding(["class": "idnt"]) == .interactionNotAllowed)
  }

  @Test("An identity can be added by reference, even if its certificate exists")
  func adding() throws {
    let identity = try #require(
      try phone(certificate, key).find(["class": "idnt", "r_Ref": true])?.referenceValue)
    let query: SecItemQuery = ["v_Ref": .reference(identity), "r_PersistentRef": true]
    let phoneWithCertificate = try phone(certificate)
    #expect(phoneWithCertificate.statusOfAdding(query) == .success)
    #expect(phoneWithCertificate.statusOfAdding(query) == .duplicateItem)
    #expect(phoneWithCertificate.statusOfFinding(["class": "idnt"]) == .success)
    let emptyPhone = try SecItemPhone()
    let reference = try emptyPhone.add(query)?.dataValue
    #expect(reference?.starts(with: Array("idnt".utf8)) == true)
    #expect(try emptyPhone.find(["class": "idnt", "r_PersistentRef": true])?.dataValue == reference)
    #expect(try emptyPhone.find(query)?.dataValue == reference)
    #expect(emptyPhone.statusOfAdding(["class": "idnt", "v_Ref": .reference(identity), "acct": "a"]) != .success)
  }

  @Test("Deleting identities by class deletes all of their parts")
  func deletingByClass() throws {
    let byClass = try phone(certificate, key)
    try byClass.delete(["class": "idnt"])
    #expect(
      byClass.statusOfFinding(["class": "cert"]) == .itemNotFound
        && byClass.statusOfFinding(["class": "keys"]) == .itemNotFound)
  }

  @Test("Deleting an identity by its reference deletes the key only if no other identity needs it")
  func deletingByReference() throws {
    let phone = try phone(certificate, certificate.replacing("slnr", with: .bytes("2")), key)
    let firstReference = try phone.find(["class": "idnt", "slnr": .bytes("1"), "r_Ref": true])?.referenceValue
    try phone.delete(["v_Ref": .reference(try #require(firstReference))])
    #expect(phone.statusOfFinding(["class": "keys"]) == .success)
    let secondReference = try phone.find(["class": "idnt", "r_Ref": true])?.referenceValue
    try phone.delete(["v_Ref": .reference(try #require(secondReference))])
    #expect(phone.statusOfFinding(["class": "keys"]) == .itemNotFound)
  }

  @Test("An identity can be deleted by its persistent reference, unless combined with a class or attributes")
  func deletingPersistently() throws {
    let phone = try phone(certificate, certificate.replacing("slnr", with: .bytes("2")), key)
    // The key stays while another certificate needs it.
    for (serialNumber, keyStatus) in [("1", .success), ("2", .itemNotFound)] as [(String, SecItemStatus)] {
      let found = try phone.find(["class": "idnt", "slnr": .bytes(serialNumber), "r_PersistentRef": true])
      let reference = SecItemValue.data(try #require(found?.dataValue))
      #expect(phone.statusOfDeleting(["class": "keys", "v_PersistentRef": reference]) == .noSuchClass)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference, "labl": "Anna"]) == .parameter)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference], as: "shop") == .itemNotFound, "another app's")
      #expect(phone.statusOfFinding(["v_PersistentRef": reference]) == .success)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference]) == .success)
      #expect(phone.statusOfDeleting(["v_PersistentRef": reference]) == .itemNotFound)
      #expect(phone.statusOfFinding(["class": "keys"]) == keyStatus)
    }
    #expect(phone.statusOfFinding(["class": "cert"]) == .itemNotFound)
  }

  @Test("In the four calls, the class of identities can be added to an identity's reference without effect")
  func classBesideReference() throws {
    let found = try phone(certificate, key).find(["class": "idnt", "r_Ref": true])?.referenceValue
    let query: SecItemQuery = ["class": "idnt", "v_Ref": .reference(try #require(found))]
    let phone = try SecItemPhone()
    #expect(phone.statusOfFinding(query) == .itemNotFound)
    #expect(try phone.add(query.replacing("r_PersistentRef", with: true))?.dataValue?.count == 20)
    #expect(phone.statusOfAdding(query) == .duplicateItem)
    #expect(phone.statusOfFinding(query) == .success)
    #expect(phone.statusOfUpdating(query, ["labl": "new"]) == .success)
    #expect(phone.statusOfFinding(["class": "idnt", "labl": "new"]) == .success)
    #expect(phone.statusOfDeleting(query) == .success)
    #expect(phone.statusOfFinding(["class": "cert"]) == .itemNotFound)
    #expect(phone.statusOfFinding(["class": "keys"]) == .itemNotFound)
  }

  @Test("An update changes both parts of an identity")
  func updating() throws {
    let phone = try phone(certificate, key)
    try phone.update(["class": "idnt"], ["labl": "both"])
    #expect(phone.statusOfFinding(["class": "cert", "labl": "both"]) == .success)
    #expect(phone.statusOfFinding(["class": "keys", "labl": "both"]) == .success)
    #expect(
      phone.statusOfUpdating(["class": "idnt"], ["slnr": .bytes("9")]) == .noSuchAttribute, "keys have no serial number"
    )
  }
}
