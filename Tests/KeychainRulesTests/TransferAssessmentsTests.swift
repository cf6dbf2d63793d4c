import Basics
import KeychainFormats
import KeychainRules
import Testing

@Suite("Transfer assessments")
struct TransferAssessmentsTests {
  /// The expected assessments, written by hand: "Yes", "No" or "?" for an encrypted backup, an unencrypted backup, a
  /// direct transfer and iCloud Keychain.
  struct Case: CustomTestStringConvertible {
    let name: String
    let reasons: (Reason?, Reason?)
    let protection: ProtectionClass?
    let synchronizes: Bool?
    let answers: String

    var testDescription: String { name }
  }

  private static let cases = [
    Case(
      name: "a mail login moves by an encrypted backup and by Quick Start, and does not synchronize",
      reasons: (nil, .backupNotEncrypted), protection: .whenUnlocked, synchronizes: false, answers: "YNYN"),
    Case(
      name: "what goes back to its own device needs no password", reasons: (nil, nil), protection: .whenUnlocked,
      synchronizes: false, answers: "YYYN"),
    Case(
      name: "of a Wi-Fi password that synchronizes nothing is published about Quick Start",
      reasons: (nil, .backupNotEncrypted), protection: .afterFirstUnlock, synchronizes: true, answers: "YN?Y"),
    Case(
      name: "an item of this device only takes no way", reasons: (.deviceBound, .deviceBound),
      protection: .afterFirstUnlockThisDeviceOnly, synchronizes: nil, answers: "NNNN"),
    Case(
      name: "nor does one that claims to synchronize as well", reasons: (.deviceBound, .deviceBound),
      protection: .whenUnlockedThisDeviceOnly, synchronizes: true, answers: "NNNN"),
    Case(
      name: "the passcode class takes no way", reasons: (.passcodeOnly, .passcodeOnly),
      protection: .whenPasscodeSetThisDeviceOnly, synchronizes: false, answers: "NNNN"),
    Case(
      name: "what a direct transfer does with a guarded item is not known",
      reasons: (.needsAuthentication, .needsAuthentication), protection: .whenUnlocked, synchronizes: false,
      answers: "NN?N"),
    Case(
      name: "nor with a token's key of a class that may move", reasons: (.hardwareKey, .hardwareKey),
      protection: .whenUnlocked, synchronizes: false, answers: "NN?N"),
    Case(
      name: "a group brings its copies by a way of its own", reasons: (.sharedGroup, .sharedGroup),
      protection: .whenUnlocked, synchronizes: true, answers: "NN??"),
    Case(
      name: "of a sealed item it is not known whether it synchronizes", reasons: (nil, .backupNotEncrypted),
      protection: .whenUnlocked, synchronizes: nil, answers: "YN??"),
    Case(
      name: "damage in a copy says nothing of the device's own item", reasons: (.tagMismatch, .tagMismatch),
      protection: .whenUnlocked, synchronizes: nil, answers: "NN??"),
    Case(
      name: "nor does a malformed item that opens and says whether it synchronizes", reasons: (.malformed, .malformed),
      protection: .whenUnlocked, synchronizes: false, answers: "NN??"),
    Case(
      name: "what was deleted takes no way", reasons: (.deleted, .deleted), protection: .whenUnlocked,
      synchronizes: true, answers: "NNNN"),
  ]

  @Test("Every method is assessed by published rules, and otherwise as not known", arguments: cases)
  func answers(_ example: Case) {
    let ways = TransferAssessments(
      withPassword: example.reasons.0, withoutPassword: example.reasons.1, protection: example.protection,
      isSynchronizable: example.synchronizes)
    let signs = TransferMethod.allCases.map { way in
      switch ways[way].verdict {
      case .yes: "Y"
      case .no: "N"
      case .notKnown: "?"
      }
    }
    #expect(signs.joined() == example.answers)
  }

  @Test("An assessment contains its reason")
  func grounds() {
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
