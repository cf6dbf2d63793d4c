import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Killed changes and copies of a backup", .serialized)
struct KilledRewriteTests {
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "killed archives") { sandbox in
      try sandbox.write(Array("battery staple\n".utf8), to: ".np")
      try sandbox.backUp(to: "b.tar")
      try sandbox.backUp(to: "b/")
      try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    }
  }

  /// Starts a command and kills it after a random time, which may be just after its end.
  private func kill(
    _ sandbox: PhoneSandbox, _ line: String, within seconds: Double, using random: inout SeededRandom
  ) throws -> Comment {
    let delay = Double.random(in: 0...seconds * 1.1, using: &random)
    try sandbox.devices.run(
      "keyhaul \(line) > log 2>&1 & sleep \(String(format: "%.3f", delay)); kill -KILL $! 2> /dev/null; wait $! 2> /dev/null"
    )
    return "\(line), killed after \(delay) s"
  }

  private func duration(_ sandbox: PhoneSandbox, _ line: String) throws -> Double {
    let start = Date()
    try sandbox.succeed(line)
    return Date().timeIntervalSince(start)
  }

  @Test(
    "A killed rekey leaves the old or the new backup (10 moments, 3 in a quick run)",
    arguments: ["b.tar", "b", "plain"])
  func rekeyed(name: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("cp -Rp \(name) kept")
    let isPlain = name == "plain"
    let line =
      isPlain
      ? "rekey plain --new-password-file .np --rounds 1" : "rekey \(name) --password-file .bp --new-password-file .np"
    let time = try duration(sandbox, line)
    var random = SeededRandom(seed: UInt64(name.count))
    for _ in 0..<Cases.count(10, quick: 3) {
      try sandbox.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
      let moment = try kill(sandbox, line, within: time, using: &random)
      // The old or the new password verifies the backup.
      let isOld = try sandbox.keyhaul("verify \(name)" + (isPlain ? "" : " --password-file .bp")).status == 0
      let isNew = try sandbox.keyhaul("verify \(name) --password-file .np").status == 0
      let isEncrypted =
        try sandbox.object(sandbox.succeed("inspect \(name) --json"))["encrypted"] as? Bool ?? true
      if isPlain { #expect(isEncrypted ? isNew : isOld, moment) } else { #expect(isOld != isNew, moment) }
    }
    // The next rekey deletes what a killed one left.
    try sandbox.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
    try sandbox.succeed(line)
    let leftovers = try sandbox.names().filter { $0.hasPrefix(".") && $0 != ".bp" && $0 != ".np" }
    let inside = name == "b" ? try sandbox.names(in: "b").filter { $0.hasPrefix(".") } : []
    #expect(leftovers.isEmpty && inside.isEmpty, "\(leftovers) \(inside)")
  }

  @Test(
    "A killed convert leaves the old or the complete new file (10 moments, 4 in a quick run)",
    arguments: [("b", "c.tar.gz"), ("b.tar", "c/")])
  func converted(from source: String, to target: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("cp -Rp \(source) kept")
    try sandbox.backUp("new-phone", to: "other.tar")
    func verify(_ name: String) throws -> Bool { try sandbox.keyhaul("verify \(name) --password-file .bp").status == 0 }
    func sourceDevice(_ name: String) throws -> String? {
      let device = try sandbox.object(sandbox.succeed("inspect \(name) --json"))["device"] as? [String: Any]
      return device?["name"] as? String
    }
    let line = "convert \(source) -o \(target) --yes"
    let time = try duration(sandbox, line)
    var random = SeededRandom(seed: UInt64(target.count))
    for round in 0..<Cases.count(10, quick: 4) {
      try sandbox.devices.run("rm -rf \(target)")
      if round % 2 == 1 { try sandbox.succeed("convert other.tar -o \(target) -q") }
      let moment = try kill(sandbox, line, within: time, using: &random)
      let exists = try sandbox.names().contains(target.replacing("/", with: ""))
      if exists {
        #expect(try verify(target), moment)
        #expect(try ["old-phone", "new-phone"].contains(sourceDevice(target)), moment)
      } else {
        #expect(round % 2 == 0, moment)
      }
      #expect(try sandbox.devices.run("diff -r \(source) kept").status == 0, moment)
    }
    // The next convert deletes what a killed one left.
    try sandbox.succeed(line)
    #expect(try sourceDevice(target) == "old-phone")
    #expect(try sandbox.names().filter { $0.hasPrefix(".") && ![".bp", ".np"].contains($0) } == [])
  }
}
