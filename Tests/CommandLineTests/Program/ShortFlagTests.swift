import Foundation
import Testing

@testable import keyhaul

@Suite("Short forms of common flags")
struct ShortFlagTests {
  @Test("-p FILE means --password-file FILE in every command that needs a backup's password")
  func passwordFile() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b.tar --rounds 1 -q -p .bp")
    for line in [
      "inspect b.tar --list", "verify b.tar", "plan b.tar", "plan b.tar --to new-phone", "why b.tar --account anna",
      "diff b.tar b.tar", "export b.tar -o names.json", "item find b.tar", "seal b.tar",
      "convert b.tar --decrypted -o clear/", "rekey b.tar --new-password-file .bp",
      "restore b.tar --to new-phone --yes",
    ] {
      let outcome = try sandbox.keyhaul("\(line) -p .bp --no-input")
      #expect(outcome.status == 0, "\(line): \(outcome)")
    }
  }

  @Test("--version prints the version, and version also lists the libraries")
  func version() throws {
    let sandbox = try PhoneSandbox()
    let lines = try sandbox.succeed("version")
    #expect(try sandbox.succeed("--version") == lines.prefix { $0 != "\n" } + "\n")
    #expect(lines.hasPrefix("keyhaul \(Keyhaul.version)"))
    for library in ["SQLite ", "OpenSSL ", "libarchive ", "utf8proc "] { #expect(lines.contains(library)) }
    #expect(try sandbox.object(sandbox.succeed("version --json"))["format"] as? String == "version/1")
  }

  @Test("Binary output to a terminal is rejected before Keyhaul asks for a password")
  func binary() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "family.backup")
    for arguments in [
      ["backup", "old-phone", "-o", "-"], ["convert", "family.backup", "-o", "-"],
      ["convert", "family.backup", "--decrypted", "-o", "-"],
    ] {
      let refused = try sandbox.devices.runOnTerminal(arguments)
      #expect(refused.status == 64 && refused.terminal.contains("is not shown on a terminal"), "\(refused)")
      #expect(!refused.terminal.lowercased().contains("password"), "\(refused)")
    }
  }
}
