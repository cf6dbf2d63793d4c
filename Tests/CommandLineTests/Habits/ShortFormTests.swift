import Foundation
import Testing

@testable import keyhaul

@Suite("Habits from other programs")
struct ShortFormTests {
  @Test("-p FILE is --password-file FILE, wherever a backup's password is asked for")
  func passwordFile() throws {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o b.tar --rounds 1 -q -p .bp")
    for line in [
      "inspect b.tar --list", "verify b.tar", "plan b.tar", "plan b.tar --to new-phone", "why b.tar --account anna",
      "diff b.tar b.tar", "export b.tar -o names.json", "item find b.tar", "seal b.tar",
      "convert b.tar --decrypted -o clear/", "rekey b.tar --new-password-file .bp",
      "restore b.tar --to new-phone --yes",
    ] {
      let outcome = try world.keyhaul("\(line) -p .bp --no-input")
      #expect(outcome.status == 0, "\(line): \(outcome)")
    }
  }

  @Test("--version says the version, and version the libraries too that the program runs on")
  func version() throws {
    let world = try MoveWorld()
    let lines = try world.succeed("version")
    #expect(try world.succeed("--version") == lines.prefix { $0 != "\n" } + "\n")
    #expect(lines.hasPrefix("keyhaul \(Keyhaul.version)"))
    for library in ["SQLite ", "OpenSSL ", "libarchive ", "utf8proc "] { #expect(lines.contains(library)) }
    #expect(try world.object(world.succeed("version --json"))["format"] as? String == "version/1")
  }

  @Test("what is binary is refused on a terminal before a password is asked for")
  func binary() throws {
    let world = try MoveWorld(backedUpTo: "family.backup")
    for arguments in [
      ["backup", "old-phone", "-o", "-"], ["convert", "family.backup", "-o", "-"],
      ["convert", "family.backup", "--decrypted", "-o", "-"],
    ] {
      let refused = try world.devices.runOnTerminal(arguments)
      #expect(refused.status == 64 && refused.terminal.contains("is not shown on a terminal"), "\(refused)")
      #expect(!refused.terminal.lowercased().contains("password"), "\(refused)")
    }
  }
}
