import Foundation
import Testing

@testable import keyhaul

@Suite("Backups of large keychains")
struct LargeKeychainBackupTests {
  /// Returns a sandbox whose old-phone has additional secrets of 9 MB, and with a folder for temporary files.
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "large keychain") { sandbox in
      try sandbox.write([UInt8](repeating: 120, count: 1 << 20), to: ".large")
      for number in 0..<9 {
        try sandbox.succeed("item add old-phone --service large --account n\(number) --secret-file .large")
      }
      try sandbox.devices.run("mkdir tmp")
    }
  }

  private static let backup = "backup old-phone --password-file .bp --rounds 1 --yes -o"

  @Test(
    "A backup without room for temporary files fails with the reason, and leaves nothing", arguments: ["b/", "b.tar"])
  func noRoom(output: String) throws {
    let sandbox = try sandbox()
    let namesBefore = try sandbox.names()
    let outcome = try sandbox.devices.run("TMPDIR=$PWD/nowhere keyhaul \(Self.backup) \(output)")
    #expect(outcome.status == 1)
    let errors = unwrapped(outcome.errors)
    #expect(
      errors.hasPrefix("error: cannot back up old-phone: a temporary file cannot be written why: a temporary file"))
    #expect(
      errors.hasSuffix(
        "nowhere\": no such file or directory try: set TMPDIR to a folder with free space"), "\(errors)")
    #expect(try sandbox.names() == namesBefore)
    // The backup of a small keychain needs no temporary file.
    let backupOfNewPhone = Self.backup.replacing("old-phone", with: "new-phone")
    #expect(try sandbox.devices.run("TMPDIR=$PWD/nowhere keyhaul \(backupOfNewPhone) s/").status == 0)
  }

  @Test("A large backup is complete, leaves no temporary file, and has the same counts with and without -v")
  func counts() throws {
    let sandbox = try sandbox()
    let brief = try sandbox.devices.run("TMPDIR=$PWD/tmp keyhaul \(Self.backup) b/")
    let verbose = try sandbox.devices.run("TMPDIR=$PWD/tmp keyhaul \(Self.backup) c/ -v")
    let document = try sandbox.object(sandbox.succeed("\(Self.backup) d/ --json"))
    #expect(try sandbox.names(in: "tmp").isEmpty)
    let itemCount = try #require(document["items"] as? Int)
    let totalCount = try #require(document["total"] as? Int)
    for (outcome, name, listedCount) in [(brief, "b", 0), (verbose, "c", itemCount)] {
      #expect(outcome.status == 0)
      #expect(
        outcome.output.hasPrefix(
          "Backed up \(itemCount) of \(totalCount) items from old-phone to \(name)/ (encrypted, "))
      #expect(outcome.output.split(separator: "\n").count { $0.hasPrefix("  + ") } == listedCount)
      let verified = try sandbox.succeed("verify \(name) --password-file .bp")
      #expect(verified.contains("items        \(itemCount) of \(itemCount) can be decrypted"))
      #expect(verified.contains("\(name) is intact."))
    }
  }
}
