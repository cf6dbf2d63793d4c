import Foundation
import Testing

@testable import keyhaul

@Suite("Backups of large keychains")
struct LargeKeychainBackupTests {
  /// old-phone with additional secrets of 9 MB, and a folder for temporary files.
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "large keychain") { sandbox in
      try sandbox.write([UInt8](repeating: 120, count: 1 << 20), to: ".large")
      for number in 0..<9 {
        try sandbox.succeed("item add old-phone --service large --account n\(number) --secret-file .large")
      }
      try sandbox.devices.run("mkdir tmp")
    }
  }

  private static let line = "backup old-phone --password-file .bp --rounds 1 --yes -o"

  @Test(
    "A backup without room for temporary files fails with the reason, and leaves nothing", arguments: ["b/", "b.tar"])
  func noRoom(output: String) throws {
    let sandbox = try sandbox()
    let before = try sandbox.names()
    let outcome = try sandbox.devices.run("TMPDIR=$PWD/nowhere keyhaul \(Self.line) \(output)")
    #expect(outcome.status == 1)
    let errors = unwrapped(outcome.errors)
    #expect(
      errors.hasPrefix("error: cannot back up old-phone: a temporary file cannot be written why: a temporary file"))
    #expect(
      errors.hasSuffix(
        "nowhere\": no such file or directory try: set TMPDIR to a folder with free space"), "\(errors)")
    #expect(try sandbox.names() == before)
    // The backup of a small keychain needs no temporary file.
    #expect(
      try sandbox.devices.run("TMPDIR=$PWD/nowhere keyhaul \(Self.line.replacing("old", with: "new")) s/").status == 0)
  }

  @Test("A large backup is complete, leaves no temporary file, and has the same counts with and without -v")
  func counts() throws {
    let sandbox = try sandbox()
    let plain = try sandbox.devices.run("TMPDIR=$PWD/tmp keyhaul \(Self.line) b/")
    let named = try sandbox.devices.run("TMPDIR=$PWD/tmp keyhaul \(Self.line) c/ -v")
    let document = try sandbox.object(sandbox.succeed("\(Self.line) d/ --json"))
    #expect(try sandbox.names(in: "tmp").isEmpty)
    let items = try #require(document["items"] as? Int)
    let total = try #require(document["total"] as? Int)
    for (outcome, name) in [(plain, "b"), (named, "c")] {
      #expect(outcome.status == 0)
      #expect(outcome.output.hasPrefix("Backed up \(items) of \(total) items from old-phone to \(name)/ (encrypted, "))
      let listed = outcome.output.split(separator: "\n").count { $0.hasPrefix("  + ") }
      #expect(listed == (name == "c" ? items : 0))
      let verified = try sandbox.succeed("verify \(name) --password-file .bp")
      #expect(verified.contains("items        \(items) of \(items) can be decrypted"))
      #expect(verified.contains("\(name) is intact."))
    }
  }
}
