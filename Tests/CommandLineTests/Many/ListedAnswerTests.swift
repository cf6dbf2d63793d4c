import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("What one of many calls is about, and how the list says so")
struct ListedAnswerTests {
  @Test("an answer that is too large for a list is left out, and the answer says that it is")
  func large() throws {
    let world = try MoveWorld(named: "a large answer") { try $0.backUp("new-phone", to: "one.tar") }
    let place = BackupPlace(world.devices.home.appending(path: "one.tar").path)
    var asking = BackupAsking(
      verb: try Inspect.parse([place.path]), name: "keyhaul inspect", word: "inspect",
      environment: ["HOME": world.devices.home.path], asked: [],
      passwords: SharedPasswords(named: nil, list: nil))
    let whole = asking.answer(about: place, nil).answer
    #expect(whole.code == 0 && whole.document != nil && whole.warnings.isEmpty, "\(whole)")
    asking.maximumValueCount = 10
    let part = asking.answer(about: place, nil).answer
    #expect(part.code == 0 && part.document == nil && part.error == nil)
    #expect(part.warnings.map(\.message) == ["its result is left out here"])
    #expect(part.warnings.first?.advice == "keyhaul inspect \(place.path)")
  }

  @Test(
    "the call about one of them in full has the flags that choose what it shows",
    arguments: [
      ("inspect shelf --list --password-file .bp", "inspect shelf/a.tar --list"),
      ("verify shelf --quick", "verify shelf/a.tar --quick"),
      ("plan shelf --by-app --password-file .bp", "plan shelf/a.tar --by-app"),
      ("plan shelf --to new-phone --compare --password-file .bp", "plan shelf/a.tar --to new-phone --compare"),
    ])
  func inFull(call: String, hint: String) throws {
    let world = try shelf()
    let outcome = try world.keyhaul(call)
    #expect(outcome.status == 0 && outcome.output.hasSuffix("\nOne of them in full: keyhaul \(hint)\n"), "\(outcome)")
  }

  @Test(
    "flags that cannot be are refused once, before any backup is read",
    arguments: [
      ("verify shelf --quick --password-file .bp", "--quick and a password cannot be used together"),
      ("plan shelf --to new-phone --password-file .bp -o move.plan", "-o saves the plan of one backup"),
    ])
  func refused(call: String, message: String) throws {
    let world = try shelf()
    let outcome = try world.keyhaul(call)
    #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains("error: \(message)\n"), "\(outcome)")
    #expect(try world.keyhaul("plan shelf --password-file .bp --format text -o answers.txt").status == 0)
  }

  @Test("of several arguments the one that is not a file is told by its number, and not repeated")
  func number() throws {
    let outcome = try shelf().keyhaul("verify shelf/a.tar shelf/b.tar hunter2 --password-file .bp")
    #expect(outcome.status == 64 && !outcome.errors.contains("hunter2"), "\(outcome)")
    #expect(outcome.errors.contains("it is number 3 of 3; Keyhaul does not repeat it here"), "\(outcome)")
  }

  private func shelf() throws -> MoveWorld {
    try MoveWorld(named: "a shelf of two") { world in
      try world.backUp("new-phone", to: "a.tar")
      try world.devices.run("mkdir shelf && mv a.tar shelf/ && cp shelf/a.tar shelf/b.tar")
    }
  }
}
