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
    let rows = try tree.results(in: outcome.output)
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
    let reorderedRows = try tree.results(of: "inspect \(BackupTree.paths[3]) shelf/deep shelf/one")
    #expect(paths(reorderedRows) == [3, 0, 1, 2].map { BackupTree.paths[$0] })
  }

  @Test("Each result has the code, error and document of the same command on one backup")
  func sameAsSingle() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("head -c 3000 shelf/three.tar.gz > shelf/cut.tar.gz")
    for command in ["inspect --list", "verify", "plan", "plan --to new-phone"] {
      let batch = try tree.sandbox.keyhaul("\(command) shelf --password-file .bp --format ndjson")
      #expect(batch.status == 3, "\(batch.errors)")
      let rows = try tree.results(in: batch.output)
      #expect(rows.count == 5)
      for row in rows {
        let path = try #require(row["path"] as? String)
        let single = try tree.sandbox.keyhaul("\(command) \(path) --password-file .bp --json")
        try check(row, against: single, of: command, in: tree)
      }
    }
  }

  /// Checks that a result in a batch has the exit code, error and document of the command on one backup.
  private func check(
    _ row: [String: Any], against single: BuiltProgram.Outcome, of command: String, in tree: BackupTree
  ) throws {
    let description: Comment = "\(command) \(row["path"] ?? ""): \(single.errors)"
    #expect((row["code"] as? Int).map { Int32($0) } == single.status, description)
    let lastMessage = try single.errors.split(separator: "\n").last.map { try tree.sandbox.object(String($0)) }
    let error = row["error"] as? [String: Any]
    if let lastMessage, lastMessage["message_type"] as? String == "exit_error" {
      for member in ["message", "why", "try"] {
        #expect(error?[member] as? String == lastMessage[member] as? String, description)
      }
    } else {
      #expect(error == nil, description)
    }
    if single.output.isEmpty {
      #expect(row["document"] as? [String: Any] == nil, description)
    } else {
      let document = try #require(row["document"] as? [String: Any], description)
      let expectedDocument = try tree.sandbox.object(single.output)
      #expect(try Self.withoutTimes(document) == Self.withoutTimes(expectedDocument), description)
    }
  }

  /// Returns a document without measured durations, dates and the checksum over them, which differ from run to run.
  private static func withoutTimes(_ document: [String: Any]) throws -> Data {
    var document = document
    if let format = document["format"] as? String, format.hasPrefix("migration-") {
      for member in ["made", "checksum"] { document[member] = nil }
    }
    if var keybag = document["keybag"] as? [String: Any] {
      keybag["unlock_seconds"] = nil
      keybag["unlocked_in_seconds"] = nil
      document["keybag"] = keybag
    }
    return try JSONSerialization.data(withJSONObject: document, options: .sortedKeys)
  }

  @Test(
    "The output for many backups is the same with any number of jobs", arguments: ["text", "ndjson", "csv", "json"])
  func jobs(format: String) throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run(
      "for n in 1 2 3 4 5 6; do cp -R shelf/one shelf/copy$n; done; head -c 900 shelf/three.tar.gz > shelf/x.tar")
    func outcome(jobs: Int) throws -> BuiltProgram.Outcome {
      try tree.sandbox.keyhaul("inspect shelf --list --password-file .bp --format \(format) --jobs \(jobs)")
    }
    let withOneJob = try outcome(jobs: 1)
    #expect(withOneJob.status == 3 && withOneJob.output.count > 1000)
    #expect(try outcome(jobs: 2) == withOneJob)
    #expect(try outcome(jobs: 4) == withOneJob)
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
    // `item find` has a table in place of text, and no NDJSON.
    let isItemFind = command == "item find"
    guard !isItemFind || format != "ndjson" else { return }
    let tree = try BackupTree()
    try tree.sandbox.devices.run("mkdir shelf/new; cp shelf/three.tar.gz \"$(printf 'shelf/new/a\\033[31mb.tar.gz')\"")
    let formatFlag = isItemFind && format == "text" ? "" : "--format \(format)"
    let line = "\(command) shelf/new --password-file .bp \(formatFlag)"
    let outcome = try tree.sandbox.devices.runOnTerminal(line.split(separator: " ").map(String.init))
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
    let summary = try #require(try tree.sandbox.plan("shelf/one")["summary"] as? [String: Any])
    let counts = ["total", "migrates", "stays_behind", "unreadable", "removed"].map { "\(summary[$0] ?? "?")" }
    #expect(lines[1].hasSuffix("," + counts.joined(separator: ",")), "\(lines[1])")
  }

  /// Returns the fields of a line of CSV without quotation marks.
  private static func fields(of line: String) -> [String] {
    line.matches(of: /(?:^|,)(?:"([^"]*)"|([^",]*))/).map { String($0.1 ?? $0.2 ?? "") }
  }

  @Test("The table and CSV of inspect state the device, its system, the size and the number of items")
  func inspectColumns() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("inspect shelf --password-file .bp --format csv")
    let rows = outcome.output.components(separatedBy: "\r\n").map(Self.fields)
    func row(_ index: Int) -> [String: String] {
      Dictionary(zip(rows[0], rows[index]), uniquingKeysWith: { first, _ in first })
    }
    let deviceColumns: [(column: String, member: String)] = [
      ("product_type", "product_type"), ("model", "model_name"), ("ios", "product_version"),
      ("build", "build_version"), ("serial_number", "serial_number"),
    ]
    for index in [1, 3, 4] {
      let cells = row(index)
      let path = try #require(cells["path"])
      let document = try tree.sandbox.object(
        tree.sandbox.keyhaul("inspect \(path) --password-file .bp --json").output)
      let device = try #require(document["device"] as? [String: Any])
      for (column, member) in deviceColumns { #expect(cells[column] == device[member] as? String, "\(column)") }
      #expect(cells["bytes"] == "\(document["bytes"] ?? "")")
      #expect(cells["result"] == "counted" && cells["reason"] == "" && cells["encrypted"] == "true")
      #expect(try #require(cells["keyhaul"]).hasPrefix(ProgramVersion.signature) && cells["made"]?.isEmpty == false)
      #expect(try #require(cells["items"].flatMap { Int($0) }) > 0)
    }
    // The second backup has no password, and is refused because one was given.
    let refused = row(2)
    #expect(refused["code"] == "14" && refused["result"] == "refused" && refused["reason"]?.isEmpty == false)
    let table = try tree.sandbox.keyhaul("inspect shelf --password-file .bp").output.split(separator: "\n")
    let titles = ["CODE", "RESULT", "MODEL", "IOS", "SERIAL", "ITEMS", "BYTES", "DEVICE", "MADE", "PASSWORD", "SEAL"]
    #expect(table[0].split(separator: " ") == (titles + ["BACKUP"]).map { $0[...] }, "\(table)")
  }

  @Test("For a backup that changed after it was sealed, the reason names the changed file, not items that stay behind")
  func changedBackup() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("rm -r shelf/deep shelf/three.tar.gz; printf x >> shelf/one/Manifest.db")
    let row = try #require(
      try tree.results(of: "plan shelf --password-file .bp").first { $0["path"] as? String == "shelf/one" })
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
    // Without a target, there is one outcome for each of two devices, in the field "outcomes".
    let unknown = try tree.sandbox.keyhaul("plan shelf/one -p .bp --fields outcome")
    #expect(unknown.status == 64 && unknown.errors.contains("outcomes"), "\(unknown)")
  }

  @Test("A folder is searched for packed backups with any of the six file name extensions")
  func extensions() throws {
    let tree = try BackupTree()
    let extensions = ["tar", "tar.gz", "tgz", "tar.zst", "tzst", "zip"]
    try tree.sandbox.devices.run("mkdir packed")
    for pathExtension in extensions { try tree.sandbox.succeed("convert shelf/one -o packed/b.\(pathExtension) -q") }
    let rows = try tree.results(of: "inspect packed")
    #expect(paths(rows).sorted() == extensions.map { "packed/b.\($0)" }.sorted())
    #expect(rows.allSatisfy { $0["code"] as? Int == 0 }, "\(rows)")
  }

  @Test("Paths are read from a file or stream, separated by lines or NUL, and a missing path does not stop the run")
  func list() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("\(BackupTree.paths[3])\n\nnowhere.tar\nshelf/deep\n".utf8), to: "list")
    let expectedPaths = [BackupTree.paths[3], "nowhere.tar", BackupTree.paths[0], BackupTree.paths[1]]
    let byLine = try tree.sandbox.keyhaul("inspect --paths-from list --format ndjson")
    #expect(byLine.status == 3)
    #expect(paths(try tree.results(in: byLine.output)) == expectedPaths)
    #expect(try tree.results(in: byLine.output).map { $0["code"] as? Int } == [0, 10, 0, 0])
    let byNUL = try tree.sandbox.devices.run(
      "tr -s '\\n' '\\0' < list | keyhaul inspect --paths-from - --format ndjson")
    #expect(byNUL.output == byLine.output && byNUL.status == 3)
    let afterByteOrderMark = try tree.sandbox.devices.run(
      "(printf '\\357\\273\\277'; cat list) | keyhaul inspect --paths-from - --format ndjson")
    #expect(afterByteOrderMark.output == byLine.output, "a byte order mark is not part of the first path")
  }

  @Test("A list of paths may come from a named pipe, and may lack the last line end, but may not be empty")
  func unusualLists() throws {
    let tree = try BackupTree()
    let fromNamedPipe = try tree.sandbox.devices.run(
      "mkfifo p; (printf shelf/one > p) & keyhaul inspect --paths-from p --format ndjson")
    #expect(paths(try tree.results(in: fromNamedPipe.output)) == ["shelf/one"])
    let empty = try tree.sandbox.devices.run(": | keyhaul verify --paths-from -")
    #expect(empty.status == 4 && empty.errors.hasPrefix("error: no backup was given\n"))
    let notUTF8 = try tree.sandbox.devices.run(
      "printf 'a\\377b\\nshelf/one\\n' | keyhaul inspect --paths-from - --format csv")
    #expect(notUTF8.status == 3 && notUTF8.output.contains(",64,usage,a path in the list cannot be read,"))
    #expect(notUTF8.output.contains("\r\nshelf/one,0,ok,"))
  }

  @Test("Invalid command lines are rejected without a result, and arguments that are not files are not repeated")
  func refused() throws {
    let tree = try BackupTree()
    let cases: [(line: String, message: String)] = [
      ("verify shelf/one hunter2", "an argument of keyhaul verify is not a file"),
      // The message lists the backups in the folder.
      ("inspect shelf --format html", "shelf/"),
      ("inspect shelf/one shelf/deep --format html", "works with only one backup"),
      ("inspect shelf/one -", "- cannot be combined with other backups"),
      ("verify shelf --jobs 0", "--jobs cannot be \"0\""),
      ("verify shelf --jobs 257", "--jobs cannot be \"257\""), ("inspect", "keyhaul inspect needs a backup"),
      ("plan", "keyhaul plan needs a backup or a device"),
      ("inspect shelf --device-key-fd 0", "for many backups, the device key must come from a file"),
      ("inspect shelf --passwords x --password-file .bp", "cannot be used together"),
      ("inspect shelf --resume shelf/one/Manifest.plist", "is the input"),
      ("plan shelf --existing merge", "--existing needs --to"),
    ]
    for (line, message) in cases {
      let outcome = try tree.sandbox.keyhaul(line)
      #expect(outcome.status == 64 && outcome.output.isEmpty, "\(line): \(outcome)")
      #expect(outcome.errors.contains(message) && !outcome.errors.contains("hunter2"), "\(line): \(outcome.errors)")
    }
  }

  @Test("Ten broken backups are each reported with their own error")
  func brokenBackups() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run(
      """
      mkdir ten; cd ten
      cp -R ../shelf/one a; echo x > a/Manifest.plist
      cp -R ../shelf/one b; rm b/Manifest.db
      cp -R ../shelf/one c; echo x > c/Manifest.db
      cp -R ../shelf/one d; rm d/Manifest.plist
      cp -R ../shelf/deep/plain e; echo x > e/Status.plist
      cp -R ../shelf/one f; rm -r f/[0-9a-f][0-9a-f]
      head -c 5000 ../shelf/three.tar.gz > g.tar.gz
      : > h.zip
      echo text > i.tar
      tar cf j.tar ../.bp 2>&1
      """)
    // This count is over the limit.
    try tree.sandbox.setIterations(4_000_000_000, in: "DPIC", of: "ten/f")
    let rows = try tree.results(of: "verify ten --password-file .bp")
    let names = ["a", "b", "c", "d", "e", "f", "g.tar.gz", "h.zip", "i.tar", "j.tar"]
    #expect(paths(rows) == names.map { "ten/\($0)" })
    var messages: Set<String> = []
    for row in rows {
      let path = try #require(row["path"] as? String)
      let single = try tree.sandbox.keyhaul("verify \(path) --password-file .bp --json")
      #expect((row["code"] as? Int).map { Int32($0) } == single.status && single.status != 0, "\(path)")
      let lastMessage = try tree.sandbox.object(String(try #require(single.errors.split(separator: "\n").last)))
      if lastMessage["message_type"] as? String == "exit_error" {
        let error = try #require(row["error"] as? [String: Any], "\(path)")
        #expect(error["message"] as? String == lastMessage["message"] as? String)
        #expect(error["why"] as? String == lastMessage["why"] as? String)
        messages.insert("\(lastMessage["message"] ?? "") \(lastMessage["why"] ?? "")")
      }
    }
    // Some of the ten errors may have the same text.
    #expect(messages.count >= 8, "\(messages)")
    #expect(try tree.sandbox.keyhaul("verify ten --password-file .bp -q").status == 3)
  }
}
