import Foundation
import Reports
import Testing

@testable import keyhaul

/// In the bundled phone every-rule, the value of one password is a key of the phone's Secure Enclave.
///
/// In JSON, the transfer methods (`TransferMethod`) are in `ways`, the explanations of `why` in `stories`, and the
/// outlooks of `plan` without a target in `futures`. Lists of numbers have the order of `TransferMethod`: a backup with a
/// password, a backup without a password, direct transfer, iCloud Keychain.
@Suite("Transfer methods in plan and why")
struct TransferMethodTests {
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "every rule") { sandbox in
      for name in ["every-rule", "every-rule-target"] { try sandbox.succeed("device create \(name) --from \(name) -q") }
      try sandbox.backUp("every-rule", to: "rules.tar")
    }
  }

  /// Returns the name, the verdict and the rationale of each transfer method.
  private func transferMethods(of explanation: [String: Any]) -> [String] {
    (explanation["ways"] as? [[String: Any]] ?? []).compactMap { method in
      guard let name = method["way"] as? String, let verdict = method["answer"] as? String,
        let rationale = method["ground"] as? String
      else { return nil }
      return "\(name) \(verdict) \(rationale)"
    }
  }

  /// Returns the explanation of the only item that a search finds.
  private func explanation(of search: String, in sandbox: PhoneSandbox) throws -> [String: Any] {
    let document = try sandbox.object(sandbox.succeed("why \(search) --json"))
    let explanations = try #require(document["stories"] as? [[String: Any]])
    #expect(explanations.count == 1)
    return try #require(explanations.first)
  }

  @Test("Why lists the transfer methods of a chat login, and says that a push token has none")
  func methodsOfOneItem() throws {
    let sandbox = try PhoneSandbox()
    let login = try explanation(of: "old-phone --service chat.example --account anna", in: sandbox)
    #expect(
      transferMethods(of: login) == [
        "encrypted-backup yes restored", "unencrypted-backup no backup-not-encrypted",
        "direct-transfer yes movable-class", "icloud-keychain no not-synchronized",
      ])
    let pushToken = try explanation(of: "old-phone --service chat.example --account 'push token'", in: sandbox)
    #expect(transferMethods(of: pushToken).allSatisfy { $0.hasSuffix(" no device-bound") })
    let text = try sandbox.succeed("why old-phone --service chat.example --account anna")
    #expect(text.contains("direct transfer (Quick Start)  yes: its class is not bound to the"))
  }

  @Test("A comparison counts the items that each transfer method moves")
  func counts() throws {
    let sandbox = try PhoneSandbox()
    let document = try sandbox.object(sandbox.succeed("plan old-phone --to new-phone --compare --json"))
    let methods = try #require(document["ways"] as? [[String: Any]])
    // Of the 22 items of old-phone, 7 are this-device-only. One of the other 15 belongs to the system, so a backup does
    // not move it. The rule for direct transfers does not cover this item and the 2 synchronized ones.
    #expect(methods.map { $0["yes"] as? Int } == [14, 0, 12, 2])
    #expect(methods.map { $0["no"] as? Int } == [8, 22, 7, 20])
    #expect(methods.map { $0["not_known"] as? Int } == [0, 0, 3, 0])
    let items = try #require(document["items"] as? [[String: Any]])
    #expect(items.allSatisfy { ($0["ways"] as? [Any])?.count == 4 })
  }

  @Test(
    "A Secure Enclave key is restored but unusable on another phone, and its value is not shown")
  func unusable() throws {
    let sandbox = try sandbox()
    let plan = try sandbox.object(sandbox.succeed("plan rules.tar --to every-rule-target --password-file .bp --json"))
    let summary = try #require(plan["summary"] as? [String: Any])
    #expect(summary["by_warning"] as? [String: Int] == ["migrates-but-unusable": 1])
    let itemsWithWarning = try #require(plan["items"] as? [[String: Any]]).filter { $0["warning"] != nil }
    #expect(itemsWithWarning.map { $0["account"] as? String } == ["migrates-but-unusable"])
    #expect(itemsWithWarning.first?["outcome"] as? String == "migrates")
    #expect(itemsWithWarning.first?["change"] as? String == "new")

    let text = try sandbox.succeed("plan rules.tar --to every-rule-target --password-file .bp")
    #expect(text.contains("Will move, but will be unusable there (1)  migrates-but-unusable: "))
    #expect(text.contains("7 will move (4 new, 2 replaced, 1 already there), of them 1 unusable there,"))
    try sandbox.succeed("plan rules.tar --to every-rule-target --password-file .bp --format html -o plan.html")
    let page = String(decoding: try sandbox.read("plan.html"), as: UTF8.self)
    #expect(page.contains("Moves, but may be unusable there"))
    #expect(page.contains("of them 1 unusable there"))
    let why = try sandbox.succeed(
      "why rules.tar --account migrates-but-unusable --to every-rule-target --password-file .bp")
    #expect(why.contains("Warning") && why.contains("(migrates-but-unusable)"))
    // `rkm` is the name of a member of every Secure Enclave key, so it would be in the output if the value were shown.
    #expect(!(text + page + why).contains("rkm"))
  }

  @Test("Plans without a target and comparisons say that a Secure Enclave key moves, but may be unusable")
  func unusableOnAnyNewPhone() throws {
    let sandbox = try sandbox()
    let (newDeviceWarnings, sameDeviceWarnings) = (["migrates-but-unusable": 1], ["use-not-known": 1])
    let passwordFlag = "--password-file .bp"

    let plan = try sandbox.object(sandbox.succeed("plan rules.tar \(passwordFlag) --json"))
    let outlooks = try #require(plan["futures"] as? [[String: Any]])
    #expect(outlooks.map { $0["by_warning"] as? [String: Int] } == [newDeviceWarnings, sameDeviceWarnings])
    let text = unwrapped(try sandbox.succeed("plan rules.tar \(passwordFlag) -v"))
    #expect(
      text.contains(
        "1 of the items that move has the format of a key that only the Secure Enclave of every-rule can use, and is "
          + "unusable on a new iPhone."))
    #expect(text.contains("Kept either way, but unusable on a new iPhone (1) migrates-but-unusable: "), "\(text)")
    let page = try sandbox.succeed("plan rules.tar \(passwordFlag) --format html -o -")
    #expect(page.contains("1 unusable there") && page.contains("1 whose keys may not work there"))

    let compared = try sandbox.object(
      sandbox.succeed("plan rules.tar --to every-rule-target \(passwordFlag) --compare --json"))
    for restore in try #require(compared["settings"] as? [[String: Any]]) {
      let hasPassword = try #require(restore["password"] as? Bool)
      let isSameDevice = try #require(restore["same_device"] as? Bool)
      // Without a password, no item moves to another phone, so there is no warning.
      let expectedWarnings = isSameDevice ? sameDeviceWarnings : hasPassword ? newDeviceWarnings : nil
      #expect(restore["by_warning"] as? [String: Int] == expectedWarnings, "\(restore)")
    }
    let comparison = try sandbox.succeed("plan rules.tar --to every-rule-target \(passwordFlag) --compare")
    #expect(comparison.contains("  migrates-but-unusable (1): "), "\(comparison)")
    #expect(comparison.contains("  use-not-known (1): "), "\(comparison)")
  }

  @Test("For a backup without a password, direct transfer and iCloud Keychain are assessed only with the source device")
  func encryptedItems() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    let withDevice = try sandbox.object(sandbox.succeed("plan plain.tar --to new-phone --compare --json"))
    let methods = try #require(withDevice["ways"] as? [[String: Any]])
    // The device key of old-phone decrypts the 18 items. 4 of them are this-device-only and 2 are synchronized.
    #expect(methods.map { $0["yes"] as? Int } == [14, 0, 12, 2], "\(methods)")
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    // The protection class of each item is still readable, but not whether an item is synchronized.
    let withoutDevice = try sandbox.object(sandbox.succeed("plan plain.tar --to new-phone --compare --json"))
    #expect((withoutDevice["ways"] as? [[String: Any]])?.map { $0["yes"] as? Int } == [14, 0, 0, 0])
  }

  @Test("A plan for the source device does not claim that a Secure Enclave key works")
  func sameDevice() throws {
    let sandbox = try sandbox()
    let plan = try sandbox.object(sandbox.succeed("plan rules.tar --to every-rule --password-file .bp --json"))
    let summary = try #require(plan["summary"] as? [String: Any])
    #expect(summary["by_warning"] as? [String: Int] == ["use-not-known": 1])
    let text = try sandbox.succeed("plan rules.tar --to every-rule --password-file .bp")
    #expect(text.contains("of them 1 whose keys may not work"))
  }

  @Test("Why states whether the value of an item is a Secure Enclave key")
  func enclaveKeyInExplanation() throws {
    let sandbox = try sandbox()
    let enclaveKey = try explanation(of: "every-rule --account migrates-but-unusable", in: sandbox)
    #expect(enclaveKey["holds_enclave_key"] as? Bool == true)
    let password = try explanation(of: "every-rule --account identical", in: sandbox)
    #expect(password["holds_enclave_key"] as? Bool == false)
  }
}
