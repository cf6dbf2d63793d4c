import Foundation
import TestSupport
import Testing

@testable import keyhaul

/// Serialized, because other tests would slow the commands, and each kill is timed by the measured duration of an
/// uninterrupted command.
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

  /// Runs a command and kills it after a random time, which may be just after its end.
  ///
  /// - Parameter seconds: The duration of the command.
  /// - Returns: The command and the time, for failure messages.
  private func runAndKill(
    _ line: String, within seconds: Double, in sandbox: PhoneSandbox, using random: inout SeededRandom
  ) throws -> Comment {
    let delay = Double.random(in: 0...seconds * 1.1, using: &random)
    try sandbox.run(line, killedAfter: delay)
    return "\(line), killed after \(delay) s"
  }

  @Test(
    "A rekey that is killed at any moment leaves the old or the new backup",
    arguments: ["b.tar", "b", "plain"])
  func rekeyed(name: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("cp -Rp \(name) original")
    let isPlain = name == "plain"
    let line =
      isPlain
      ? "rekey plain --new-password-file .np --rounds 1" : "rekey \(name) --password-file .bp --new-password-file .np"
    let duration = try sandbox.duration(of: line)
    var random = SeededRandom(seed: UInt64(name.count))
    for _ in 0..<Cases.count(10, quick: 3) {
      try sandbox.devices.run("rm -rf \(name) && cp -Rp original \(name)")
      let description = try runAndKill(line, within: duration, in: sandbox, using: &random)
      let isOld = try sandbox.keyhaul("verify \(name)" + (isPlain ? "" : " --password-file .bp")).status == 0
      let isNew = try sandbox.keyhaul("verify \(name) --password-file .np").status == 0
      if isPlain {
        // `inspect` states which of the two backups is there. This backup has to be complete.
        let inspected = try sandbox.object(sandbox.succeed("inspect \(name) --json"))
        let isEncrypted = inspected["encrypted"] as? Bool ?? true
        #expect(isEncrypted ? isNew : isOld, description)
      } else {
        #expect(isOld != isNew, description)
      }
    }
    // The next rekey deletes the leftovers of the killed rekeys.
    try sandbox.devices.run("rm -rf \(name) && cp -Rp original \(name)")
    try sandbox.succeed(line)
    let leftovers = try sandbox.names().filter { $0.hasPrefix(".") && $0 != ".bp" && $0 != ".np" }
    let leftoversInBackup = name == "b" ? try sandbox.names(in: "b").filter { $0.hasPrefix(".") } : []
    #expect(leftovers.isEmpty && leftoversInBackup.isEmpty, "\(leftovers) \(leftoversInBackup)")
  }

  @Test(
    "A convert that is killed at any moment leaves the old or the complete new file",
    arguments: [("b", "c.tar.gz"), ("b.tar", "c/")])
  func converted(from source: String, to target: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("cp -Rp \(source) original")
    try sandbox.backUp("new-phone", to: "other.tar")
    func sourceDevice(of backup: String) throws -> String? {
      let device = try sandbox.object(sandbox.succeed("inspect \(backup) --json"))["device"] as? [String: Any]
      return device?["name"] as? String
    }
    let line = "convert \(source) -o \(target) --yes"
    let duration = try sandbox.duration(of: line)
    var random = SeededRandom(seed: UInt64(target.count))
    for round in 0..<Cases.count(10, quick: 4) {
      try sandbox.devices.run("rm -rf \(target)")
      let replacesBackup = round % 2 == 1
      if replacesBackup { try sandbox.succeed("convert other.tar -o \(target) -q") }
      let description = try runAndKill(line, within: duration, in: sandbox, using: &random)
      let exists = try sandbox.names().contains(target.replacing("/", with: ""))
      if exists {
        #expect(try sandbox.keyhaul("verify \(target) --password-file .bp").status == 0, description)
        #expect(try ["old-phone", "new-phone"].contains(sourceDevice(of: target)), description)
      } else {
        #expect(!replacesBackup, description)
      }
      #expect(try sandbox.devices.run("diff -r \(source) original").status == 0, description)
    }
    // The next convert deletes the leftovers of the killed conversions.
    try sandbox.succeed(line)
    #expect(try sourceDevice(of: target) == "old-phone")
    #expect(try sandbox.names().filter { $0.hasPrefix(".") && ![".bp", ".np"].contains($0) } == [])
  }
}
