import Foundation
import Testing

@testable import keyhaul

@Suite("Secrecy of exports and rewritten backups")
struct RewriteSecrecyTests {
  private static let newPassword = "battery staple"

  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("\(Self.newPassword)\n".utf8), to: ".np")
    try sandbox.backUp(to: "b.tar")
    try sandbox.backUp(to: "b/")
    try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    try FileManager.default.createDirectory(
      atPath: sandbox.home.appending(path: "tmp").path, withIntermediateDirectories: true)
    return sandbox
  }

  @Test("Exports and rewritten backups are readable only by their owner, with any umask")
  func modes() throws {
    let sandbox = try sandbox()
    for line in [
      "export b.tar -o x.csv --reveal --password-file .bp", "export b.tar -o x.json --password-file .bp",
      "export b.tar --domain KeychainDomain --path keychain-backup.plist -o x.plist --password-file .bp",
      "convert b -o x.tar", "convert b -o x/", "rekey b.tar --password-file .bp --new-password-file .np",
      "rekey plain --new-password-file .np --rounds 5",
    ] {
      #expect(try sandbox.devices.run("umask 000; keyhaul \(line)").status == 0, "\(line)")
    }
    for name in ["x.csv", "x.json", "x.plist", "x.tar", "x/Manifest.plist", "b.tar", "plain/Manifest.plist"] {
      #expect(try sandbox.devices.permissions(of: name) == 0o600, "\(name)")
    }
    #expect(try sandbox.devices.permissions(of: "x") == 0o700)
    #expect(try sandbox.devices.permissions(of: "plain") == 0o700)
  }

  @Test("Rekey asks for the old password once, and then for the new password twice")
  func prompts() throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul("rekey b.tar", typed: [PhoneSandbox.password, "fresh one", "fresh one"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.terminal == "Password of b.tar: \nNew password for b.tar: \nagain: \n")
    // After a wrong password, Keyhaul asks for it again. Two different new passwords are rejected.
    let different = try sandbox.keyhaul("rekey b.tar", typed: ["old one", "fresh one", "a", "b"])
    #expect(different.status == 1 && different.errors.hasPrefix("error: the two passwords differ"))
    let wrongPassword = try sandbox.keyhaul("rekey b.tar", typed: Array(repeating: PhoneSandbox.password, count: 3))
    #expect(wrongPassword.status == 12 && !wrongPassword.terminal.contains("New password"), "\(wrongPassword)")
  }
}
