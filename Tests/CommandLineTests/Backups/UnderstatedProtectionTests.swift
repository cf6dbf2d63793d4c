import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import KeychainCrypto
@testable import keyhaul

/// Changes that anyone can make to a copy without its password.
@Suite("Backups that claim less protection than they have")
struct UnderstatedProtectionTests {
  struct Claim: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The changes, in a sandbox with `b/`, which has a password and no seal, and `plain/`, which has neither.
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
  ) -> Claim.Change {
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

  static let claims = [
    Claim(
      testDescription: "IsEncrypted false, although the keybag and the manifest need a password",
      apply: { sandbox in try sandbox.editPropertyList("b/Manifest.plist") { $0["IsEncrypted"] = false } },
      message:
        "it says that it is not encrypted, but contains the key of an encrypted manifest (ManifestKey) and a keybag "
        + "with a password's iteration count (DPIC)", refusal: 14),
    Claim(
      testDescription: "the keybag of a password in a backup without a password",
      apply: { sandbox in
        var keybagOfPassword: Any?
        try sandbox.editPropertyList("b/Manifest.plist") { keybagOfPassword = $0["BackupKeyBag"] }
        try sandbox.editPropertyList("plain/Manifest.plist") { $0["BackupKeyBag"] = keybagOfPassword }
      },
      backup: "plain/",
      message: "it says that it is not encrypted, but contains a keybag with a password's iteration count "
        + "(DPIC)", refusal: 14),
    Claim(
      testDescription: "IsEncrypted true, although the files are unencrypted",
      apply: { sandbox in try sandbox.editPropertyList("plain/Manifest.plist") { $0["IsEncrypted"] = true } },
      backup: "plain/",
      message: "says that it is encrypted, but it is not", refusal: 14),
    Claim(
      testDescription: "WRAP 2 to 3 of a class that moves", apply: setWrap([.device, .password], ofClasses: [7]),
      message:
        "the key of class 7 in its keybag is wrapped with a device's hardware key. No device does this in a backup "
        + "with a password, and it makes migratable items appear to stay behind", refusal: 13),
    Claim(
      testDescription: "WRAP 2 to 3 of all classes that move",
      apply: setWrap([.device, .password], ofClasses: [6, 7, 8]),
      message: "the keys of classes 6, 7 and 8 in its keybag are wrapped with a device's hardware key", refusal: 13),
    Claim(
      testDescription: "WRAP 3 to 1: a key without the password's layer",
      apply: setWrap(.device, ofClasses: [9], cuttingKeysTo: 32),
      message: "the key of class 9 in its keybag is not wrapped with the password, although every device "
        + "does this", refusal: 13
    ),
    Claim(
      testDescription: "WRAP 3 to 2: a key without the hardware's layer",
      apply: setWrap(.password, ofClasses: [5, 9, 10, 11]),
      message: "the keys of classes 5, 9, 10 and 11 in its keybag are not wrapped with a device's hardware key",
      refusal: nil),
    Claim(
      testDescription: "DPIC lowered", apply: { try $0.setIterations(40, in: "DPIC", of: "b") },
      message: "asks for 40 iterations to derive the key from its password; a device asks for 10,000,000", refusal: nil),
    Claim(
      testDescription: "DPIC by one lower than any device's",
      apply: { try $0.setIterations(9_999_999, in: "DPIC", of: "b") },
      message: "asks for 9,999,999 iterations to derive the key from its password", refusal: nil),
    Claim(
      testDescription: "DPIC raised, but not enough for a question",
      apply: { try $0.setIterations(12_000_000, in: "DPIC", of: "b") },
      message: "asks for 12,000,000 iterations to derive the key from its password", refusal: nil),
    Claim(
      testDescription: "DPIC and DPSL removed",
      apply: { sandbox in try editKeybag(in: sandbox) { $0.secondStep = nil } },
      message: "skips the slow iterations to derive the key from its password; a device asks for 10,000,000",
      refusal: nil),
    Claim(
      testDescription: "ITER lowered, with the usual DPIC",
      apply: { sandbox in
        try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
        try sandbox.setIterations(9_999, in: "ITER", of: "b")
      },
      message: "asks for 9,999 iterations to derive the key from its password; a device asks for 10,000", refusal: nil),
    Claim(
      testDescription: "a seal that anyone can make, on a backup with a password",
      apply: { sandbox in
        try sandbox.backUp(to: "sealed/")
        try addUnkeyedSeal(to: "sealed", in: sandbox)
      },
      backup: "sealed/",
      message: "it is a plain list of digests, which anyone can write, although the backup has a password",
      refusal: 13),
  ]

  private func sandbox(_ claim: Claim) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(named: "b/ and plain/, unsealed") { sandbox in
      try sandbox.backUp(to: "b/")
      try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
      for name in ["b", "plain"] { try sandbox.removeSeal(name) }
    }
    try claim.apply(sandbox)
    return sandbox
  }

  /// Returns a text without line breaks and colors.
  private func uncolored(_ text: some StringProtocol) -> String {
    unwrapped(String(text).replacing(/\u{1B}\[[0-9;]*m/, with: ""))
  }

  @Test(
    "Plan and restore warn before asking for the password, and rejected backups are not restored",
    arguments: claims)
  func warned(claim: Claim) throws {
    let sandbox = try sandbox(claim)
    let before = try sandbox.contents(of: "new-phone")
    for command in ["plan", "restore"] {
      // An empty line ends the question.
      let shown = try sandbox.devices.runOnTerminal([command, claim.backup, "--to", "new-phone"], typed: [""])
      let parts = shown.terminal.split(separator: "Password of", maxSplits: 1, omittingEmptySubsequences: false)
      // If anyone can decrypt the items according to the keybag, this warning may take the place of the other one.
      let messages = [claim.message] + (claim.refusal == 14 ? ["anyone can decrypt them"] : [])
      #expect(messages.contains { uncolored(parts[0]).contains($0) }, "\(command): \(shown)")
      // The warning also appears with -q and without a terminal.
      let quiet = try sandbox.keyhaul("\(command) \(claim.backup) --to new-phone -q --no-input --yes")
      #expect(messages.contains { uncolored(quiet.errors).contains($0) }, "\(command): \(quiet)")
      guard command == "restore" else { continue }
      let asksForPassword = parts.count > 1
      #expect(asksForPassword == (claim.refusal == nil), "\(shown)")
      let expectedStatus = claim.refusal ?? CommandExitStatus.needsPassword.code
      #expect(shown.status == expectedStatus && quiet.status == expectedStatus, "\(shown) \(quiet)")
      if claim.refusal != nil, claim.backup == "b/" {
        let given = try sandbox.keyhaul("restore b/ --to new-phone --password-file .bp --yes -q")
        #expect(given.status == claim.refusal, "\(given)")
      }
    }
    #expect(try sandbox.contents(of: "new-phone") == before)
  }

  @Test(
    "Inspect and verify also report why a backup cannot be restored, and rekey rejects it",
    arguments: claims.filter { $0.refusal != nil && $0.backup == "b/" })
  func reported(claim: Claim) throws {
    let sandbox = try sandbox(claim)
    for flags in ["--password-file .bp", "--quick"] {
      let outcome = try sandbox.keyhaul("verify b/ \(flags)")
      #expect([13, 14].contains(outcome.status), "\(flags): \(outcome)")
      #expect(!outcome.output.contains("b/ is intact"), "\(outcome)")
    }
    let document = try sandbox.object(sandbox.keyhaul("inspect b/ --json -q").output)
    let findings = try #require(document["findings"] as? [[String: Any]])
    let details = findings.compactMap { $0["detail"] as? String }
    #expect(details.contains { uncolored($0).contains(claim.message) }, "\(findings)")
    #expect(findings.contains { $0["restorable"] as? Bool == false })
    let rekeyed = try sandbox.keyhaul("rekey b/ --password-file .bp --new-password-file .bp --yes")
    #expect(rekeyed.status == claim.refusal, "\(rekeyed)")
  }

  @Test("There is no warning about genuine backups, or about a low iteration count that was set and sealed")
  func genuine() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    #expect(try !sandbox.keyhaul("plan b/ --to new-phone --password-file .bp").errors.contains("warning"))
    try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
    let outcome = try sandbox.keyhaul("plan b/ --to new-phone --no-input")
    #expect(outcome.status == 12 && !outcome.errors.contains("warning"), "\(outcome)")
  }
}

extension UnderstatedProtectionTests.Claim {
  typealias Change = @Sendable (PhoneSandbox) throws -> Void
}
