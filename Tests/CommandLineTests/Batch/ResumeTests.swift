import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import keyhaul

@Suite("Resumed runs")
struct ResumeTests {
  /// Returns the lines of the file `results` without `question`, the member that `ndjson` does not have.
  private func recordedResults(in tree: BackupTree) throws -> String {
    String(decoding: try tree.sandbox.read("results"), as: UTF8.self)
      .replacing(/,"question":\{"digest":"sha256:[0-9a-f]{64}","password":("[0-9a-f]+"|null)\}/, with: "")
  }

  @Test("A resumed run skips finished backups, prints the same bytes, and repeats changed backups")
  func resumed() throws {
    let tree = try BackupTree()
    let line = "inspect shelf --list --password-file .bp --format ndjson --resume results"
    let firstRun = try tree.sandbox.keyhaul(line)
    #expect(firstRun.status == 3)
    #expect(try recordedResults(in: tree) == firstRun.output)
    #expect(try tree.sandbox.devices.permissions(of: "results") == 0o600)

    // Documents with a format that Keyhaul never writes can only come from the file.
    func withOtherFormat(_ text: String) -> String {
      text.replacing("backup-inspection/1", with: "backup-inspection/9")
    }
    let changedOutput = withOtherFormat(firstRun.output)
    #expect(changedOutput != firstRun.output)
    let recorded = String(decoding: try tree.sandbox.read("results"), as: UTF8.self)
    try tree.sandbox.write(Array(withOtherFormat(recorded).utf8), to: "results")
    let resumed = try tree.sandbox.keyhaul(line)
    #expect(resumed.output == changedOutput && resumed.errors.contains("4 results were already there.\n"))
    #expect(try recordedResults(in: tree) == changedOutput)

    // With another manifest, the backup has another digest.
    let manifest = try tree.sandbox.read("shelf/one/Manifest.plist")
    try tree.sandbox.write(manifest + [0], to: "shelf/one/Manifest.plist")
    let afterChange = try tree.sandbox.keyhaul(line)
    #expect(afterChange.errors.contains("3 results were already there.\n"), "\(afterChange.errors)")
    #expect(try tree.results(in: afterChange.output).count == 4)
  }

  @Test("--resume refuses a symbolic link, and adds nothing to the link's target")
  func link() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.devices.run(
      "touch target; ln -s target results; keyhaul inspect shelf --resume results")
    #expect(outcome.status == 1 && outcome.output.isEmpty, "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("cannot continue with results why: it is a link"), "\(outcome)")
    #expect(try tree.sandbox.read("target").isEmpty)
  }

  @Test("A change that only the seal detects makes a resumed run check the backup again")
  func sealedChange() throws {
    let tree = try BackupTree()
    let line = "inspect shelf --list --password-file .bp --format ndjson --resume results"
    let firstRun = try tree.sandbox.keyhaul(line)
    #expect(try tree.results(in: firstRun.output).first?["code"] as? Int == 0)
    let info = try tree.sandbox.read("shelf/one/Info.plist")
    try tree.sandbox.write(info + [10], to: "shelf/one/Info.plist", keepingSeal: true)
    let resumed = try tree.sandbox.keyhaul(line)
    #expect(resumed.errors.contains("3 results were already there.\n"), "\(resumed.errors)")
    #expect(try tree.results(in: resumed.output).contains { $0["code"] as? Int == 3 }, "\(resumed.output)")
  }

  @Test("A resumed run continues after the last complete line, and checks backups again whose password was missing")
  func incompleteLine() throws {
    let tree = try BackupTree()
    let line = "verify shelf --format ndjson --resume results"
    // Without the password, three backups cannot be checked.
    let withoutPassword = try tree.sandbox.keyhaul("\(line) --no-input")
    #expect(try tree.results(in: withoutPassword.output).map { $0["code"] as? Int } == [12, 0, 12, 12])
    let withPassword = try tree.sandbox.keyhaul("\(line) --password-file .bp")
    #expect(try tree.results(in: withPassword.output).map { $0["code"] as? Int } == [0, 14, 0, 0])
    let recorded = try tree.sandbox.read("results")
    try tree.sandbox.write(Array(recorded.dropLast(40)), to: "results")
    let resumed = try tree.sandbox.keyhaul("\(line) --password-file .bp")
    #expect(resumed.output == withPassword.output)
    #expect(resumed.errors.contains("results were already there.\n"))
    // Results of a command with other flags are not reused.
    let quick = try tree.sandbox.keyhaul("verify shelf --quick --format ndjson --resume results")
    #expect(!quick.errors.contains("already there") && quick.status == 0, "\(quick.errors)")
  }

  @Test("A file with other contents, or a file that another run uses, is not changed")
  func refused() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("my notes\nand more\n".utf8), to: "notes")
    let outcome = try tree.sandbox.keyhaul("inspect shelf --resume notes")
    #expect(outcome.status == 14 && outcome.errors.hasPrefix("error: notes does not contain results\n"), "\(outcome)")
    #expect(String(decoding: try tree.sandbox.read("notes"), as: UTF8.self) == "my notes\nand more\n")
    let busy = try tree.sandbox.devices.run(": > results; flock results keyhaul inspect shelf --resume results")
    #expect(busy.status == 11 && busy.errors.contains("another run"), "\(busy)")
    #expect(try tree.sandbox.keyhaul("inspect shelf --resume shelf").status == 64)
  }

  @Test("Ctrl-C stops a run immediately after complete lines, and the next run reuses their results")
  func stopped() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("cp -R shelf/one shelf/slow")
    try tree.sandbox.setIterations(15_000_000, in: "DPIC", of: "shelf/slow")
    let line = "verify shelf --format ndjson --resume results --password-file .bp"
    let outcome = try tree.sandbox.devices.run(
      """
      (while [ "$(wc -l < results 2>/dev/null || echo 0)" -lt 3 ]; do sleep 0.01; done; sleep 0.1; kill -INT $$) &
      exec keyhaul \(line) --jobs 2
      """)
    #expect(outcome.status == 130, "\(outcome)")
    #expect(
      outcome.errors.hasSuffix("error: stopped by Ctrl-C\n  why: 3 backups had results\n"), "\(outcome.errors)")
    #expect(outcome.output.hasSuffix("\n"))
    #expect(try tree.results(in: outcome.output).count == 3)
    #expect(try recordedResults(in: tree) == outcome.output)
    try tree.sandbox.devices.run("rm -r shelf/slow")
    let resumed = try tree.sandbox.keyhaul(line)
    #expect(resumed.output.hasPrefix(outcome.output) && resumed.errors.contains("3 results were already there."))
  }

  @Test("A result that is too long for a line of the file is not added, and the next run can use the other results")
  func longResult() throws {
    let directory = try TemporaryDirectory()
    func open() throws -> ResumeLog {
      try ResumeLog(
        directory.path("results"), verb: "verify", parameters: [[]], inputsDigest: "sha256:0",
        maximumLineByteCount: 1000)
    }
    func add(_ name: String, characterCount: Int, to log: ResumeLog) throws {
      var metadata = BackupMetadata()
      metadata.digest = "sha256:1"
      let result = BatchResult(
        verb: "verify", parameters: [], path: name, metadata: metadata, isArchivedCopy: false, status: .ok,
        failure: nil, warnings: [], document: .string(String(repeating: "a", count: characterCount)), result: .whole)
      try log.add(result, condition: ResumeCondition(inputsDigest: "sha256:0", passwordIdentifier: nil))
    }
    do {
      let log = try open()
      try add("short", characterCount: 1, to: log)
      // The file is read in blocks of 64 KiB, so only a line that is longer by a block is sure to be refused.
      try add("long", characterCount: 200_000, to: log)
      try add("last", characterCount: 1, to: log)
    }
    let log = try open()
    #expect(["short", "long", "last"].map(log.mayContain) == [true, false, true])
  }
}
