import Foundation
import KeyhaulKit
import Testing

@testable import KeychainCrypto
@testable import keyhaul

@Suite("Passwords given for backups without a password")
struct UnexpectedPasswordTests {
  /// The ways to give a password, each with its name in messages.
  private static let passwordSources: [(environment: String, flag: String, name: String)] = [
    ("", "--password-file .bp", "--password-file"), ("", "--password-fd 5 5< .bp", "--password-fd"),
    ("", "--password-command 'cat .bp'", "--password-command"),
    ("KEYHAUL_PASSWORD_FILE=.bp", "", "KEYHAUL_PASSWORD_FILE"),
    ("KEYHAUL_PASSWORD_COMMAND='cat .bp'", "", "KEYHAUL_PASSWORD_COMMAND"),
  ]

  @Test("Every command that decrypts a backup rejects a password for an unencrypted backup, however it was given")
  func refused() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    for line in DecryptingCommands.all.map({ $0.hasPrefix("rekey") ? "\($0) --rounds 1" : $0 }) {
      for (environment, flag, name) in Self.passwordSources {
        let outcome = try sandbox.devices.run("\(environment) keyhaul \(line) -q \(flag)")
        #expect(outcome.status == 14 && outcome.output == "", "\(environment) \(line) \(flag): \(outcome)")
        #expect(outcome.errors.hasPrefix("error: b has no password, but \(name) provides one\n"), "\(outcome)")
      }
      // Without a password the command works. Only the restore is refused, because it would only remove items.
      let outcome = try sandbox.keyhaul("\(line) -q")
      let onlyRemovesItems =
        line.hasPrefix("restore ") && outcome.errors.contains("no item of b would be restored to new-phone")
      #expect(outcome.status == (onlyRemovesItems ? 14 : 0), "\(line): \(outcome)")
    }
    let verified = try sandbox.devices.run("KEYHAUL_PASSWORD_FILE=.bp keyhaul verify b")
    #expect(
      verified.errors.hasSuffix("try: if it is the right backup, put KEYHAUL_PASSWORD_FILE= before the command\n"))
    #expect(try sandbox.devices.run("KEYHAUL_PASSWORD_FILE= keyhaul verify b").status == 0)
    let rekeyed = try sandbox.keyhaul("rekey b --password-file .bp --new-password-file .np -n")
    #expect(rekeyed.errors.hasSuffix("try: --new-password-file with the new password\n"), "\(rekeyed)")
  }

  @Test("A backup that falsely says it has no password is rejected, with advice on how to decrypt it")
  func claimsNoPassword() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.editPropertyList("b/Manifest.plist") { $0["IsEncrypted"] = false }
    for line in ["inspect b", "verify b", "export b -o -"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 14, "\(line): \(outcome)")
      #expect(
        outcome.errors.contains(
          "error: b says that it has no password, but it was made with one\n"), "\(outcome)")
      #expect(unwrapped(outcome.errors).contains("set IsEncrypted to true"), "\(outcome)")
      #expect(!outcome.errors.contains("leave --password-file out"), "\(outcome)")
    }
    try sandbox.editPropertyList("b/Manifest.plist") { $0["IsEncrypted"] = true }
    #expect(try sandbox.keyhaul("verify b --password-file .bp").status == 0)
  }

  @Test("A backup that falsely says it has a password is read without a password, and a given password is rejected")
  func claimsPassword() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    try sandbox.editPropertyList("b/Manifest.plist") { $0["IsEncrypted"] = true }
    #expect(try sandbox.keyhaul("inspect b").status == 0)
    let outcome = try sandbox.keyhaul("inspect b --password-file .bp")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(outcome.errors.contains("error: b has no password, but --password-file provides one\n"), "\(outcome)")
    #expect(outcome.errors.hasSuffix("try: if it is the right backup, leave --password-file out\n"), "\(outcome)")
  }

  @Test("For a keybag that is not a backup's, the error names the keybag's type and does not call the password wrong")
  func keybagType() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.write(Array("other\n".utf8), to: ".other")
    let asymmetricBackup: [UInt8] = [0, 0, 0, 4]
    try sandbox.editKeybagField("TYPE", in: "b") { $0 = asymmetricBackup }
    let outcome = try sandbox.keyhaul("verify b --password-file .other")
    #expect(outcome.status == 14 && !outcome.errors.contains("the password is wrong"), "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("why: the keybag's type is 4 (an asymmetric backup)"), "\(outcome)")
  }

  @Test("A single item that only its device can decrypt is reported in the singular")
  func singleItem() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create solo -q")
    try sandbox.succeed("item add solo --service s --account a --secret-command 'echo s' -q")
    try sandbox.succeed("backup solo --no-password -o b/ -q")
    let outcome = try sandbox.keyhaul("verify b --home elsewhere")
    #expect(
      outcome.status == 0
        && unwrapped(outcome.output).hasSuffix(
          "its 1 item needs a device key (the backup names solo)."),
      "\(outcome)")
  }

  @Test("If only one of two compared backups has a password, diff warns that the other backup has none")
  func diff() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try sandbox.backUp(to: "b/")
    for line in ["diff plain b", "diff b plain"] {
      for (environment, flag, _) in Self.passwordSources {
        let outcome = try sandbox.devices.run("\(environment) keyhaul \(line) \(flag)")
        #expect(
          outcome.status == 0 && outcome.errors.contains("warning: plain has no password\n"),
          "\(environment) \(line) \(flag): \(outcome)")
      }
    }
    #expect(try sandbox.keyhaul("diff b plain --password-file .bp --other-password-file .bp").status == 14)
    #expect(try sandbox.keyhaul("diff plain b --password-file .bp --other-password-file .bp").status == 14)
    #expect(try sandbox.keyhaul("diff plain b --other-password-file .bp").status == 0)
    #expect(try sandbox.keyhaul("diff plain old-phone --password-file .bp").status == 14)
  }
}
