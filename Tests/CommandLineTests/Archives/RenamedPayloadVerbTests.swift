import Foundation
import Testing

@testable import keyhaul

@Suite("A backup whose payloads have other names than a device gives")
struct RenamedPayloadVerbTests {
  /// How the payloads of `b` come to their names.
  private static let namings = [
    "for d in ??; do mv $d x; for f in $(ls x); do mv x/$f x/$(echo $f | tr a-f A-F); done; "
      + "mv x $(echo $d | tr a-f A-F); done",
    "for d in ??; do mv $d/* .; rmdir $d; done",
  ]

  private func world(_ naming: String) throws -> MoveWorld {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.succeed("convert b.tar -o proper/ -q")
    try world.succeed("convert b.tar -o b/ -q")
    try world.devices.run("cd b; \(naming); tar cf ../r.tar *")
    #expect(try world.files(in: "b") != world.files(in: "proper"))
    return world
  }

  @Test(
    "is read whole by every command, which says so, as a directory and as a tar", arguments: namings, ["b", "r.tar"])
  func read(naming: String, form: String) throws {
    let world = try world(naming)
    let password = "--password-file .bp"
    for (line, status) in [
      ("inspect \(form) \(password)", Int32(0)), ("inspect \(form)", 0), ("inspect \(form) --tree \(password)", 0),
      ("verify \(form) \(password)", 0), ("verify \(form) --quick", 0), ("export \(form) --files out \(password)", 0),
      ("export \(form) --format json --reveal -o items.json \(password)", 0),
      ("plan \(form) --to new-phone \(password)", 0), ("diff \(form) proper \(password)", 0),
      ("convert \(form) -o copy/", 0), ("convert \(form) --decrypted -o clear/ \(password)", 0),
      ("restore \(form) --to new-phone --yes \(password)", 0),
    ] {
      let outcome = try world.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(flat(outcome.errors).contains("a name that no device uses: "), "\(line): \(outcome)")
    }
    #expect(try world.files(in: "copy") == world.files(in: "proper"))
    for file in try world.files(in: "proper") {
      #expect(try world.read("copy/\(file)") == world.read("proper/\(file)"), "\(file)")
    }
    let found = try world.object(world.succeed("inspect \(form) \(password) --json"))
    let proper = try world.object(world.succeed("inspect proper \(password) --json"))
    #expect(try #require(found["findings"] as? [[String: Any]]).map { $0["id"] as? String } == ["payloads-renamed"])
    #expect(found["digest"] as? String == proper["digest"] as? String)
  }

  @Test("keeps its files under another password, and its seal", arguments: namings, ["b", "r.tar"])
  func changed(naming: String, form: String) throws {
    let world = try world(naming)
    try world.devices.run("echo other > .np; chmod 600 .np")
    try world.succeed("rekey \(form) --password-file .bp --new-password-file .np --rounds 1 -q")
    #expect(try world.succeed("verify \(form) --password-file .np").contains("is intact"))
    try world.succeed("rekey \(form) --password-file .np --no-password --yes -q")
    let verified = try world.keyhaul("verify \(form)")
    #expect(verified.status == 0 && verified.output.contains("is intact"), "\(verified)")
    #expect(!flat(verified.errors).contains("a name that no device uses"), "every file was written anew: \(verified)")
  }

  @Test("is not changed if a file has a second name of a payload, which would be lost")
  func second() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    try world.succeed("convert b.tar -o b/ -q")
    try world.devices.run("cp b/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e b/51A4616E576DD33CD2ABADFEA874EB8FF246BF0E")
    let verified = try world.keyhaul("verify b --password-file .bp")
    #expect(
      verified.status == 0 && flat(verified.errors).contains("1 file repeats a payload under a second name"),
      "\(verified)")
    let outcome = try world.keyhaul("rekey b --password-file .bp --no-password --yes")
    #expect(outcome.status != 0 && outcome.errors.contains("51A4616E576DD33CD2ABADFEA874EB8FF246BF0E"), "\(outcome)")
    let copied = try world.keyhaul("convert b -o c.tar")
    #expect(copied.errors.contains("warning: 1 file not copied"), "\(copied)")
  }
}
