import Foundation
import Testing

@testable import keyhaul

@Suite("Searching a folder of backups")
struct FolderSearchTests {
  @Test("Item find searches every backup of a folder, and names the backups with matching items")
  func text() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("item find shelf --service chat.example --password-file .bp")
    #expect(outcome.status == 3, "\(outcome)")
    let headings = outcome.output.split(separator: "\n").filter { $0.hasPrefix("shelf/") }
    #expect(headings == ["shelf/one: 2 items", "shelf/three.tar.gz: 2 items"], "\(outcome)")
    // `shelf/deep/plain` is not encrypted, and a password for an unencrypted backup is an error.
    #expect(outcome.errors.contains("2 of 4 backups have matching items; 1 could not be searched"), "\(outcome)")
    #expect(outcome.errors.contains("warning: shelf/deep/plain: "), "\(outcome)")
  }

  @Test("In JSON and CSV, each result names its backup, and equals a search of only that backup")
  func structuredOutput() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("rm -r shelf/deep/plain; echo '* file:.bp' > list; chmod 600 list")
    let line = "item find shelf --service chat.example --passwords list"
    let list = try tree.sandbox.object(tree.sandbox.keyhaul("\(line) --json").output)
    #expect(list["format"] as? String == "backup-list/1" && list["verb"] as? String == "item find")
    let backups = try #require(list["backups"] as? [[String: Any]])
    #expect(backups.map { $0["code"] as? Int } == [4, 0, 0])
    #expect(backups.map { $0["result"] as? String } == ["no-match", "ok", "ok"])
    for backup in backups {
      let path = try #require(backup["path"] as? String)
      let single = try tree.sandbox.keyhaul("item find \(path) --service chat.example -p .bp --json")
      #expect(single.status == Int32(try #require(backup["code"] as? Int)))
      let document = try #require(backup["document"] as? [String: Any])
      #expect(try document as NSDictionary == tree.sandbox.object(single.output) as NSDictionary, "\(path)")
    }
    let table = try tree.sandbox.keyhaul("\(line) --format csv")
    // The header, two items in each of two backups, and nothing after the last line end.
    let lines = table.output.components(separatedBy: "\r\n")
    #expect(table.status == 0 && lines.count == 6 && lines[0].hasPrefix("backup,kind,service,"), "\(table)")
    #expect(lines[1].hasPrefix("shelf/one,generic-password,chat.example,"), "\(table)")
    let saved = try tree.sandbox.keyhaul("\(line) --format csv -o found.csv")
    #expect(saved.status == 0 && saved.output.isEmpty)
    #expect(try tree.sandbox.devices.run("cat found.csv").output == table.output)
    #expect(try tree.sandbox.devices.run("stat -c %a found.csv").output == "600\n")
  }

  @Test(
    "In a folder, --reveal and --fields exit with 64, a search without a match with 4, one without a password with 3")
  func exitCodes() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("rm -r shelf/deep/plain")
    for flag in ["--reveal --json", "--fields kind"] {
      let outcome = try tree.sandbox.keyhaul("item find shelf --service chat.example -p .bp \(flag)")
      #expect(outcome.status == 64 && outcome.errors.contains("works with only one backup"), "\(outcome)")
    }
    #expect(try tree.sandbox.keyhaul("item find shelf --service nothing.example -p .bp").status == 4)
    let withoutPassword = try tree.sandbox.keyhaul("item find shelf --service chat.example")
    #expect(
      withoutPassword.status == 3 && withoutPassword.errors.contains("3 could not be searched"), "\(withoutPassword)")
  }
}
