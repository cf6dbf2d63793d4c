import Basics
import KeychainFormats
import KeychainRules
import Testing

@Suite("Transfer assessments")
struct TransferAssessmentsTests {
  /// The expected assessments, written by hand: Y, N or ? for an encrypted backup, an unencrypted backup, a
  /// direct transfer and iCloud Keychain.
  struct Case: CustomTestStringConvertible {
    let name: String
    let reasons: (withPassword: Reason?, withoutPassword: Reason?)
    let protection: ProtectionClass?
    let synchronizes: Bool?
    let expected: String

    var testDescription: String { name }
  }

  private static let cases = [
    Case(
      name: "an ordinary item moves by an encrypted backup and Quick Start, and does not synchronize",
      reasons: (nil, .backupNotEncrypted), protection: .whenUnlocked, synchronizes: false, expected: "YNYN"),
    Case(
      name: "an item that returns to its own device needs no password", reasons: (nil, nil), protection: .whenUnlocked,
      synchronizes: false, expected: "YYYN"),
    Case(
      name: "a synchronized Wi-Fi password has no published rule for Quick Start",
      reasons: (nil, .backupNotEncrypted), protection: .afterFirstUnlock, synchronizes: true, expected: "YN?Y"),
    Case(
      name: "a this-device-only item cannot move", reasons: (.deviceBound, .deviceBound),
      protection: .afterFirstUnlockThisDeviceOnly, synchronizes: nil, expected: "NNNN"),
    Case(
      name: "a this-device-only item that claims to synchronize cannot move", reasons: (.deviceBound, .deviceBound),
      protection: .whenUnlockedThisDeviceOnly, synchronizes: true, expected: "NNNN"),
    Case(
      name: "an item of the passcode class cannot move", reasons: (.passcodeOnly, .passcodeOnly),
      protection: .whenPasscodeSetThisDeviceOnly, synchronizes: false, expected: "NNNN"),
    Case(
      name: "an access-controlled item has no published rule for a direct transfer",
      reasons: (.needsAuthentication, .needsAuthentication), protection: .whenUnlocked, synchronizes: false,
      expected: "NN?N"),
    Case(
      name: "a token's key has no published rule for a direct transfer", reasons: (.hardwareKey, .hardwareKey),
      protection: .whenUnlocked, synchronizes: false, expected: "NN?N"),
    Case(
      name: "a shared group synchronizes its copies separately", reasons: (.sharedGroup, .sharedGroup),
      protection: .whenUnlocked, synchronizes: true, expected: "NN??"),
    Case(
      name: "an undecrypted item may synchronize", reasons: (nil, .backupNotEncrypted),
      protection: .whenUnlocked, synchronizes: nil, expected: "YN??"),
    Case(
      name: "an item that is damaged in the backup may be intact on its device", reasons: (.tagMismatch, .tagMismatch),
      protection: .whenUnlocked, synchronizes: nil, expected: "NN??"),
    Case(
      name: "an item that is malformed in the backup may be valid on its device", reasons: (.malformed, .malformed),
      protection: .whenUnlocked, synchronizes: false, expected: "NN??"),
    Case(
      name: "a deleted item cannot move", reasons: (.deleted, .deleted), protection: .whenUnlocked,
      synchronizes: true, expected: "NNNN"),
  ]

  @Test("Each method is assessed by its published rules, or as not known if no rule is published", arguments: cases)
  func verdicts(_ example: Case) {
    let assessments = TransferAssessments(
      withPassword: example.reasons.withPassword, withoutPassword: example.reasons.withoutPassword,
      protection: example.protection,
      isSynchronizable: example.synchronizes)
    let symbols = TransferMethod.allCases.map { method in
      switch assessments[method].verdict {
      case .yes: "Y"
      case .no: "N"
      case .notKnown: "?"
      }
    }
    #expect(symbols.joined() == example.expected)
  }

  @Test("An assessment contains its reason")
  func rationales() {
    let token = TransferAssessments(
      withPassword: .hardwareKey, withoutPassword: .hardwareKey, protection: .whenUnlocked, isSynchronizable: false)
    let ids = TransferMethod.allCases.map { token[$0].rationale.id }
    #expect(ids == ["hardware-key", "hardware-key", "no-source", "not-synchronized"])
    let bound = TransferAssessments(
      withPassword: .deviceBound, withoutPassword: .deviceBound, protection: .alwaysThisDeviceOnly,
      isSynchronizable: nil)
    #expect(bound.directTransfer == .no(.reason(.deviceBound)) && bound.iCloudKeychain == .no(.reason(.deviceBound)))
  }
}
