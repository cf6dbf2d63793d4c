import Basics
import KeychainFormats
import Testing

@testable import Keychains
@testable import VirtualDevice

/// Source: Apple `SecAccessControl.m`.
@Suite("SecItem: access controls")
struct SecItemAccessControlTests {
  private func makeControl(_ flags: AccessControlFlags) throws -> AccessControl {
    try AccessControl(protection: .whenUnlocked, flags: flags)
  }

  @Test(
    "Access control flags that exclude each other are rejected (-50)",
    arguments: [
      [.or, .and], [.biometryAny, .biometryCurrentSet], [.userPresence, .biometryAny],
      [.userPresence, .devicePasscode],
      [.userPresence, .or], [.userPresence, .and], [.userPresence, .companion],
    ] as [AccessControlFlags])
  func refused(_ flags: AccessControlFlags) {
    #expect(throws: SecItemError.self) { try makeControl(flags) }
  }

  @Test("User presence can be combined with application password and private-key usage")
  func presence() throws {
    _ = try makeControl([.userPresence, .applicationPassword, .privateKeyUsage])
    #expect(try makeControl(.userPresence).requirement(for: .decrypt) == AccessRequirement(factors: [.userPresence]))
  }

  @Test("An unknown protection class is rejected (-50)")
  func protection() throws {
    #expect(throws: SecItemError.self) { try AccessControl(protectionCode: "bk", flags: []) }
    #expect(try AccessControl(protectionCode: "akpu", flags: []).protection == .whenPasscodeSetThisDeviceOnly)
  }

  @Test("All constraints are required, or only one of them if the flags contain `or`")
  func counts() throws {
    let bothRequired = try makeControl([.biometryAny, .devicePasscode]).requirement(for: .decrypt)
    #expect(bothRequired.factors == [.biometryAny, .devicePasscode] && bothRequired.requiredCount == 2)
    let oneRequired = try makeControl([.biometryAny, .devicePasscode, .or]).requirement(for: .decrypt)
    #expect(oneRequired.factors == bothRequired.factors && oneRequired.requiredCount == 1)
  }

  @Test("Only decryption requires authentication, not encryption or deletion")
  func operations() throws {
    let control = try makeControl(.biometryCurrentSet)
    #expect(control.requirement(for: .decrypt).factors == [.biometryCurrentSet])
    #expect(control.requirement(for: .encrypt).isEmpty)
    #expect(control.requirement(for: .delete).isEmpty)
    #expect(control.requirement(for: .sign).isForbidden)
  }

  @Test("With private-key usage, using the key requires authentication and reading it is forbidden")
  func keyUsage() throws {
    let control = try makeControl([.privateKeyUsage, .biometryAny])
    #expect(control.requirement(for: .sign).factors == [.biometryAny])
    #expect(control.requirement(for: .computeKey).factors == [.biometryAny])
    #expect(control.requirement(for: .decapsulate).factors == [.biometryAny])
    // `okd` is the decapsulation, and `cbio` is biometry.
    #expect(control.operations?["okd"] == .dictionary(["cbio": .boolean(true)]))
    #expect(control.requirement(for: .attest).isEmpty)
    #expect(control.requirement(for: .delete).isEmpty)
    #expect(control.requirement(for: .decrypt).isForbidden)
    #expect(try makeControl(.privateKeyUsage).operations?["okd"] == .boolean(true))
  }

  @Test("An access control without flags requires nothing, but its item counts as constrained")
  func noFlags() throws {
    let control = try makeControl([])
    #expect(control.isConstrained)
    #expect(AccessOperation.allCases.allSatisfy { control.requirement(for: $0).isEmpty })
    #expect(!AccessControl(protection: .always).isConstrained)
    let phone = try SecItemPhone()
    try phone.add(["class": "genp", "accc": .accessControl(control)])
    let row = try phone.store.rows(includingTombstones: false, keys: phone.keys)[0]
    #expect(row.item?[.accessControl] != nil, "it is encrypted in the form that no backup contains")
  }

  @Test("A search returns the access control of an item, or one with only its protection class")
  func returned() throws {
    let phone = try SecItemPhone()
    let control = try makeControl(.userPresence)
    try phone.add(["class": "genp", "acct": "a", "accc": .accessControl(control)])
    try phone.add(["class": "genp", "acct": "b", "pdmn": "ck"])
    let withConstraint = try phone.find(["class": "genp", "acct": "a", "r_Attributes": true])
    #expect(withConstraint?["accc"]?.accessControlValue == control)
    #expect(withConstraint?["pdmn"] == "ak")
    let withoutConstraint = try phone.find(["class": "genp", "acct": "b", "r_Attributes": true])
    #expect(withoutConstraint?["accc"]?.accessControlValue == AccessControl(protection: .afterFirstUnlock))
  }

  @Test("A search requests each distinct authentication once")
  func requestedOnce() throws {
    let phone = try SecItemPhone()
    phone.answer = .allow
    for account in ["a", "b", "c"] {
      try phone.add(
        ["class": "genp", "acct": .string(account), "accc": .accessControl(try makeControl(.userPresence))])
    }
    try phone.add(["class": "genp", "acct": "d", "accc": .accessControl(try makeControl(.devicePasscode))])
    _ = try phone.find(
      ["class": "genp", "r_Data": true, "m_Limit": "m_LimitAll", "u_OpPrompt": "to read your mail"])
    #expect(phone.requests.count == 2)
    #expect(phone.requests.allSatisfy { $0.prompt == "to read your mail" })
  }

  @Test("A class in an update removes the access control, and an access control sets the class")
  func updates() throws {
    let phone = try SecItemPhone()
    phone.answer = .allow
    let control = try AccessControl(protection: .afterFirstUnlock, flags: .userPresence)
    try phone.add(["class": "genp", "v_Data": .bytes("x")])
    try phone.update(["class": "genp"], ["accc": .accessControl(control)])
    #expect(try phone.find(["class": "genp", "r_Attributes": true])?["pdmn"] == "ck")
    try phone.update(["class": "genp"], ["pdmn": "dk"])
    phone.answer = .deny
    #expect(try phone.find(["class": "genp", "r_Data": true])?.text == "x")
  }

  @Test("An application password is stored encrypted with its item and never returned")
  func applicationPassword() throws {
    let phone = try SecItemPhone()
    let context = AuthenticationContext(applicationPassword: SensitiveBytes(copying: Array("open sesame".utf8)))
    try phone.add(
      [
        "class": "genp", "v_Data": .bytes("x"), "accc": .accessControl(try makeControl(.applicationPassword)),
        "u_AuthCtx": .context(context),
      ])
    let found = try phone.find(
      ["class": "genp", "r_Data": true, "r_Attributes": true, "u_AuthCtx": .context(context)])
    #expect(found?["v_Data"]?.text == "x")
    #expect(found?.dictionaryValue?.keys.contains { $0.contains("keyhaul") } == false)
    #expect(phone.requests.isEmpty)
    phone.answer = .allow
    #expect(try phone.find(["class": "genp", "r_Data": true])?.text == "x", "the user enters it")
    #expect(phone.requests.map(\.requirement.needsApplicationPassword) == [true])
  }
}
