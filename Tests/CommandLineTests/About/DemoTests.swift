import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The demo", .serialized)
struct DemoTests {
  private func sandbox() throws -> DeviceSandbox {
    let sandbox = try DeviceSandbox()
    try FileManager.default.createDirectory(
      at: sandbox.home.appending(path: "tmp"), withIntermediateDirectories: true)
    return sandbox
  }

  @Test(
    "The demo shows each command before its output, and leaves no files",
    .enabled(
      if: Cases.isExhaustive, "it derives four keys with ten million iterations each, which a quick run leaves out")
  )
  func complete() throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.run("TMPDIR=$PWD/tmp keyhaul demo")
    #expect(outcome.status == 0 && outcome.errors.contains("can move to new-phone"))
    let commands = [
      "$ keyhaul device create old-phone", "$ keyhaul device create new-phone", "$ keyhaul device list",
      "$ keyhaul item find old-phone", "$ keyhaul backup old-phone -o plain.backup/ --no-password",
      "$ keyhaul plan plain.backup/ --to new-phone", "$ keyhaul backup old-phone -o family.backup",
      "$ keyhaul plan family.backup --to new-phone", "$ keyhaul restore family.backup --to new-phone",
      "$ keyhaul item find new-phone", "$ keyhaul device erase old-phone",
      "$ keyhaul restore family.backup --to old-phone",
    ]
    let results = [
      "Created old-phone", "Created new-phone", "NAME ", "KIND ",
      "Backed up 18 of 22 items from old-phone to plain.backup",
      "0 will move, 18 stay behind", "Backed up 18 of 22 items from old-phone to family.backup", "14 will move",
      "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.", "KIND ", "Erased old-phone",
      "Restored 18 items to old-phone in one step.",
    ]
    var remainder = outcome.output[...]
    for (command, result) in zip(commands, results) {
      for text in [command, result] {
        let range = try #require(remainder.range(of: text), "\(text) is missing in:\n\(remainder)")
        remainder = remainder[range.upperBound...]
      }
    }
    #expect(outcome.output.hasSuffix("\nThe demo's files have been deleted from this machine.\n"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.home.path) == ["tmp"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.home.appending(path: "tmp").path) == [])
  }

  @Test("With --keep, the demo keeps usable devices and backups, even if Ctrl-C ends it")
  func keep() throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.run(
      """
      (while [ ! -e kept/plain.backup/Manifest.plist ]; do sleep 0.02; done; sleep 0.2; kill -INT $$) &
      TMPDIR=$PWD/tmp exec keyhaul demo --keep kept
      """)
    #expect(outcome.status == 130 && outcome.errors.contains("error: stopped by Ctrl-C\n"), "\(outcome.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.home.appending(path: "tmp").path) == [])
    let plan = try sandbox.run("cd kept && keyhaul plan plain.backup --to new-phone --home devices --json")
    #expect(plan.status == 0)
    #expect(try sandbox.permissions(of: "kept") == 0o700)
    let repeated = try sandbox.run("keyhaul demo --keep kept")
    #expect(repeated.status == 64 && repeated.errors.hasPrefix("error: kept is not empty\n"))
  }

  @Test("The demo rejects --json")
  func json() throws {
    let outcome = try sandbox().run("keyhaul demo --json")
    #expect(outcome.status == 64 && outcome.output == "")
  }

  /// Seconds between the demo's first output and Ctrl-C. Most are short, because the demo then opens a passcode file.
  private static let delays =
    (0..<Cases.count(20, quick: 2)).map { String(format: "%.3f", Double($0) / 1_000) } + ["0.5", "2"]

  @Test("The demo leaves no files when Ctrl-C ends it at any point", arguments: delays)
  func interrupted(delay: String) throws {
    let sandbox = try sandbox()
    // The delay starts at the first output, because a busy machine may take long to start the program.
    let outcome = try sandbox.run(
      """
      (while [ ! -s output ]; do sleep 0.01; done; sleep \(delay); kill -INT $$) &
      TMPDIR=$PWD/tmp exec keyhaul demo > output
      """)
    #expect(outcome.status == 130, "\(outcome)")
    #expect(outcome.errors.contains("error: stopped by Ctrl-C\n"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: sandbox.home.appending(path: "tmp").path) == [])
  }
}
