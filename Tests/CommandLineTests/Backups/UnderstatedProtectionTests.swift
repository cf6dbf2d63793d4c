import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import KeychainCrypto
@testable import keyhaul

/// Anyone can tamper with a copy of a backup in these ways without its password.
@Suite("Backups whose statements about their protection are false")
struct UnderstatedProtectionTests {
  /// A false statement in a backup, with the reaction that is expected of Keyhaul.
  struct Tampering: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Changes a backup in the sandbox. The sandbox has `b/`, with a password but no seal, and `plain/`, with neither.
    let apply: Change
    var backup = "b/"
    /// The message of `plan` and `restore`, which does not depend on what the user types.
    let message: String
    /// The exit code with which `restore` ends before it asks for a password; `nil` if it asks.
    let refusal: Int32?
  }

  /// Changes the keybag of `b`, for which no key is needed.
  private static func editKeybag(in sandbox: PhoneSandbox, _ change: (inout Keybag) throws -> Void) throws {
    try sandbox.editPropertyList("b/Manifest.plist") { manifest in
      var keybag = try Keybag(parsing: Array(try #require(manifest["BackupKeyBag"] as? Data)))
      try change(&keybag)
      manifest["BackupKeyBag"] = Data(keybag.serialized())
    }
  }

  /// Returns a change of the `WRAP` flags of some classes in the keybag of `b`.
  ///
  /// - Parameter byteCount: The length to which the wrapped keys are cut. A key wrapped with the password has 40 bytes.
  private static func setWrap(
    _ wrap: Keybag.WrapFlags, ofClasses numbers: [UInt32], cuttingKeysTo byteCount: Int = 40
  ) -> Tampering.Change {
    { sandbox in
      try editKeybag(in: sandbox) { keybag in
        for number in numbers {
          let index = try #require(keybag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
          keybag.classKeys[index].wrap = wrap
          keybag.classKeys[index].wrappedKey = keybag.classKeys[index].wrappedKey.map { Array($0.prefix(byteCount)) }
        }
      }
    }
  }

  /// Gives an encrypted backup the seal of a backup without a password, whose code is the SHA-256 of its lines.
  private static func addUnkeyedSeal(to backup: String, in sandbox: PhoneSandbox) throws {
    let keyedSeal = String(decoding: try sandbox.read("\(backup)/Keyhaul.seal"), as: UTF8.self)
    let linesWithoutCode = keyedSeal.replacing("hmac-sha256", with: "sha256").split(separator: "\n").dropLast()
    let text = linesWithoutCode.joined(separator: "\n") + "\n"
    let code = try Digest.sha256(Array(text.utf8)).hex
    try sandbox.write(Array("\(text)\(code)\n".utf8), to: "\(backup)/Keyhaul.seal", keepingSeal: true)
  }

  static let tamperings = [
    Tampering(
      testDescription: "IsEncrypted false, although the keybag and the manifest need a password",
      apply: { sandbox in try sandbox.editPropertyList("b/Manifest.plist") { $0["IsEncrypted"] = false } },
      message:
        "it says that it is not encrypted, but contains the key of an encrypted manifest (ManifestKey) and a keybag "
        + "with a password's iteration count (DPIC)", refusal: 14),
    Tampering(
      testDescription: "the keybag of a password in a backup without a password",
      apply: { sandbox in
        var keybagOfPassword: Any?
        try sandbox.editPropertyList("b/Manifest.plist") { keybagOfPassword = $0["BackupKeyBag"] }
        try sandbox.editPropertyList("plain/Manifest.plist") { $0["BackupKeyBag"] = keybagOfPassword }
      },
      backup: "plain/",
      message: "it says that it is not encrypted, but contains a keybag with a password's iteration count "
        + "(DPIC)", refusal: 14),
    Tampering(
      testDescription: "IsEncrypted true, although the files are unencrypted",
      apply: { sandbox in try sandbox.editPropertyList("plain/Manifest.plist") { $0["IsEncrypted"] = true } },
      backup: "plain/",
      message: "says that it is encrypted, but it is not", refusal: 14),
    Tampering(
      testDescription: "a migratable class is marked as also wrapped with the device key (WRAP 2 becomes 3)",
      apply: setWrap([.device, .password], ofClasses: [7]),
      message:
        "the key of class 7 in its keybag is wrapped with a device key. No device does this in a backup "
        + "with a password, and it makes migratable items appear to stay behind", refusal: 13),
    Tampering(
      testDescription: "all migratable classes are marked as also wrapped with the device key (WRAP 2 becomes 3)",
      apply: setWrap([.device, .password], ofClasses: [6, 7, 8]),
      message: "the keys of classes 6, 7 and 8 in its keybag are wrapped with a device key", refusal: 13),
    Tampering(
      testDescription: "a device-bound class key is not wrapped with the password (WRAP 3 becomes 1)",
      apply: setWrap(.device, ofClasses: [9], cuttingKeysTo: 32),
      message: "the key of class 9 in its keybag is not wrapped with the password, although every device "
        + "does this", refusal: 13
    ),
    Tampering(
      testDescription: "device-bound class keys are not wrapped with the device key (WRAP 3 becomes 2)",
      apply: setWrap(.password, ofClasses: [5, 9, 10, 11]),
      message: "the keys of classes 5, 9, 10 and 11 in its keybag are not wrapped with a device key",
      refusal: nil),
    Tampering(
      testDescription: "DPIC lowered", apply: { try $0.setIterations(40, in: "DPIC", of: "b") },
      message: "asks for 40 iterations to derive the key from its password; a device asks for 10,000,000", refusal: nil),
    Tampering(
      testDescription: "DPIC one below the lowest count of a device",
      apply: { try $0.setIterations(9_999_999, in: "DPIC", of: "b") },
      message: "asks for 9,999,999 iterations to derive the key from its password", refusal: nil),
    Tampering(
      testDescription: "DPIC raised, but too little for Keyhaul to ask about it",
      apply: { try $0.setIterations(12_000_000, in: "DPIC", of: "b") },
      message: "asks for 12,000,000 iterations to derive the key from its password", refusal: nil),
    Tampering(
      testDescription: "DPIC and DPSL removed",
      apply: { sandbox in try editKeybag(in: sandbox) { $0.secondStep = nil } },
      message: "skips the slow iterations to derive the key from its password; a device asks for 10,000,000",
      refusal: nil),
    Tampering(
      testDescription: "ITER lowered, with the usual DPIC",
      apply: { sandbox in
        try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
        try sandbox.setIterations(9_999, in: "ITER", of: "b")
      },
      message: "asks for 9,999 iterations to derive the key from its password; a device asks for 10,000", refusal: nil),
    Tampering(
      testDescription: "a seal that anyone can make, on a backup with a password",
      apply: { sandbox in
        try sandbox.backUp(to: "sealed/")
        try addUnkeyedSeal(to: "sealed", in: sandbox)
      },
      backup: "sealed/",
      message: "it is a plain list of digests, which anyone can write, although the backup has a password",
      refusal: 13),
  ]

  private func sandbox(_ tampering: Tampering) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(named: "b/ and plain/, unsealed") { sandbox in
      try sandbox.backUp(to: "b/")
      try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
      for name in ["b", "plain"] { try sandbox.removeSeal(name) }
    }
    try tampering.apply(sandbox)
    return sandbox
  }

  /// Returns a text without line breaks and colors.
  private func uncolored(_ text: some StringProtocol) -> String {
    unwrapped(String(text).replacing(/\u{1B}\[[0-9;]*m/, with: ""))
  }

  @Test(
    "Plan and restore warn before asking for the password, and rejected backups are not restored",
    arguments: tamperings)
  func warned(tampering: Tampering) throws {
    let sandbox = try sandbox(tampering)
    let deviceBefore = try sandbox.contents(of: "new-phone")
    for command in ["plan", "restore"] {
      // An empty line cancels the password prompt.
      let shown = try sandbox.devices.runOnTerminal([command, tampering.backup, "--to", "new-phone"], typed: [""])
      let parts = shown.terminal.split(separator: "Password of", maxSplits: 1, omittingEmptySubsequences: false)
      // If the keybag suggests that anyone can decrypt the items, a warning about this may replace the expected message.
      let messages = [tampering.message] + (tampering.refusal == 14 ? ["anyone can decrypt them"] : [])
      #expect(messages.contains { uncolored(parts[0]).contains($0) }, "\(command): \(shown)")
      // The warning also appears with -q and without a terminal.
      let quiet = try sandbox.keyhaul("\(command) \(tampering.backup) --to new-phone -q --no-input --yes")
      #expect(messages.contains { uncolored(quiet.errors).contains($0) }, "\(command): \(quiet)")
      guard command == "restore" else { continue }
      let asksForPassword = parts.count > 1
      #expect(asksForPassword == (tampering.refusal == nil), "\(shown)")
      let expectedStatus = tampering.refusal ?? CommandExitStatus.needsPassword.code
      #expect(shown.status == expectedStatus && quiet.status == expectedStatus, "\(shown) \(quiet)")
      if tampering.refusal != nil, tampering.backup == "b/" {
        let given = try sandbox.keyhaul("restore b/ --to new-phone --password-file .bp --yes -q")
        #expect(given.status == tampering.refusal, "\(given)")
      }
    }
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }

  @Test(
    "Inspect and verify also report why a backup cannot be restored, and rekey rejects it",
    arguments: tamperings.filter { $0.refusal != nil && $0.backup == "b/" })
  func reported(tampering: Tampering) throws {
    let sandbox = try sandbox(tampering)
    for flags in ["--password-file .bp", "--quick"] {
      let outcome = try sandbox.keyhaul("verify b/ \(flags)")
      #expect([13, 14].contains(outcome.status), "\(flags): \(outcome)")
      #expect(!outcome.output.contains("b/ is intact"), "\(outcome)")
    }
    let document = try sandbox.object(sandbox.keyhaul("inspect b/ --json -q").output)
    let findings = try #require(document["findings"] as? [[String: Any]])
    let details = findings.compactMap { $0["detail"] as? String }
    #expect(details.contains { uncolored($0).contains(tampering.message) }, "\(findings)")
    #expect(findings.contains { $0["restorable"] as? Bool == false })
    let rekeyed = try sandbox.keyhaul("rekey b/ --password-file .bp --new-password-file .bp --yes")
    #expect(rekeyed.status == tampering.refusal, "\(rekeyed)")
  }

  @Test("There is no warning about genuine backups, or about a low iteration count that was set and sealed")
  func genuine() throws {
    // The sandbox makes backups with a low iteration count, which their seal covers.
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    #expect(try !sandbox.keyhaul("plan b/ --to new-phone --password-file .bp").errors.contains("warning"))
    // With the count that devices use, the backup is like a genuine backup without a seal.
    try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
    let outcome = try sandbox.keyhaul("plan b/ --to new-phone --no-input")
    #expect(outcome.status == 12 && !outcome.errors.contains("warning"), "\(outcome)")
  }
}

extension UnderstatedProtectionTests.Tampering {
  typealias Change = @Sendable (PhoneSandbox) throws -> Void
}
