import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The demo", .serialized)
struct DemoTests {
  private func world() throws -> DeviceWorld {
    let world = try DeviceWorld()
    try FileManager.default.createDirectory(
      at: world.home.appending(path: "tmp"), withIntermediateDirectories: true)
    return world
  }

  @Test(
    "tells the whole story, each command before its output, and leaves nothing behind",
    .enabled(if: Cases.areAllRun, "four times ten million rounds, which a quick run leaves out"))
  func story() throws {
    let world = try world()
    let outcome = try world.run("TMPDIR=$PWD/tmp keyhaul demo")
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
    var rest = outcome.output[...]
    for (command, result) in zip(commands, results) {
      for text in [command, result] {
        let range = try #require(rest.range(of: text), "\(text) is missing in:\n\(rest)")
        rest = rest[range.upperBound...]
      }
    }
    #expect(outcome.output.hasSuffix("\nThe demo's files have been deleted from this machine.\n"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.home.path) == ["tmp"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.home.appending(path: "tmp").path) == [])
  }

  @Test("keeps its devices and archives where that is wanted, even if Ctrl-C ends it, and they can be used")
  func keep() throws {
    let world = try world()
    let outcome = try world.run(
      """
      (while [ ! -e kept/plain.backup/Manifest.plist ]; do sleep 0.02; done; sleep 0.2; kill -INT $$) &
      TMPDIR=$PWD/tmp exec keyhaul demo --keep kept
      """)
    #expect(outcome.status == 130 && outcome.errors.contains("error: stopped by Ctrl-C\n"), "\(outcome.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.home.appending(path: "tmp").path) == [])
    let plan = try world.run("cd kept && keyhaul plan plain.backup --to new-phone --home devices --json")
    #expect(plan.status == 0)
    #expect(try world.permissions(of: "kept") == 0o700)
    let again = try world.run("keyhaul demo --keep kept")
    #expect(again.status == 64 && again.errors.hasPrefix("error: kept is not empty\n"))
  }

  @Test("has no form in JSON and says so")
  func json() throws {
    let outcome = try world().run("keyhaul demo --json")
    #expect(outcome.status == 64 && outcome.output == "")
  }

  /// Seconds behind its first words; of the first hundredths, in which it opens a passcode's file, several.
  private static let delays = (0..<Cases.count(20, quick: 2)).map { "0.0\($0 < 10 ? "0" : "")\($0)" } + ["0.5", "2"]

  @Test("leaves nothing behind when Ctrl-C ends it, wherever it is", arguments: delays)
  func interrupted(delay: String) throws {
    let world = try world()
    // From its first words on, as nobody knows how long a busy machine takes to start a program.
    let outcome = try world.run(
      """
      mkdir said
      (while [ ! -s said/all ]; do sleep 0.01; done; sleep \(delay); kill -INT $$) &
      TMPDIR=$PWD/tmp exec keyhaul demo > said/all
      """)
    #expect(outcome.status == 130, "\(outcome)")
    #expect(outcome.errors.contains("error: stopped by Ctrl-C\n"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.home.appending(path: "tmp").path) == [])
  }
}
