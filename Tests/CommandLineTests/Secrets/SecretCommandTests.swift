import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Processes of a password command")
struct SecretCommandTests {
  private let world: MoveWorld

  init() throws {
    world = try MoveWorld()
    try world.backUp(to: "b/")
  }

  /// The processes whose numbers the command wrote into a file, as far as they run.
  private func running(_ name: String) throws -> [Int32] {
    let text = try String(contentsOfFile: world.home.path + "/" + name, encoding: .utf8)
    return text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }.filter { kill($0, 0) == 0 }
  }

  /// Waits a moment for those that were killed to be gone; who adopts them collects them.
  private func expectGone(_ name: String, _ place: SourceLocation = #_sourceLocation) throws {
    var left = try running(name)
    for _ in 0..<100 where !left.isEmpty {
      usleep(20_000)
      left = try running(name).filter { !isZombie($0) }
    }
    #expect(left.isEmpty, sourceLocation: place)
    for process in left { kill(process, SIGKILL) }
  }

  private func isZombie(_ process: Int32) -> Bool {
    let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
    return text.split(separator: ")").last?.dropFirst().first == "Z"
  }

  @Test("Those that it leaves behind delay nothing and do not stay when it ends")
  func end() throws {
    let start = ContinuousClock.now
    let outcome = try world.devices.run(
      "keyhaul verify b --password-command 'sleep 300 & echo $! >left; (sleep 300; echo x) & echo $! >>left; cat .bp'")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(ContinuousClock.now - start < .seconds(60))
    try expectGone("left")
  }

  @Test("Those that it leaves behind do not stay when it fails")
  func failure() throws {
    let outcome = try world.devices.run("keyhaul verify b --password-command 'sleep 300 & echo $! >left; exit 3'")
    #expect(outcome.status == 1 && outcome.errors.contains("it exited with code 3"), "\(outcome)")
    try expectGone("left")
  }

  @Test("What it printed before its end is read whole, however much that is")
  func output() throws {
    let outcome = try world.devices.run(
      "keyhaul verify b --password-command 'sleep 300 & head -c 900000 /dev/zero | tr \"\\\\0\" a'")
    #expect(outcome.status == 12, "\(outcome)")
  }

  @Test("None stays when Keyhaul is asked to end, and none when it is asked twice", arguments: [1, 2])
  func signals(count: Int) throws {
    let kills = String(repeating: "kill -TERM $!; ", count: count)
    let outcome = try world.devices.run(
      """
      keyhaul verify b --password-command 'trap "" TERM; sleep 300 & echo $$ $! >left; sleep 300' &
      while [ ! -s left ]; do sleep 0.05; done; \(kills)wait $!
      """)
    #expect(outcome.status == 143, "\(outcome)")
    try expectGone("left")
  }

  @Test("A command that stops itself ends with an error if no shell is there to go on with it")
  func stops() throws {
    let outcome = try world.devices.run(
      "setsid -w keyhaul verify b --password-command 'echo $$ >left; kill -STOP $$; cat .bp'")
    #expect(outcome.status == 1, "\(outcome)")
    #expect(flat(outcome.errors).contains("it uses a terminal that another program has"), "\(outcome)")
    try expectGone("left")
  }
}
