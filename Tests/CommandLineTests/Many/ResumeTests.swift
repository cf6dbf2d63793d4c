import Foundation
import Testing

@testable import keyhaul

@Suite("A call about many backups that goes on")
struct ResumeTests {
  /// Returns the lines of the file `answers` without `question`, the member that `ndjson` does not have.
  private func answers(_ shelf: Shelf) throws -> String {
    String(decoding: try shelf.world.read("answers"), as: UTF8.self)
      .replacing(/,"question":\{"digest":"sha256:[0-9a-f]{64}","password":("[0-9a-f]+"|null)\}/, with: "")
  }

  @Test("skips what is answered already, gives the same bytes, and asks again what has changed")
  func resumed() throws {
    let shelf = try Shelf()
    let line = "inspect shelf --list --password-file .bp --format ndjson --resume answers"
    let first = try shelf.world.keyhaul(line)
    #expect(first.status == 3)
    #expect(try answers(shelf) == first.output)
    let mode = try FileManager.default.attributesOfItem(atPath: shelf.world.home.appending(path: "answers").path)
    #expect(mode[.posixPermissions] as? Int == 0o600)

    #expect(first.output.contains("backup-inspection/1"))
    // A document that no backup gives shows that it was taken from the file.
    let marked = first.output.replacing("backup-inspection/1", with: "backup-inspection/9")
    let written = String(decoding: try shelf.world.read("answers"), as: UTF8.self)
    try shelf.world.write(
      Array(written.replacing("backup-inspection/1", with: "backup-inspection/9").utf8), to: "answers")
    let second = try shelf.world.keyhaul(line)
    #expect(second.output == marked && second.errors.contains("4 results were already there.\n"))
    #expect(try answers(shelf) == marked)

    // Another manifest: another digest.
    let manifest = try shelf.world.read("shelf/one/Manifest.plist")
    try shelf.world.write(manifest + [0], to: "shelf/one/Manifest.plist")
    let third = try shelf.world.keyhaul(line)
    #expect(third.errors.contains("3 results were already there.\n"), "\(third.errors)")
    #expect(try shelf.rows(third.output).count == 4)

  }

  @Test("--resume refuses a symbolic link, and adds nothing to the link's target")
  func link() throws {
    let shelf = try Shelf()
    let outcome = try shelf.world.devices.run(
      "touch target; ln -s target answers; keyhaul inspect shelf --resume answers")
    #expect(outcome.status == 1 && outcome.output.isEmpty, "\(outcome)")
    #expect(flat(outcome.errors).contains("cannot continue with answers why: it is a link"), "\(outcome)")
    #expect(try shelf.world.read("target").isEmpty)
  }

  @Test("asks again where the digest does not tell of a change and the seal does")
  func changedBesides() throws {
    let shelf = try Shelf()
    let line = "inspect shelf --list --password-file .bp --format ndjson --resume answers"
    let first = try shelf.world.keyhaul(line)
    #expect(try shelf.rows(first.output).map { $0["code"] as? Int }.first == 0)
    let information = try shelf.world.read("shelf/one/Info.plist")
    try shelf.world.write(information + [10], to: "shelf/one/Info.plist", keepingSeal: true)
    let sealed = try shelf.world.keyhaul(line)
    #expect(sealed.errors.contains("3 results were already there.\n"), "\(sealed.errors)")
    #expect(try shelf.rows(sealed.output).contains { $0["code"] as? Int == 3 }, "\(sealed.output)")
  }

  @Test("goes on behind the last whole line, and asks again what something outside of the backup decided")
  func torn() throws {
    let shelf = try Shelf()
    let line = "verify shelf --format ndjson --resume answers"
    // Without a password three of them cannot be checked.
    let closed = try shelf.world.keyhaul("\(line) --no-input")
    #expect(try shelf.rows(closed.output).map { $0["code"] as? Int } == [12, 0, 12, 12])
    let opened = try shelf.world.keyhaul("\(line) --password-file .bp")
    #expect(try shelf.rows(opened.output).map { $0["code"] as? Int } == [0, 14, 0, 0])
    let written = try shelf.world.read("answers")
    try shelf.world.write(Array(written.dropLast(40)), to: "answers")
    let resumed = try shelf.world.keyhaul("\(line) --password-file .bp")
    #expect(resumed.output == opened.output)
    #expect(resumed.errors.contains("results were already there.\n"))
    // Another question has other answers.
    let quick = try shelf.world.keyhaul("verify shelf --quick --format ndjson --resume answers")
    #expect(!quick.errors.contains("there before") && quick.status == 0, "\(quick.errors)")
  }

  @Test("adds nothing to a file that holds something else, nor to one that another run has")
  func refused() throws {
    let shelf = try Shelf()
    try shelf.world.write(Array("my notes\nand more\n".utf8), to: "notes")
    let outcome = try shelf.world.keyhaul("inspect shelf --resume notes")
    #expect(outcome.status == 14 && outcome.errors.hasPrefix("error: notes does not contain results\n"), "\(outcome)")
    #expect(String(decoding: try shelf.world.read("notes"), as: UTF8.self) == "my notes\nand more\n")
    let busy = try shelf.world.devices.run(": > answers; flock answers keyhaul inspect shelf --resume answers")
    #expect(busy.status == 11 && busy.errors.contains("another run"), "\(busy)")
    #expect(try shelf.world.keyhaul("inspect shelf --resume shelf").status == 64)
  }

  @Test("Ctrl-C stops it at once, with whole lines, and the next run goes on where it was")
  func stopped() throws {
    let shelf = try Shelf()
    try shelf.world.devices.run("cp -R shelf/one shelf/slow")
    try shelf.world.ask(for: 15_000_000, in: "DPIC", of: "shelf/slow")
    let line = "verify shelf --format ndjson --resume answers --password-file .bp"
    let outcome = try shelf.world.devices.run(
      """
      (while [ "$(wc -l < answers 2>/dev/null || echo 0)" -lt 3 ]; do sleep 0.01; done; sleep 0.1; kill -INT $$) &
      exec keyhaul \(line) --jobs 2
      """)
    #expect(outcome.status == 130, "\(outcome)")
    #expect(
      outcome.errors.hasSuffix("error: stopped by Ctrl-C\n  why: 3 backups had results\n"), "\(outcome.errors)")
    #expect(outcome.output.hasSuffix("\n"))
    #expect(try shelf.rows(outcome.output).count == 3)
    #expect(try answers(shelf) == outcome.output)
    try shelf.world.devices.run("rm -r shelf/slow")
    let resumed = try shelf.world.keyhaul(line)
    #expect(resumed.output.hasPrefix(outcome.output) && resumed.errors.contains("3 results were already there."))
  }
}
