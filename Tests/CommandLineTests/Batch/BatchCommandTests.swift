import Foundation
import Testing

@testable import keyhaul

@Suite("Commands on many backups")
struct BatchCommandTests {
  private func paths(_ rows: [[String: Any]]) -> [String] { rows.compactMap { $0["path"] as? String } }

  @Test("Each backup in a tree of folders has a result, and other entries are counted")
  func folder() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("inspect shelf --format ndjson")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let rows = try tree.rows(outcome.output)
    #expect(paths(rows) == BackupTree.paths)
    #expect(rows.map { $0["encrypted"] as? Bool } == [true, false, true, true])
    #expect(rows.map { $0["device_name"] as? String } == ["new-phone", "new-phone", "old-phone", "old-phone"])
    #expect(rows.allSatisfy { $0["format"] as? String == "backup-answer/1" && $0["state"] as? String == "finished" })
    #expect(
      outcome.errors == """
        4 backups: 4 with exit code 0.
        Skipped in folders: 2 links, 1 other file, 1 special file and 1 hidden name.
        Links that were not followed: shelf/again leads to one and shelf/deep/round leads to ../shelf.

        """)
    // The arguments determine the order, also if files and a folder are mixed.
    let named = try tree.rows(of: "inspect \(BackupTree.paths[3]) shelf/deep shelf/one")
    #expect(paths(named) == [BackupTree.paths[3], BackupTree.paths[0], BackupTree.paths[1], BackupTree.paths[2]])
  }

  @Test("Each result has the code, error and document of the same command on one backup")
  func sameAsSingle() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("head -c 3000 shelf/three.tar.gz > shelf/cut.tar.gz")
    for command in ["inspect --list", "verify", "plan", "plan --to new-phone"] {
      let many = try tree.sandbox.keyhaul("\(command) shelf --password-file .bp --format ndjson")
      #expect(many.status == 3, "\(many.errors)")
      let rows = try tree.rows(many.output)
      #expect(rows.count == 5)
      for row in rows {
        let path = try #require(row["path"] as? String)
        let single = try tree.sandbox.keyhaul("\(command) \(path) --password-file .bp --json")
        #expect((row["code"] as? Int).map { Int32($0) } == single.status, "\(command) \(path): \(single.errors)")
        let exitMessage = try single.errors.split(separator: "\n").last.map { try tree.sandbox.object(String($0)) }
        let error = row["error"] as? [String: Any]
        if exitMessage?["message_type"] as? String == "exit_error" {
          for member in ["message", "why", "try"] {
            #expect(error?[member] as? String == exitMessage?[member] as? String, "\(command) \(path)")
          }
        } else {
          #expect(error == nil, "\(command) \(path)")
        }
        let document = row["document"] as? [String: Any]
        guard !single.output.isEmpty else {
          #expect(document == nil)
          continue
        }
        // Measured durations and dates differ from run to run.
        func comparable(_ document: [String: Any]?) throws -> Data {
          var document = try #require(document)
          if command.hasPrefix("plan") { for member in ["made", "checksum"] { document[member] = nil } }
          if var keybag = document["keybag"] as? [String: Any] {
            keybag["unlock_seconds"] = nil
            keybag["unlocked_in_seconds"] = nil
            document["keybag"] = keybag
          }
          return try JSONSerialization.data(withJSONObject: document, options: .sortedKeys)
        }
        #expect(try comparable(document) == comparable(try tree.sandbox.object(single.output)), "\(command) \(path)")
      }
    }
  }

  @Test(
    "The output for many backups is the same with any number of jobs", arguments: ["text", "ndjson", "csv", "json"])
  func jobs(format: String) throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run(
      "for n in 1 2 3 4 5 6; do cp -R shelf/one shelf/copy$n; done; head -c 900 shelf/three.tar.gz > shelf/x.tar")
    let outcomes = try [1, 2, 4].map {
      try tree.sandbox.keyhaul("inspect shelf --list --password-file .bp --format \(format) --jobs \($0)")
    }
    #expect(outcomes[0].status == 3 && outcomes[0].output.count > 1000)
    #expect(outcomes[1] == outcomes[0] && outcomes[2] == outcomes[0])
  }

  @Test("The text table shows errors below their rows, and a summary at the end")
  func table() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("echo no > 'shelf/a\u{1B}[31m.tar'")
    let outcome = try tree.sandbox.keyhaul("verify shelf --password-file .bp")
    #expect(outcome.status == 3)
    let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    #expect(lines[0] == "CODE  RESULT             DEVICE         MADE        PASSWORD  SEAL    BACKUP")
    #expect(
      lines[1].hasPrefix("  14  refused            -              -           -         -       shelf/a\\u{1B}[31m")
    )
    #expect(lines[2].hasPrefix("      error: ") && lines[3].hasPrefix("        why: "))
    #expect(!outcome.output.contains("\u{1B}"))
    #expect(outcome.output.contains("\n   0  whole              old-phone "))
    #expect(
      lines.suffix(6) == [
        "", "5 backups: 3 with exit code 0 and 2 with 14 (refused).",
        "Skipped in folders: 2 links, 1 other file, 1 special file and 1 hidden name.",
        "Links that were not followed: shelf/again leads to one and shelf/deep/round leads to ../shelf.",
        "One of them in full: keyhaul verify shelf/deep/er/two.zip", "",
      ])
  }

  @Test(
    "No format of many backups sends a name's control characters to a terminal",
    arguments: ["verify", "inspect", "plan", "item find"], ["text", "csv", "json", "ndjson"])
  func namesOnTerminal(command: String, format: String) throws {
    guard command != "item find" || format != "ndjson" else { return }
    let tree = try BackupTree()
    try tree.sandbox.devices.run("mkdir shelf/new; cp shelf/three.tar.gz \"$(printf 'shelf/new/a\\033[31mb.tar.gz')\"")
    let arguments = command.split(separator: " ").map(String.init) + ["shelf/new", "--password-file", ".bp"]
    let format = command == "item find" && format == "text" ? [] : ["--format", format]
    let outcome = try tree.sandbox.devices.runOnTerminal(arguments + format)
    let shown = unwrapped(outcome.terminal)
    #expect(shown.contains("31mb.tar.gz") && !outcome.terminal.contains("\u{1B}[31mb"), "\(outcome)")
  }

  @Test("--jobs accepts 1 to 256", arguments: [("1", 0), ("256", 0), ("0", 64), ("257", 64), ("-1", 64), ("x", 64)])
  func jobLimits(count: String, status: Int32) throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("inspect shelf/one shelf/three.tar.gz --jobs=\(count)")
    #expect(outcome.status == status, "\(outcome)")
  }

  @Test("The CSV table has the command's own values, and no cell is a formula")
  func spreadsheet() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("mkdir 'x'; cp shelf/three.tar.gz './=1+1.tar.gz'; cp shelf/three.tar.gz 'x/a,b.tgz'")
    let outcome = try tree.sandbox.keyhaul("plan '=1+1.tar.gz' x --to new-phone --password-file .bp --format csv")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = outcome.output.components(separatedBy: "\r\n")
    #expect(lines.count == 4 && lines[3].isEmpty)
    #expect(lines[0].hasPrefix("path,code,id,error,"))
    #expect(lines[0].hasSuffix(",total,arrives,stays_behind,unreadable,removed"))
    #expect(lines[1].hasPrefix("'=1+1.tar.gz,0,ok,"))
    #expect(lines[2].hasPrefix("\"x/a,b.tgz\",0,ok,"))
    let counts = try #require(try tree.sandbox.plan("shelf/one")["summary"] as? [String: Any])
    let numbers = ["total", "migrates", "stays_behind", "unreadable", "removed"].map { "\(counts[$0] ?? "?")" }
    #expect(lines[1].hasSuffix("," + numbers.joined(separator: ",")), "\(lines[1])")
  }

  /// The fields of a line of CSV that has no quotation marks in its fields.
  private static func fields(_ line: String) -> [String] {
    line.matches(of: /(?:^|,)(?:"([^"]*)"|([^",]*))/).map { String($0.1 ?? $0.2 ?? "") }
  }

  @Test("The table and CSV of inspect state the device, its system, the size and the number of items")
  func inspectColumns() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("inspect shelf --password-file .bp --format csv")
    let lines = outcome.output.components(separatedBy: "\r\n").map(Self.fields)
    let names = lines[0]
    func cell(_ name: String, _ row: Int) throws -> String { lines[row][try #require(names.firstIndex(of: name))] }
    for row in [1, 3, 4] {
      let document = try tree.sandbox.object(
        tree.sandbox.keyhaul("inspect \(cell("path", row)) --password-file .bp --json").output)
      let device = try #require(document["device"] as? [String: Any])
      for (column, member) in [
        ("product_type", "product_type"), ("model", "model_name"), ("ios", "product_version"),
        ("build", "build_version"), ("serial_number", "serial_number"),
      ] {
        #expect(try cell(column, row) == device[member] as? String, "\(column)")
      }
      #expect(try cell("bytes", row) == "\(document["bytes"] ?? "")")
      #expect(try cell("result", row) == "counted" && cell("reason", row).isEmpty && cell("encrypted", row) == "true")
      #expect(try cell("keyhaul", row).hasPrefix(ProgramVersion.signature) && !cell("made", row).isEmpty)
      #expect(try Int(cell("items", row)).map { $0 > 0 } == true)
    }
    #expect(try cell("code", 2) == "14" && cell("result", 2) == "refused" && !cell("reason", 2).isEmpty)
    let table = try tree.sandbox.keyhaul("inspect shelf --password-file .bp").output.split(separator: "\n")
    let titles = ["CODE", "RESULT", "MODEL", "IOS", "SERIAL", "ITEMS", "BYTES", "DEVICE", "MADE", "PASSWORD", "SEAL"]
    #expect(table[0].split(separator: " ") == (titles + ["BACKUP"]).map { $0[...] }, "\(table)")
  }

  @Test("The reason of a backup that changed after it was sealed is the change, not the items that stay behind")
  func changedBackup() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("rm -r shelf/deep shelf/three.tar.gz; printf x >> shelf/one/Manifest.db")
    let row = try #require(
      try tree.rows(of: "plan shelf --password-file .bp").first { $0["path"] as? String == "shelf/one" })
    #expect(row["code"] as? Int == 3, "\(row)")
    let reason = try #require(row["reason"] as? String)
    #expect(reason.contains("Manifest.db") && !reason.contains("not move"), "\(reason)")
  }

  @Test("Plan --fields works for one backup, with and without a target")
  func planFields() throws {
    let tree = try BackupTree()
    for target in ["", "--to new-phone"] {
      let fields = target.isEmpty ? "index,service,outcomes" : "index,service,outcome"
      let outcome = try tree.sandbox.keyhaul("plan shelf/one \(target) -p .bp --fields \(fields)")
      #expect(outcome.status == 0, "\(outcome)")
      let rows = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]]
      #expect(rows?.isEmpty == false)
      #expect(rows?.allSatisfy { $0.keys.sorted() == fields.split(separator: ",").map(String.init).sorted() } == true)
    }
    let unknown = try tree.sandbox.keyhaul("plan shelf/one -p .bp --fields outcome")
    #expect(unknown.status == 64 && unknown.errors.contains("outcomes"), "\(unknown)")
  }

  @Test("A folder is searched for packed backups with any of the six file name extensions")
  func extensions() throws {
    let tree = try BackupTree()
    let extensions = ["tar", "tar.gz", "tgz", "tar.zst", "tzst", "zip"]
    for pathExtension in extensions {
      try tree.sandbox.succeed("convert shelf/one -o packed.\(pathExtension) -q")
      try tree.sandbox.devices.run("mkdir -p forms; mv packed.\(pathExtension) forms/")
    }
    let rows = try tree.rows(of: "inspect forms")
    #expect(rows.compactMap { $0["path"] as? String }.sorted() == extensions.map { "forms/packed.\($0)" }.sorted())
    #expect(rows.allSatisfy { $0["code"] as? Int == 0 }, "\(rows)")
  }

  @Test("Paths are read from a file or stream, separated by lines or NUL, and a missing path does not stop the run")
  func list() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("\(BackupTree.paths[3])\n\nnowhere.tar\nshelf/deep\n".utf8), to: "list")
    let expected = [BackupTree.paths[3], "nowhere.tar", BackupTree.paths[0], BackupTree.paths[1]]
    let lines = try tree.sandbox.keyhaul("inspect --paths-from list --format ndjson")
    #expect(lines.status == 3)
    #expect(paths(try tree.rows(lines.output)) == expected)
    #expect(try tree.rows(lines.output).map { $0["code"] as? Int } == [0, 10, 0, 0])
    let nul = try tree.sandbox.devices.run(
      "tr -s '\\n' '\\0' < list | keyhaul inspect --paths-from - --format ndjson")
    #expect(nul.output == lines.output && nul.status == 3)
    let marked = try tree.sandbox.devices.run(
      "(printf '\\357\\273\\277'; cat list) | keyhaul inspect --paths-from - --format ndjson")
    #expect(marked.output == lines.output, "a byte order mark is not part of the first path")
    // Without an end of the last line, through a pipe with a name.
    let pipe = try tree.sandbox.devices.run(
      "mkfifo p; (printf shelf/one > p) & keyhaul inspect --paths-from p --format ndjson")
    #expect(paths(try tree.rows(pipe.output)) == ["shelf/one"])
    let empty = try tree.sandbox.devices.run(": | keyhaul verify --paths-from -")
    #expect(empty.status == 4 && empty.errors.hasPrefix("error: no backup was given\n"))
    let bytes = try tree.sandbox.devices.run(
      "printf 'a\\377b\\nshelf/one\\n' | keyhaul inspect --paths-from - --format csv")
    #expect(bytes.status == 3 && bytes.output.contains(",64,usage,a path in the list cannot be read,"))
    #expect(bytes.output.contains("\r\nshelf/one,0,ok,"))
  }

  @Test("Invalid command lines are rejected without a result, and arguments that are not files are not repeated")
  func refused() throws {
    let tree = try BackupTree()
    for (line, message) in [
      ("verify shelf/one hunter2", "an argument of keyhaul verify is not a file"),
      ("inspect shelf --format html", "shelf/"),
      (
        "inspect shelf/one shelf/deep --format html",
        "works with only one "
          + "backup"
      ),
      ("inspect shelf/one -", "- cannot be combined with other backups"),
      ("verify shelf --jobs 0", "--jobs cannot be \"0\""),
      ("verify shelf --jobs 257", "--jobs cannot be \"257\""), ("inspect", "keyhaul inspect needs a backup"),
      ("plan", "keyhaul plan needs a backup or a device"),
      (
        "inspect shelf --device-key-fd 0",
        "for many backups, the device key "
          + "must come from a file"
      ),
      ("inspect shelf --passwords x --password-file .bp", "cannot be used together"),
      ("inspect shelf --resume shelf/one/Manifest.plist", "is the input"),
      ("plan shelf --existing merge", "--existing needs --to"),
    ] {
      let outcome = try tree.sandbox.keyhaul(line)
      #expect(outcome.status == 64 && outcome.output.isEmpty, "\(line): \(outcome)")
      #expect(outcome.errors.contains(message) && !outcome.errors.contains("hunter2"), "\(line): \(outcome.errors)")
    }
  }

  @Test("Ten broken backups are each reported with their own error")
  func broken() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run(
      """
      mkdir ten; cd ten; cp -R ../shelf/one a; cp -R ../shelf/one b; cp -R ../shelf/one c; cp -R ../shelf/one d
      cp -R ../shelf/deep/plain e; cp -R ../shelf/one f; echo x > a/Manifest.plist; rm b/Manifest.db
      echo x > c/Manifest.db; rm d/Manifest.plist; echo x > e/Status.plist; rm -r f/[0-9a-f][0-9a-f]
      head -c 5000 ../shelf/three.tar.gz > g.tar.gz; : > h.zip; echo text > i.tar; tar cf j.tar ../.bp 2>&1
      """)
    try tree.sandbox.setIterations(4_000_000_000, in: "DPIC", of: "ten/f")
    let rows = try tree.rows(of: "verify ten --password-file .bp")
    let names = ["a", "b", "c", "d", "e", "f", "g.tar.gz", "h.zip", "i.tar", "j.tar"]
    #expect(paths(rows) == names.map { "ten/\($0)" })
    var messages: Set<String> = []
    for row in rows {
      let path = try #require(row["path"] as? String)
      let single = try tree.sandbox.keyhaul("verify \(path) --password-file .bp --json")
      #expect((row["code"] as? Int).map { Int32($0) } == single.status && single.status != 0, "\(path)")
      let exitMessage = try tree.sandbox.object(String(try #require(single.errors.split(separator: "\n").last)))
      if exitMessage["message_type"] as? String == "exit_error" {
        let error = try #require(row["error"] as? [String: Any], "\(path)")
        #expect(error["message"] as? String == exitMessage["message"] as? String)
        #expect(error["why"] as? String == exitMessage["why"] as? String)
        messages.insert("\(exitMessage["message"] ?? "") \(exitMessage["why"] ?? "")")
      }
    }
    #expect(messages.count >= 8, "\(messages)")
    #expect(try tree.sandbox.keyhaul("verify ten --password-file .bp -q").status == 3)
  }
}
