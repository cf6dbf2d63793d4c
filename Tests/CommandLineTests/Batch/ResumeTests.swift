import Foundation
import KeyhaulKit
import Reports
import TestSupport
import Testing

@testable import keyhaul

@Suite("Resumed runs")
struct ResumeTests {
  /// Returns the lines of the file `answers` without `question`, the member that `ndjson` does not have.
  private func answers(_ tree: BackupTree) throws -> String {
    String(decoding: try tree.sandbox.read("answers"), as: UTF8.self)
      .replacing(/,"question":\{"digest":"sha256:[0-9a-f]{64}","password":("[0-9a-f]+"|null)\}/, with: "")
  }

  @Test("A resumed run skips finished backups, prints the same bytes, and repeats changed backups")
  func resumed() throws {
    let tree = try BackupTree()
    let line = "inspect shelf --list --password-file .bp --format ndjson --resume answers"
    let first = try tree.sandbox.keyhaul(line)
    #expect(first.status == 3)
    #expect(try answers(tree) == first.output)
    let mode = try FileManager.default.attributesOfItem(atPath: tree.sandbox.home.appending(path: "answers").path)
    #expect(mode[.posixPermissions] as? Int == 0o600)

    #expect(first.output.contains("backup-inspection/1"))
    // A format that Keyhaul never writes shows that the document comes from the file.
    let marked = first.output.replacing("backup-inspection/1", with: "backup-inspection/9")
    let written = String(decoding: try tree.sandbox.read("answers"), as: UTF8.self)
    try tree.sandbox.write(
      Array(written.replacing("backup-inspection/1", with: "backup-inspection/9").utf8), to: "answers")
    let second = try tree.sandbox.keyhaul(line)
    #expect(second.output == marked && second.errors.contains("4 results were already there.\n"))
    #expect(try answers(tree) == marked)

    // With another manifest, the backup has another digest.
    let manifest = try tree.sandbox.read("shelf/one/Manifest.plist")
    try tree.sandbox.write(manifest + [0], to: "shelf/one/Manifest.plist")
    let third = try tree.sandbox.keyhaul(line)
    #expect(third.errors.contains("3 results were already there.\n"), "\(third.errors)")
    #expect(try tree.rows(third.output).count == 4)
  }

  @Test("--resume refuses a symbolic link, and adds nothing to the link's target")
  func link() throws {
    let tree = try BackupTree()
    let outcome = try tree.sandbox.devices.run(
      "touch target; ln -s target answers; keyhaul inspect shelf --resume answers")
    #expect(outcome.status == 1 && outcome.output.isEmpty, "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("cannot continue with answers why: it is a link"), "\(outcome)")
    #expect(try tree.sandbox.read("target").isEmpty)
  }

  @Test("A change that only the seal detects makes a resumed run check the backup again")
  func sealedChange() throws {
    let tree = try BackupTree()
    let line = "inspect shelf --list --password-file .bp --format ndjson --resume answers"
    let first = try tree.sandbox.keyhaul(line)
    #expect(try tree.rows(first.output).map { $0["code"] as? Int }.first == 0)
    let information = try tree.sandbox.read("shelf/one/Info.plist")
    try tree.sandbox.write(information + [10], to: "shelf/one/Info.plist", keepingSeal: true)
    let sealed = try tree.sandbox.keyhaul(line)
    #expect(sealed.errors.contains("3 results were already there.\n"), "\(sealed.errors)")
    #expect(try tree.rows(sealed.output).contains { $0["code"] as? Int == 3 }, "\(sealed.output)")
  }

  @Test("A resumed run continues after the last complete line, and repeats results with outside reasons")
  func torn() throws {
    let tree = try BackupTree()
    let line = "verify shelf --format ndjson --resume answers"
    // Without the password, three backups cannot be checked.
    let withoutPassword = try tree.sandbox.keyhaul("\(line) --no-input")
    #expect(try tree.rows(withoutPassword.output).map { $0["code"] as? Int } == [12, 0, 12, 12])
    let withPassword = try tree.sandbox.keyhaul("\(line) --password-file .bp")
    #expect(try tree.rows(withPassword.output).map { $0["code"] as? Int } == [0, 14, 0, 0])
    let written = try tree.sandbox.read("answers")
    try tree.sandbox.write(Array(written.dropLast(40)), to: "answers")
    let resumed = try tree.sandbox.keyhaul("\(line) --password-file .bp")
    #expect(resumed.output == withPassword.output)
    #expect(resumed.errors.contains("results were already there.\n"))
    // Results of a command with other flags are not reused.
    let quick = try tree.sandbox.keyhaul("verify shelf --quick --format ndjson --resume answers")
    #expect(!quick.errors.contains("already there") && quick.status == 0, "\(quick.errors)")
  }

  @Test("A file with other contents, or one that another run uses, is not changed")
  func refused() throws {
    let tree = try BackupTree()
    try tree.sandbox.write(Array("my notes\nand more\n".utf8), to: "notes")
    let outcome = try tree.sandbox.keyhaul("inspect shelf --resume notes")
    #expect(outcome.status == 14 && outcome.errors.hasPrefix("error: notes does not contain results\n"), "\(outcome)")
    #expect(String(decoding: try tree.sandbox.read("notes"), as: UTF8.self) == "my notes\nand more\n")
    let busy = try tree.sandbox.devices.run(": > answers; flock answers keyhaul inspect shelf --resume answers")
    #expect(busy.status == 11 && busy.errors.contains("another run"), "\(busy)")
    #expect(try tree.sandbox.keyhaul("inspect shelf --resume shelf").status == 64)
  }

  @Test("Ctrl-C stops a run immediately with complete lines, and the next run continues there")
  func stopped() throws {
    let tree = try BackupTree()
    try tree.sandbox.devices.run("cp -R shelf/one shelf/slow")
    try tree.sandbox.setIterations(15_000_000, in: "DPIC", of: "shelf/slow")
    let line = "verify shelf --format ndjson --resume answers --password-file .bp"
    let outcome = try tree.sandbox.devices.run(
      """
      (while [ "$(wc -l < answers 2>/dev/null || echo 0)" -lt 3 ]; do sleep 0.01; done; sleep 0.1; kill -INT $$) &
      exec keyhaul \(line) --jobs 2
      """)
    #expect(outcome.status == 130, "\(outcome)")
    #expect(
      outcome.errors.hasSuffix("error: stopped by Ctrl-C\n  why: 3 backups had results\n"), "\(outcome.errors)")
    #expect(outcome.output.hasSuffix("\n"))
    #expect(try tree.rows(outcome.output).count == 3)
    #expect(try answers(tree) == outcome.output)
    try tree.sandbox.devices.run("rm -r shelf/slow")
    let resumed = try tree.sandbox.keyhaul(line)
    #expect(resumed.output.hasPrefix(outcome.output) && resumed.errors.contains("3 results were already there."))
  }

  @Test("A result that is too long for a line of the file is not added, and the next run can use the others")
  func longResult() throws {
    let directory = try TemporaryDirectory()
    func open() throws -> ResumeLog {
      try ResumeLog(
        directory.path("answers"), verb: "verify", parameters: [[]], inputsDigest: "sha256:0",
        maximumLineByteCount: 1000)
    }
    func add(_ name: String, characterCount: Int, to log: ResumeLog) throws {
      var metadata = BackupMetadata()
      metadata.digest = "sha256:1"
      let result = BatchResult(
        verb: "verify", parameters: [], path: name, metadata: metadata, isArchivedCopy: false, status: .ok,
        failure: nil, warnings: [], document: .string(String(repeating: "a", count: characterCount)), result: .whole)
      try log.add(result, inputs: ResumeInputs(digest: "sha256:0", password: nil))
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
