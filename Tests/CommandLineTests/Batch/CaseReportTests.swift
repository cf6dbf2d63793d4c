import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import Reports
@testable import keyhaul

@Suite("Case reports")
struct CaseReportTests {
  private static let names = "--case 'Case <7>' --examiner 'R. Doe'"

  @Test("A case report states what was examined, and that none of the files changed")
  func report() throws {
    let tree = try BackupTree()
    try tree.sandbox.succeed("seal shelf/one --password-file .bp -q")
    try tree.sandbox.devices.run("find shelf -printf '%p %s %T@ %C@ %m %i\\n' | sort > before")
    let outcome = try tree.sandbox.keyhaul("verify shelf --password-file .bp \(Self.names) -o case.json")
    // The backup without a password is refused, because a password was given.
    #expect(outcome.status == 3 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains("No change was found in the files of any of the examined backups."), "\(outcome)")
    let comparison = "find shelf -printf '%p %s %T@ %C@ %m %i\\n' | sort | diff - before"
    #expect(try tree.sandbox.devices.run(comparison).status == 0)
    #expect(try tree.sandbox.devices.run("stat -c %a case.json").output == "600\n")
    let report = try tree.sandbox.object(tree.sandbox.devices.run("cat case.json").output)
    #expect(report["format"] as? String == "case-report/1" && report["case"] as? String == "Case <7>")
    // The tested program may have been built from a commit that the tests do not know.
    let program = try #require(report["program"] as? String)
    #expect(report["examiner"] as? String == "R. Doe" && program.hasPrefix(ProgramVersion.signature))
    let command = try #require(report["command"] as? [String])
    #expect(command.starts(with: ["keyhaul", "verify", "shelf", "--password-file"]), "\(command)")
    #expect(report["folder"] as? String == tree.sandbox.home.resolvingSymlinksInPath().path)
    #expect((report["writing"] as? [String: Any])?["unchanged"] as? Bool == true)
    let backups = try #require(report["backups"] as? [[String: Any]])
    #expect(backups.map { $0["path"] as? String } == BackupTree.paths)
    let rows = try tree.rows(of: "verify shelf --password-file .bp")
    #expect(backups.map { $0["sha256"] as? String } == rows.map { $0["digest"] as? String })
    #expect(backups.map { $0["result"] as? String } == rows.map { $0["result"] as? String })
    #expect(backups.map { $0["code"] as? Int } == [0, 14, 0, 0])
    let sizes = try tree.sandbox.devices.run(
      "for f in \(BackupTree.paths.joined(separator: " ")); do "
        + "find $f -type f -printf '%s\\n' | awk '{s+=$1} END {print s}'; done"
    ).output.split(separator: "\n")
    #expect(backups.map { ($0["bytes"] as? Int).map(String.init) } == sizes.map(String.init))
    let seal = try #require(backups[2]["seal"] as? [String: Any])
    #expect(seal["state"] as? String == "intact")
    let line = try tree.sandbox.devices.run("tail -n 1 shelf/one/Keyhaul.seal").output
    #expect(seal["code"] as? String == line.trimmingCharacters(in: .newlines))
  }

  @Test("The digest is the one that the command in the documentation computes from the stored files")
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
    let facts = lines.map { $0.split(separator: ": ", maxSplits: 1).last }
    #expect(lines.contains { $0.contains("Manifest.db: ") } && Set(facts).count == facts.count, "\(lines)")
    let fault: JSONValue = ["id": "item-damaged", "file": "a", "index": 2, "detail": "tag-mismatch"]
    #expect(VerificationDocument.sentence(of: fault) == "a: item 2: tag-mismatch")
    let finding: JSONValue = ["id": "seal-broken", "place": "Info.plist", "detail": "it has changed"]
    #expect(VerificationDocument.sentence(of: finding) == "Info.plist: it has changed")
  }

  @Test("The comparison of files is worded correctly for one entry and for many")
  func sentences() {
    func comparison(_ count: Int, changed: Int = 0) -> EvidenceComparison {
      EvidenceComparison(count: count, byteCount: 1, changedPaths: [], changedCount: changed, gap: nil)
    }
    #expect(comparison(1).entries == "1 entry" && comparison(12).entries == "12 files and folders")
    #expect(comparison(1).sentence == "The only entry did not change during the examination.")
    #expect(comparison(12).sentence == "None of 12 files and folders changed during the examination.")
    #expect(comparison(12, changed: 1).sentence.hasPrefix("1 entry changed, appeared or disappeared"))
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
  func hostileNames() throws {
    let hostile = "</td><script>alert(1)</script>\u{202E}\u{1B}[31m&\"'"
    let document: JSONValue = [
      "faults": [["id": "payload-cut", "file": .string(hostile), "detail": .string(hostile)]],
      "checks": [["id": "files", "ok": false, "detail": .string(hostile)]],
    ]
    let backup = CaseReport.ExaminedBackup(
      path: hostile, result: .damaged, headline: hostile, reason: hostile, digest: hostile, sealCode: hostile,
      sealState: "broken",
      files: EvidenceComparison(count: 1, byteCount: 2, changedPaths: [hostile], changedCount: 1, gap: hostile),
      claims: [(name: "device_name", value: hostile)], warnings: [hostile], document: document)
    let date = KeychainDate(secondsSinceReferenceDate: 0)
    let report = CaseReport(
      name: hostile, examiner: hostile, program: "keyhaul", folder: hostile, command: [hostile], started: date,
      ended: date,
      backups: [backup])
    let page = try CasePage(report, program: "keyhaul").html()
    #expect(!page.contains("<script") && !page.contains("\u{202E}") && !page.contains("\u{1B}"))
    #expect(page.contains("&lt;script&gt;"))
    #expect(report.writingSentence.contains("Files changed in 1"))
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
    #expect(EvidenceRecord(of: "/nowhere/at/all").compared(with: before).gap == "it does not exist")
  }

  @Test(
    "A case report without one of its parts is refused",
    arguments: [
      ("--case A -o a.html", "--examiner is missing"), ("--examiner B -o a.html", "--case is missing"),
      ("--case A --examiner B", "-o is missing"), ("--case A --examiner B -o a.pdf", "another ending"),
      ("--case '' --examiner B -o a.json", "it is empty"),
      ("--case A --examiner B -o a.json --format csv", "contradict"),
      ("--case A --examiner B -o a.json --resume r", "describes one run"),
      ("--case A --examiner B -o a.json", "- is a stream"),
    ])
  func refusals(flags: String, message: String) throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.keyhaul("verify \(message.contains("stream") ? "-" : "shelf/one") --quick \(flags)")
    #expect(outcome.status == 64 && outcome.errors.contains(message), "\(outcome)")
    #expect(try tree.sandbox.devices.run("ls a.* 2>/dev/null | wc -l").output.hasPrefix("0"))
  }

  @Test("The command in a report has no value that may be a password")
  func command() {
    let shown = CaseReportRun<Verify>.withoutSecrets([
      "verify", "a", "--password-command", "echo hunter2", "--device-key-command=echo key", "-p", "file", "--jobs", "2",
    ])
    #expect(
      shown == [
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
