import Foundation
import Testing

@testable import keyhaul

@Suite("The password of a folder of backups")
struct FolderPasswordTests {
  private func rows(_ shelf: Shelf, _ line: String) throws -> [[String: Any]] { try shelf.rows(of: line) }

  @Test(
    "On a terminal it is asked for once, and tried on every backup", arguments: ["verify", "plan", "inspect --list"])
  func once(verb: String) throws {
    let shelf = try Shelf()
    let outcome = try shelf.world.keyhaul("\(verb) shelf", typed: [MoveWorld.password])
    #expect(outcome.terminal.components(separatedBy: "Password of the backups in shelf: ").count == 2, "\(outcome)")
    #expect(outcome.status == 0 && outcome.output.contains("4 backups: 4 with exit code 0.\n"), "\(outcome)")
  }

  @Test("A wrong one is wrong for each backup; an empty line is none")
  func wrong() throws {
    let shelf = try Shelf()
    let wrong = try shelf.world.keyhaul("verify shelf", typed: ["not it"])
    #expect(wrong.status == 3 && wrong.output.contains("  12  wrong-password"), "\(wrong)")
    #expect(wrong.output.contains("1 with exit code 0 and 3 with 12 (wrong-password)."), "\(wrong)")
    let empty = try shelf.world.keyhaul("verify shelf", typed: [""])
    #expect(empty.output.contains("1 with exit code 0 and 3 with 12 (needs-password)."), "\(empty)")
  }

  @Test("Without a terminal each row says that a password is needed, and one line says what to do")
  func missing() throws {
    let shelf = try Shelf()
    let outcome = try shelf.world.keyhaul("plan shelf")
    #expect(outcome.status == 3 && !outcome.output.contains("wrong-password"), "\(outcome)")
    #expect(outcome.output.contains("  12  needs-password") && !outcome.output.contains("terminal"), "\(outcome)")
    #expect(
      outcome.output.contains(
        "\n3 backups need a password: add --password-file FILE, or --passwords FILE for different passwords.\n"))
    let row = try #require(try rows(shelf, "plan shelf").first)
    #expect(row["code"] as? Int == 12 && row["id"] as? String == "needs-password")
    let error = try #require(row["error"] as? [String: Any])
    #expect(error["why"] as? String == "no password was given for it")
  }

  @Test("Nobody is asked if no backup of the folder has a password")
  func unencrypted() throws {
    let shelf = try Shelf()
    let outcome = try shelf.world.keyhaul("verify shelf/deep/plain shelf/deep/plain", typed: [])
    #expect(outcome.status == 0 && !outcome.terminal.contains("Password"), "\(outcome)")
  }

  @Test("One backup without a password for it ends with its own word")
  func alone() throws {
    let shelf = try Shelf()
    let outcome = try shelf.world.keyhaul("verify shelf/one --json")
    #expect(outcome.status == 12)
    let last = try #require(outcome.errors.split(separator: "\n").last)
    #expect(try shelf.world.object(String(last))["id"] as? String == "needs-password")
    #expect(flat(try shelf.world.succeed("explain needs-password")).contains("none was given"))
  }
}
