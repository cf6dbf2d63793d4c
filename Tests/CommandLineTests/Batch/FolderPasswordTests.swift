import Foundation
import Testing

@testable import keyhaul

@Suite("One password for a folder of backups")
struct FolderPasswordTests {
  @Test(
    "On a terminal, Keyhaul asks once, and tries the password on every backup",
    arguments: ["verify", "plan", "inspect --list"])
  func once(command: String) throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("\(command) shelf", typed: [PhoneSandbox.password])
    let prompts = outcome.terminal.ranges(of: "Password of the backups in shelf: ")
    #expect(prompts.count == 1, "\(outcome)")
    #expect(outcome.status == 0 && outcome.output.contains("4 backups: 4 with exit code 0.\n"), "\(outcome)")
  }

  @Test("A wrong password is reported for each backup, and an empty line is not a password")
  func wrongPassword() throws {
    let tree = try BackupTree()
    let wrongPassword = try tree.sandbox.keyhaul("verify shelf", typed: ["not it"])
    #expect(wrongPassword.status == 3 && wrongPassword.output.contains("  12  wrong-password"), "\(wrongPassword)")
    #expect(wrongPassword.output.contains("1 with exit code 0 and 3 with 12 (wrong-password)."), "\(wrongPassword)")
    let emptyLine = try tree.sandbox.keyhaul("verify shelf", typed: [""])
    #expect(emptyLine.output.contains("1 with exit code 0 and 3 with 12 (needs-password)."), "\(emptyLine)")
  }

  @Test("Without a terminal, each result says that a password is needed, and one line gives advice")
  func missing() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("plan shelf")
    #expect(outcome.status == 3 && !outcome.output.contains("wrong-password"), "\(outcome)")
    #expect(outcome.output.contains("  12  needs-password") && !outcome.output.contains("terminal"), "\(outcome)")
    #expect(
      outcome.output.contains(
        "\n3 backups need a password: add --password-file FILE, or --passwords FILE for different passwords.\n"))
    let row = try #require(try tree.results(of: "plan shelf").first)
    #expect(row["code"] as? Int == 12 && row["id"] as? String == "needs-password")
    let error = try #require(row["error"] as? [String: Any])
    #expect(error["why"] as? String == "no password was given for it")
  }

  @Test("Keyhaul does not ask if none of several backups has a password")
  func unencrypted() throws {
    let tree = try BackupTree()
    // The same backup is named twice, because a single backup is not a batch.
    let outcome = try tree.sandbox.keyhaul("verify shelf/deep/plain shelf/deep/plain", typed: [])
    #expect(outcome.status == 0 && !outcome.terminal.contains("Password"), "\(outcome)")
  }

  @Test("The result of a single backup is needs-password if its password is missing")
  func single() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("verify shelf/one --json")
    #expect(outcome.status == 12)
    let lastMessage = try #require(outcome.errors.split(separator: "\n").last)
    #expect(try tree.sandbox.object(String(lastMessage))["id"] as? String == "needs-password")
    #expect(unwrapped(try tree.sandbox.succeed("explain needs-password")).contains("none was given"))
  }
}
