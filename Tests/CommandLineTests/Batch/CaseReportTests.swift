import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports
@testable import keyhaul

@Suite("Case reports")
struct CaseReportTests {
  private static let names = "--case 'Case <7>' --examiner 'R. Doe'"

  @Test("An examination for a case report changes no file, and the report says so")
  func unchanged() throws {
    let tree = try BackupTree()
    try tree.sandbox.succeed("seal shelf/one --password-file .bp -q")
    // The size, times, permissions and inode number of each file.
    let listingCommand = "find shelf -printf '%p %s %T@ %C@ %m %i\\n' | sort"
    let listingBefore = try tree.sandbox.devices.run(listingCommand).output
    let outcome = try tree.sandbox.keyhaul("verify shelf --password-file .bp \(Self.names) -o case.json")
    // The backup without a password is refused, because a password was given.
    #expect(outcome.status == 3 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains("No change was found in the files of any of the examined backups."), "\(outcome)")
    #expect(try tree.sandbox.devices.run(listingCommand).output == listingBefore)
    let report = try tree.sandbox.object(tree.sandbox.devices.run("cat case.json").output)
    #expect((report["writing"] as? [String: Any])?["unchanged"] as? Bool == true)
  }

  @Test("A case report states the case, the command, and the digest, result, size and seal of each backup")
  func report() throws {
    let tree = try BackupTree()
    try tree.sandbox.succeed("seal shelf/one --password-file .bp -q")
    _ = try tree.sandbox.keyhaul("verify shelf --password-file .bp \(Self.names) -o case.json")
    #expect(try tree.sandbox.devices.permissions(of: "case.json") == 0o600)
    let report = try tree.sandbox.object(tree.sandbox.devices.run("cat case.json").output)
    #expect(report["format"] as? String == "case-report/1" && report["case"] as? String == "Case <7>")
    // The tested program may have been built from a commit that the tests do not know.
    let program = try #require(report["program"] as? String)
    #expect(report["examiner"] as? String == "R. Doe" && program.hasPrefix(ProgramVersion.signature))
    let command = try #require(report["command"] as? [String])
    #expect(command.starts(with: ["keyhaul", "verify", "shelf", "--password-file"]), "\(command)")
    #expect(report["folder"] as? String == tree.sandbox.home.resolvingSymlinksInPath().path)
    let backups = try #require(report["backups"] as? [[String: Any]])
    #expect(backups.map { $0["path"] as? String } == BackupTree.paths)
    let rows = try tree.results(of: "verify shelf --password-file .bp")
    #expect(backups.map { $0["sha256"] as? String } == rows.map { $0["digest"] as? String })
    #expect(backups.map { $0["result"] as? String } == rows.map { $0["result"] as? String })
    #expect(backups.map { $0["code"] as? Int } == [0, 14, 0, 0])
    for (backup, path) in zip(backups, BackupTree.paths) {
      let sum = "find \(path) -type f -printf '%s\\n' | awk '{sum += $1} END {print sum}'"
      #expect(try backup["bytes"] as? Int == Int(tree.sandbox.devices.run(sum).output.dropLast()), "\(path)")
    }
    let seal = try #require(backups[2]["seal"] as? [String: Any])
    #expect(seal["state"] as? String == "intact")
    let lastLine = try tree.sandbox.devices.run("tail -n 1 shelf/one/Keyhaul.seal").output
    #expect(seal["code"] as? String == lastLine.trimmingCharacters(in: .newlines))
  }

  @Test("The digest in a case report equals what the documented shell command computes from the stored files")
  func digest() throws {
    let tree = try BackupTree()
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Scripting.md"), encoding: .utf8)
    let command = try #require(page.firstMatch(of: /\n\$ (for f in 51[^\n]*)\n/)?.1)
    _ = try tree.sandbox.keyhaul("verify shelf --password-file .bp \(Self.names) -o case.json")
    let report = try tree.sandbox.object(tree.sandbox.devices.run("cat case.json").output)
    let backups = try #require(report["backups"] as? [[String: Any]])
    for backup in backups {
      // A tar or zip file has the digest of the folder in it.
      let path = try #require(backup["path"] as? String)
      let unpack = path.hasSuffix(".zip") ? "unzip -q \(path) -d unpacked" : "tar -xf \(path) -C unpacked"
      let isFolder = !path.contains(".")
      try tree.sandbox.devices.run("rm -rf unpacked; mkdir unpacked; \(isFolder ? "true" : unpack)")
      let folder = isFolder ? path : "$(dirname $(find unpacked -name Manifest.plist))"
      let computed = try tree.sandbox.devices.run("cd \(folder) && \(command)").output
      #expect(backup["sha256"] as? String == "sha256:\(computed.prefix(64))", "\(path)")
    }
  }

  @Test("A finding names its file and its item, and a fault that is also a finding is listed once")
  func findings() throws {
    let tree = try BackupTree()
    try tree.sandbox.succeed("seal shelf/one --password-file .bp -q")
    try tree.sandbox.devices.run("truncate -s 20000 shelf/one/Manifest.db")
    let outcome = try tree.sandbox.keyhaul("verify shelf/one --password-file .bp \(Self.names) -o case.html")
    // The exit code combines the codes of the backups, so it is 3 and not 13.
    #expect(outcome.status == 3, "\(outcome)")
    let page = try tree.sandbox.devices.run("cat case.html").output
    let lines = page.matches(of: /<li>([^<]*)/).map { String($0.1) }
    // A line has the identifier, the file and the description.
    #expect(!lines.isEmpty && lines.allSatisfy { $0.components(separatedBy: ": ").count >= 3 }, "\(lines)")
    let linesWithoutIDs = lines.map { $0.split(separator: ": ", maxSplits: 1).last }
    #expect(lines.contains { $0.contains("Manifest.db: ") }, "\(lines)")
    #expect(Set(linesWithoutIDs).count == linesWithoutIDs.count, "\(lines)")
    let fault: JSONValue = ["id": "item-damaged", "file": "a", "index": 2, "detail": "tag-mismatch"]
    #expect(VerificationDocument.sentence(of: fault) == "a: item 2: tag-mismatch")
    let finding: JSONValue = ["id": "seal-broken", "place": "Info.plist", "detail": "it has changed"]
    #expect(VerificationDocument.sentence(of: finding) == "Info.plist: it has changed")
  }

  @Test("The comparison of files is worded correctly for one entry and for many")
  func sentences() {
    func comparison(_ count: Int, changed: Int = 0) -> EvidenceComparison {
      EvidenceComparison(
        entryCount: count, byteCount: 1, changedPaths: [], changedCount: changed, incompletenessReason: nil)
    }
    #expect(comparison(1).countText == "1 entry" && comparison(12).countText == "12 files and folders")
    #expect(comparison(1).sentence == "The only entry did not change during the examination.")
    #expect(comparison(12).sentence == "None of 12 files and folders changed during the examination.")
    #expect(comparison(12, changed: 1).sentence.hasPrefix("1 entry changed, appeared or disappeared"))
  }

  @Test("Counts of backups in a case report are grouped")
  func counts() {
    func report(unchanged: Int, changed: Int, uncompared: Int) -> CaseReport {
      func backups(_ count: Int, changedCount: Int = 0, reason: String? = nil) -> [CaseReport.ExaminedBackup] {
        let backup = CaseReport.ExaminedBackup(
          path: "b", result: .damaged, code: 13, headline: "", reason: nil, digest: nil, sealCode: nil, sealState: nil,
          files: EvidenceComparison(
            entryCount: 1, byteCount: 1, changedPaths: [], changedCount: changedCount, incompletenessReason: reason),
          claims: [], warnings: [], document: nil)
        return Array(repeating: backup, count: count)
      }
      let date = KeychainDate(secondsSinceReferenceDate: 0)
      return CaseReport(
        name: "c", examiner: "e", program: "keyhaul", folder: "f", command: [], started: date, ended: date,
        backups: backups(unchanged) + backups(changed, changedCount: 1) + backups(uncompared, reason: "it is gone"))
    }
    let large = report(unchanged: 1_000, changed: 2_000, uncompared: 3_000)
    #expect(
      large.changeSentence
        == "No change was found in the files of 1,000 of 6,000 backups. Files changed in 2,000; 3,000 could not be "
        + "compared completely.")
    #expect(large.verdict == "6,000 backups examined: 6,000 damaged.")
  }

  @Test("The page of a case report names the backups, and escapes the names")
  func page() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("inspect shelf/one \(Self.names) -o case.html")
    #expect(outcome.status == 0, "\(outcome)")
    let page = try tree.sandbox.devices.run("cat case.html").output
    #expect(page.contains("Case &lt;7&gt;") && !page.contains("Case <7>"))
    #expect(page.contains("not-counted") && page.contains("None of ") && page.contains("sha256:"))
    #expect(!page.contains("<script") && page.contains("Content-Security-Policy"))
    #expect(page.contains("virtual device in the device folder") && !page.contains("Not known: the backup"))
    let refused = try tree.sandbox.keyhaul("verify shelf/none \(Self.names) -o refused.html")
    #expect(refused.status == 3, "\(refused)")
    #expect(try tree.sandbox.devices.run("cat refused.html").output.contains("Not known: the backup could not be"))
  }

  @Test("Untrusted names in a backup cannot become markup or reorder the text of the page")
  func untrustedNames() throws {
    let name = "</td><script>alert(1)</script>\u{202E}\u{1B}[31m&\"'"
    let document: JSONValue = [
      "faults": [["id": "payload-cut", "file": .string(name), "detail": .string(name)]],
      "checks": [["id": "files", "ok": false, "detail": .string(name)]],
    ]
    let backup = CaseReport.ExaminedBackup(
      path: name, result: .damaged, code: 13, headline: name, reason: name, digest: name, sealCode: name,
      sealState: "broken",
      files: EvidenceComparison(
        entryCount: 1, byteCount: 2, changedPaths: [name], changedCount: 1, incompletenessReason: name),
      claims: [(name: "device_name", value: name)], warnings: [name], document: document)
    let date = KeychainDate(secondsSinceReferenceDate: 0)
    let report = CaseReport(
      name: name, examiner: name, program: "keyhaul", folder: name, command: [name], started: date, ended: date,
      backups: [backup])
    let page = try CasePage(report, program: "keyhaul").html()
    #expect(!page.contains("<script") && !page.contains("\u{202E}") && !page.contains("\u{1B}"))
    #expect(page.contains("&lt;script&gt;"))
    #expect(report.changeSentence.contains("Files changed in 1"))
  }

  @Test("A file that changes during the examination is named")
  func change() throws {
    let tree = try BackupTree()
    let path = tree.sandbox.devices.home.appending(path: "shelf/one").path
    let before = EvidenceRecord(of: path)
    #expect(before.compared(with: EvidenceRecord(of: path)).isUnchanged)
    try tree.sandbox.devices.run("touch shelf/one/Info.plist; echo > shelf/one/new")
    let comparison = before.compared(with: EvidenceRecord(of: path))
    #expect(!comparison.isUnchanged && comparison.changedPaths == [".", "Info.plist", "new"], "\(comparison)")
    // The record of a missing file states why it is incomplete.
    #expect(EvidenceRecord(of: "/nowhere/at/all").compared(with: before).incompletenessReason == "it does not exist")
  }

  @Test(
    "A case report is refused if one of its parts is missing, or if another flag contradicts it",
    arguments: [
      ("--case A -o a.html", "--examiner is missing"), ("--examiner B -o a.html", "--case is missing"),
      ("--case A --examiner B", "-o is missing"), ("--case A --examiner B -o a.pdf", "another ending"),
      ("--case '' --examiner B -o a.json", "it is empty"),
      ("--case A --examiner B -o a.json --format csv", "contradict"),
      ("--case A --examiner B -o a.json --resume r", "describes one run"),
    ])
  func refusals(flags: String, message: String) throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("verify shelf/one --quick \(flags)")
    #expect(outcome.status == 64 && outcome.errors.contains(message), "\(outcome)")
    #expect(try !tree.sandbox.names().contains { $0.hasPrefix("a.") })
  }

  @Test("A case report about a stream is refused")
  func stream() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("verify - --quick --case A --examiner B -o a.json")
    #expect(outcome.status == 64 && outcome.errors.contains("- is a stream"), "\(outcome)")
    #expect(try !tree.sandbox.names().contains("a.json"))
  }

  @Test("The command line in a report does not show shell commands, because they may contain passwords")
  func command() {
    let shownArguments = CaseReportRun<Verify>.withoutSecrets([
      "verify", "a", "--password-command", "echo hunter2", "--device-key-command=echo key", "-p", "file", "--jobs", "2",
    ])
    #expect(
      shownArguments == [
        "verify", "a", "--password-command", "(not shown)", "--device-key-command=(not shown)", "-p", "file", "--jobs",
        "2",
      ])
  }

  @Test("--fields cannot be combined with --case, because a report has every field", arguments: ["verify", "inspect"])
  func fields(command: String) throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("\(command) shelf \(Self.names) -o case.json --fields path")
    #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    #expect(
      unwrapped(outcome.errors).contains("\"message\":\"--case and --fields cannot be used together\""), "\(outcome)")
    #expect(outcome.errors.contains("\"why\":\"a case report contains every field\""), "\(outcome)")
    #expect(try tree.sandbox.devices.run("ls case.json").status != 0)
  }
}
