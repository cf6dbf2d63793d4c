import ArgumentParser
import Foundation
import Testing

@testable import keyhaul

@Suite("Password lists")
struct PasswordListTests {
  @Test("Patterns match paths, names and identifiers, with stars")
  func patterns() throws {
    let cases: [(pattern: String, path: String, identifier: String?, isMatch: Bool)] = [
      ("*", "a/b", nil, true), ("a/b", "a/b", nil, true), ("a/b", "a/b/", nil, true), ("b", "a/b", nil, true),
      ("a", "a/b", nil, false), ("*.tar", "x/y.tar", nil, true), ("?.tar", "x/y.tar", nil, true),
      ("??.tar", "x/y.tar", nil, false), ("x/*", "x/y/z", nil, true),
      // A matcher that tries every length for every star would take very long.
      ("*a*a*a*b", String(repeating: "a", count: 3000), nil, false),
      ("abCD-*", "p", "ABcd-12", true), ("abcd", "p", "ABcd-12", false), ("", "p", nil, false), ("p*", "p", nil, true),
    ]
    for (pattern, path, identifier, isMatch) in cases {
      #expect(PasswordList.matches(pattern, path: path, identifier: identifier) == isMatch, "\(pattern) \(path)")
    }
  }

  @Test("Each line has a pattern and a source, and an error does not print a line that has no source")
  func lines() throws {
    let entries = try PasswordList.entries(
      of: Array("# of the office\n\nmy backups/* file:/a b\r\n*\tcommand:pass show x\n".utf8), named: "list")
    #expect(
      entries == [
        .init(line: 3, pattern: "my backups/*", source: .file("/a b")),
        .init(line: 4, pattern: "*", source: .command("pass show x")),
      ])
    for text in ["* hunter2", "hunter2", "file:hunter2", "* file:"] {
      let failure = try #require(
        thrownError { _ = try PasswordList.entries(of: Array("\n\(text)\n".utf8), named: "list") })
      #expect(failure.status == .usage && failure.message == "line 2 of list has no source")
      #expect(!"\(failure)".contains("hunter2"))
    }
    let afterByteOrderMark = try PasswordList.entries(of: Array("\u{FEFF}* file:a\r\n".utf8), named: "list")
    #expect(afterByteOrderMark == [.init(line: 1, pattern: "*", source: .file("a"))])
  }

  @Test("A list may have the maximum number of entries, but no more")
  func entryLimit() throws {
    func entries(count: Int) throws -> [PasswordList.Entry] {
      try PasswordList.entries(of: Array(String(repeating: "* file:x\n", count: count).utf8), named: "list")
    }
    let maximum = PasswordList.maximumEntryCount
    #expect(try entries(count: maximum).count == maximum)
    #expect(thrownError { _ = try entries(count: maximum + 1) }?.status == .usage)
  }

  @Test("Passwords are tried in order, and each is derived once for backups with equal salts")
  func order() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("wrong\n".utf8), to: ".wrong")
    try tree.sandbox.devices.run("for n in 1 2 3 4; do cp -R shelf/one shelf/copy$n; done")
    let home = tree.sandbox.home.path
    try tree.sandbox.write(
      Array("\(home)/shelf/* file:\(home)/.wrong\n*copy* command:cat \(home)/.bp\n* file:\(home)/.bp\n".utf8),
      to: "list")
    for jobs in [1, 4] {
      let test = try TestSession(["--format", "ndjson", "--home", home + "/devices"])
      let command = try Verify.parse(
        [
          "\(home)/shelf", "--passwords", "\(home)/list", "--jobs", "\(jobs)", "--format", "ndjson", "--home",
          home + "/devices",
        ])
      let run = try BatchRun(command, in: test.session)
      #expect(try run.run() == .ok)
      let rows = try tree.results(in: test.output)
      #expect(rows.count == 8 && rows.allSatisfy { $0["code"] as? Int == 0 })
      // There are three keybags: in two.zip, in three.tar.gz, and in `one` and its copies. The wrong password is derived
      // for each of them. The command's password is derived only for the copies. The password file is derived for all
      // three keybags, because the pattern of the command does not match `one`.
      #expect(run.worker.passwords.list?.derivationCount == 3 + 1 + 3)
    }
  }

  @Test("If no password is right, the error names the lines that were tried")
  func wrongPasswords() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("wrong\n".utf8), to: ".wrong")
    try tree.sandbox.write(Array("bad\n".utf8), to: ".bad")
    try tree.sandbox.write(Array("* file:.wrong\nnobody file:.bp\none file:.bad\n".utf8), to: "list")
    let rows = try tree.results(of: "inspect shelf/one shelf/deep/plain --passwords list")
    #expect(rows.map { $0["code"] as? Int } == [12, 0])
    let error = try #require(rows[0]["error"] as? [String: Any])
    #expect(error["message"] as? String == "cannot open shelf/one: none of 2 passwords is right")
    #expect(error["why"] as? String == "line 1 of list and line 3 of list")
    #expect(rows[0]["device_name"] as? String == "old-phone")
  }

  @Test("A list that other users can change, or an unreadable source, is rejected before any work")
  func refused() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("* command:touch ran; cat .bp\n".utf8), to: "list")
    for mode in ["620", "602", "666"] {
      let outcome = try tree.sandbox.devices.run("chmod \(mode) list; keyhaul inspect shelf --passwords list")
      #expect(
        outcome.status == 14
          && unwrapped(outcome.errors).contains(
            "can be changed by other users, and contains commands that Keyhaul runs"),
        "\(outcome)")
    }
    #expect(try !tree.sandbox.names().contains("ran"))
    let outcome = try tree.sandbox.devices.run("chmod 644 list; keyhaul verify shelf --passwords list")
    #expect(outcome.status == 0, "\(outcome)")
    try tree.sandbox.write(Array("* file:.bp\nx file:nowhere\n".utf8), to: "list")
    let missing = try tree.sandbox.keyhaul("verify shelf --passwords list")
    #expect(missing.status == 10 && missing.output.isEmpty && missing.errors.contains("line 2 of list"), "\(missing)")
  }
}
