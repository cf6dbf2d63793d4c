import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Killed restores and backups", .serialized)
struct KilledMoveTests {
  @Test("A killed restore has happened completely or not at all (50 times, 10 in a quick run)")
  func restore() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try sandbox.backUp(to: "b.tar")
    try sandbox.devices.run("cp -Rp devices/new-phone before")
    let line = "restore b.tar --to new-phone --password-file .bp --yes"
    let find = "item find new-phone --json --reveal"
    let oldItems = try sandbox.succeed(find)
    let duration = try sandbox.duration(of: line)
    let newItems = try sandbox.succeed(find)
    #expect(oldItems != newItems)
    let files = try sandbox.names(in: "devices/new-phone")
    var random = SeededRandom(seed: 50)
    for round in 0..<Cases.count(50, quick: 10) {
      try sandbox.devices.run("rm -rf devices/new-phone && cp -Rp before devices/new-phone")
      let delay = Double.random(in: 0...duration * 1.1, using: &random)
      try sandbox.run(line, killedAfter: delay)
      let items = try sandbox.succeed(find)
      #expect(items == oldItems || items == newItems, "round \(round), after \(delay) s")
      guard round % 10 == 9, items == oldItems else { continue }
      // The next restore works, and deletes the leftovers of the killed restore.
      try sandbox.succeed(line)
      #expect(try sandbox.succeed(find) == newItems)
      #expect(try sandbox.names(in: "devices/new-phone") == files, "round \(round)")
    }
  }

  @Test(
    "A killed command that replaces a backup leaves the old or the new backup (30 times, 9 in a quick run)",
    arguments: ["b.zip", "b/", "b.tar"])
  func backup(name: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp("new-phone", to: name)
    let line = "backup old-phone -o \(name) --password-file .bp --rounds 1 --yes"
    let duration = try sandbox.duration(of: line)
    var random = SeededRandom(seed: UInt64(name.count))
    for round in 0..<Cases.count(10, quick: 3) {
      let delay = Double.random(in: 0...duration * 1.1, using: &random)
      try sandbox.run(line, killedAfter: delay)
      let plan = try sandbox.plan(name)
      let sourceDevice = (plan["source"] as? [String: Any])?["device_name"] as? String
      #expect(["old-phone", "new-phone"].contains(sourceDevice), "round \(round), after \(delay) s")
      // A backup of old-phone has 18 items, and a backup of new-phone has 2.
      #expect((plan["items"] as? [Any])?.count == (sourceDevice == "old-phone" ? 18 : 2))
      let leftovers = try sandbox.names().filter { $0.hasPrefix(".b") && $0 != ".bp" }
      #expect(leftovers.count <= 1, "\(leftovers)")
      try sandbox.backUp("new-phone", to: name)
      #expect(try sandbox.names().filter { $0.hasPrefix(".") } == [".bp"], "round \(round)")
    }
  }

  @Test("After Ctrl-C, a restore reports that nothing was changed")
  func interrupted() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    // With exec, the program is not a background job, which would ignore Ctrl-C.
    let outcome = try sandbox.devices.run(
      """
      (while [ ! -e asked ]; do sleep 0.01; done; sleep 0.1; kill -INT $$) &
      exec keyhaul restore b/ --to new-phone --password-command 'touch asked; cat .bp' --yes
      """)
    #expect(outcome.status == 130)
    #expect(outcome.errors == "error: stopped by Ctrl-C\n  why: nothing was changed\n")
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
  }
}
