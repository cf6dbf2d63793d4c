import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Processes of password commands")
struct SecretCommandTests {
  private let sandbox: PhoneSandbox

  init() throws {
    sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
  }

  /// Returns the processes that still run, of those whose IDs the command wrote to a file.
  private func running(_ name: String) throws -> [Int32] {
    let text = try String(contentsOfFile: sandbox.home.path + "/" + name, encoding: .utf8)
    return text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }.filter { kill($0, 0) == 0 }
  }

  /// Waits up to two seconds until the killed processes are gone. Zombies count as gone.
  private func expectGone(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    var remaining = try running(name)
    for _ in 0..<100 where !remaining.isEmpty {
      usleep(20_000)
      remaining = try running(name).filter { !isZombie($0) }
    }
    #expect(remaining.isEmpty, sourceLocation: sourceLocation)
    for process in remaining { kill(process, SIGKILL) }
  }

  private func isZombie(_ process: Int32) -> Bool {
    let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
    return text.split(separator: ")").last?.dropFirst().first == "Z"
  }

  @Test("Processes that a password command leaves behind do not delay Keyhaul, and do not stay")
  func end() throws {
    let start = ContinuousClock.now
    let outcome = try sandbox.devices.run(
      "keyhaul verify b --password-command 'sleep 300 & echo $! >left; (sleep 300; echo x) & echo $! >>left; cat .bp'")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(ContinuousClock.now - start < .seconds(60))
    try expectGone("left")
  }

  @Test("Processes that a failed password command leaves behind do not stay")
  func failure() throws {
    let outcome = try sandbox.devices.run("keyhaul verify b --password-command 'sleep 300 & echo $! >left; exit 3'")
    #expect(outcome.status == 1 && outcome.errors.contains("it exited with code 3"), "\(outcome)")
    try expectGone("left")
  }

  @Test("All 900,000 bytes that a password command prints are the password")
  func output() throws {
    func command(_ count: Int) -> String {
      "--password-command 'sleep 300 & head -c \(count) /dev/zero | tr \"\\\\0\" a'"
    }
    let created = try sandbox.devices.run("keyhaul backup old-phone -o long.tar --rounds 1 -q \(command(900_000))")
    #expect(created.status == 0, "\(created)")
    let same = try sandbox.devices.run("keyhaul verify long.tar \(command(900_000))")
    #expect(same.status == 0, "\(same)")
    let shorter = try sandbox.devices.run("keyhaul verify long.tar \(command(899_999))")
    #expect(shorter.status == 12, "\(shorter)")
  }

  @Test("No process of a password command stays after Keyhaul gets SIGTERM once or twice", arguments: [1, 2])
  func signals(count: Int) throws {
    let kills = String(repeating: "kill -TERM $!; ", count: count)
    let outcome = try sandbox.devices.run(
      """
      keyhaul verify b --password-command 'trap "" TERM; sleep 300 & echo $$ $! >left; sleep 300' &
      while [ ! -s left ]; do sleep 0.05; done; \(kills)wait $!
      """)
    #expect(outcome.status == 143, "\(outcome)")
    try expectGone("left")
  }

  @Test("A password command that stops itself ends with an error if no shell can continue it")
  func stops() throws {
    let outcome = try sandbox.devices.run(
      "setsid -w keyhaul verify b --password-command 'echo $$ >left; kill -STOP $$; cat .bp'")
    #expect(outcome.status == 1, "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("it uses a terminal that another program has"), "\(outcome)")
    try expectGone("left")
  }
}
