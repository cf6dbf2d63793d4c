import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("A backup that is being changed or copied", .serialized)
struct ArchiveKillTests {
  private func world() throws -> MoveWorld {
    try MoveWorld(named: "killed archives") { world in
      try world.write(Array("battery staple\n".utf8), to: ".np")
      try world.backUp(to: "b.tar")
      try world.backUp(to: "b/")
      try world.succeed("backup old-phone -o plain/ --no-password -q")
    }
  }

  /// Starts a line and kills it after a part of the time that it takes, some of it after its end.
  private func kill(_ world: MoveWorld, _ line: String, within seconds: Double, _ numbers: inout SeededRandom) throws
    -> Comment
  {
    let delay = Double.random(in: 0...seconds * 1.1, using: &numbers)
    try world.devices.run(
      "keyhaul \(line) > log 2>&1 & sleep \(String(format: "%.3f", delay)); kill -KILL $! 2> /dev/null; wait $! 2> /dev/null"
    )
    return "\(line), killed after \(delay) s"
  }

  private func duration(_ world: MoveWorld, _ line: String) throws -> Double {
    let start = Date()
    try world.succeed(line)
    return Date().timeIntervalSince(start)
  }

  @Test(
    "by rekey is the old one or the new one, killed at ten moments, or three in a quick run",
    arguments: ["b.tar", "b", "plain"])
  func rekeyed(name: String) throws {
    let world = try world()
    try world.devices.run("cp -Rp \(name) kept")
    let isPlain = name == "plain"
    let line =
      isPlain
      ? "rekey plain --new-password-file .np --rounds 1" : "rekey \(name) --password-file .bp --new-password-file .np"
    let time = try duration(world, line)
    var numbers = SeededRandom(seed: UInt64(name.count))
    for _ in 0..<Cases.count(10, quick: 3) {
      try world.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
      let moment = try kill(world, line, within: time, &numbers)
      // Whichever it is, it is whole.
      let isOld = try world.keyhaul("verify \(name)" + (isPlain ? "" : " --password-file .bp")).status == 0
      let isNew = try world.keyhaul("verify \(name) --password-file .np").status == 0
      let isEncrypted =
        try world.object(world.succeed("inspect \(name) --json"))["encrypted"] as? Bool ?? true
      if isPlain { #expect(isEncrypted ? isNew : isOld, moment) } else { #expect(isOld != isNew, moment) }
    }
    // The next one clears up what a killed one left.
    try world.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
    try world.succeed(line)
    let left = try world.names().filter { $0.hasPrefix(".") && $0 != ".bp" && $0 != ".np" }
    let inside = name == "b" ? try world.names(in: "b").filter { $0.hasPrefix(".") } : []
    #expect(left.isEmpty && inside.isEmpty, "\(left) \(inside)")
  }

  @Test(
    "by convert is missing, or whole; what it replaces stands until then: killed ten times, or four in a quick run",
    arguments: [("b", "c.tar.gz"), ("b.tar", "c/")])
  func converted(from source: String, to target: String) throws {
    let world = try world()
    try world.devices.run("cp -Rp \(source) kept")
    try world.backUp("new-phone", to: "other.tar")
    func verify(_ name: String) throws -> Bool { try world.keyhaul("verify \(name) --password-file .bp").status == 0 }
    func maker(_ name: String) throws -> String? {
      let device = try world.object(world.succeed("inspect \(name) --json"))["device"] as? [String: Any]
      return device?["name"] as? String
    }
    let line = "convert \(source) -o \(target) --yes"
    let time = try duration(world, line)
    var numbers = SeededRandom(seed: UInt64(target.count))
    for round in 0..<Cases.count(10, quick: 4) {
      try world.devices.run("rm -rf \(target)")
      if round % 2 == 1 { try world.succeed("convert other.tar -o \(target) -q") }
      let moment = try kill(world, line, within: time, &numbers)
      let exists = try world.names().contains(target.replacing("/", with: ""))
      if exists {
        #expect(try verify(target), moment)
        #expect(try ["old-phone", "new-phone"].contains(maker(target)), moment)
      } else {
        #expect(round % 2 == 0, moment)
      }
      #expect(try world.devices.run("diff -r \(source) kept").status == 0, moment)
    }
    // The next one clears up.
    try world.succeed(line)
    #expect(try maker(target) == "old-phone")
    #expect(try world.names().filter { $0.hasPrefix(".") && ![".bp", ".np"].contains($0) } == [])
  }
}
