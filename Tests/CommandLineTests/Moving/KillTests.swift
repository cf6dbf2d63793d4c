import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Killed in the middle", .serialized)
struct KillTests {
  /// Seconds that a line takes here and now.
  private func duration(_ world: MoveWorld, _ line: String) throws -> Double {
    let start = Date()
    #expect(try world.devices.run(line).status == 0, "\(line)")
    return Date().timeIntervalSince(start)
  }

  /// Starts a line, kills it after a while, and says whether it was still there.
  private func kill(_ world: MoveWorld, _ line: String, after seconds: Double) throws {
    try world.devices.run(
      "\(line) > log 2>&1 & sleep \(String(format: "%.3f", seconds)); kill -KILL $! 2> /dev/null; wait $! 2> /dev/null")
  }

  @Test("a restore has happened or has not, fifty times, or ten in a quick run")
  func restore() throws {
    let world = try MoveWorld()
    try world.devices.run("printf x | keyhaul item add new-phone --service mine --account me --secret-file -")
    try world.backUp(to: "b.tar")
    try world.devices.run("cp -Rp devices/new-phone before")
    let line = "keyhaul restore b.tar --to new-phone --password-file .bp --yes"
    let find = "item find new-phone --json --reveal"
    let old = try world.succeed(find)
    let time = try duration(world, line)
    let new = try world.succeed(find)
    #expect(old != new)
    let files = try world.names(in: "devices/new-phone")
    var numbers = SeededRandom(seed: 50)
    for round in 0..<Cases.count(50, quick: 10) {
      try world.devices.run("rm -rf devices/new-phone && cp -Rp before devices/new-phone")
      let delay = Double.random(in: 0...time * 1.1, using: &numbers)
      try kill(world, line, after: delay)
      let now = try world.succeed(find)
      #expect(now == old || now == new, "round \(round), after \(delay) s")
      guard round % 10 == 9, now == old else { continue }
      // The next command works and clears up what the killed one left.
      try world.succeed("restore b.tar --to new-phone --password-file .bp --yes")
      #expect(try world.succeed(find) == new)
      #expect(try world.names(in: "devices/new-phone") == files, "round \(round)")
    }
  }

  @Test(
    "a backup over another leaves the old one or the new one, thirty times, or nine in a quick run",
    arguments: ["b.zip", "b/", "b.tar"])
  func backup(name: String) throws {
    let world = try MoveWorld()
    try world.backUp("new-phone", to: name)
    let line = "keyhaul backup old-phone -o \(name) --password-file .bp --rounds 1 --yes"
    try world.devices.run("cp -Rp \(name) kept")
    let time = try duration(world, line)
    var numbers = SeededRandom(seed: UInt64(name.count))
    for round in 0..<Cases.count(10, quick: 3) {
      let delay = Double.random(in: 0...time * 1.1, using: &numbers)
      try kill(world, line, after: delay)
      let plan = try world.plan(name)
      let maker = (plan["source"] as? [String: Any])?["device_name"] as? String
      #expect(["old-phone", "new-phone"].contains(maker), "round \(round), after \(delay) s")
      #expect((plan["items"] as? [Any])?.count == (maker == "old-phone" ? 18 : 2))
      let leftovers = try world.names().filter { $0.hasPrefix(".b") && $0 != ".bp" }
      #expect(leftovers.count <= 1, "\(leftovers)")
      try world.backUp("new-phone", to: name)
      #expect(try world.names().filter { $0.hasPrefix(".") } == [".bp"], "round \(round)")
    }
  }

  @Test("by Ctrl-C, a restore says that nothing was changed")
  func interrupted() throws {
    let world = try MoveWorld()
    try world.backUp(to: "b/")
    try world.ask(for: 10_000_000, in: "DPIC", of: "b")
    let before = try world.contents(of: "new-phone")
    // The shell becomes the program, which is then no job in the background: those hear no Ctrl-C.
    let outcome = try world.devices.run(
      """
      (while [ ! -e asked ]; do sleep 0.01; done; sleep 0.1; kill -INT $$) &
      exec keyhaul restore b/ --to new-phone --password-command 'touch asked; cat .bp' --yes
      """)
    #expect(outcome.status == 130)
    #expect(outcome.errors == "error: stopped by Ctrl-C\n  why: nothing was changed\n")
    #expect(try world.contents(of: "new-phone") == before)
  }
}
