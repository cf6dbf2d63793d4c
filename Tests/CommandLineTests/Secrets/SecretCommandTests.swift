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

  /// Returns the processes that still run. The password command has written the IDs of its processes to the file `left`.
  private func remainingProcesses() throws -> [Int32] {
    let text = try String(contentsOfFile: sandbox.home.path + "/left", encoding: .utf8)
    return text.split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }.filter { kill($0, 0) == 0 }
  }

  /// Waits up to twenty seconds until the killed processes are gone. Zombies count as gone.
  ///
  /// Processes that were not killed would still sleep for minutes.
  private func expectNoRemainingProcess(sourceLocation: SourceLocation = #_sourceLocation) throws {
    var remaining = try remainingProcesses()
    for _ in 0..<1000 where !remaining.isEmpty {
      usleep(20_000)
      remaining = try remainingProcesses().filter { !isZombie($0) }
    }
    #expect(remaining.isEmpty, sourceLocation: sourceLocation)
    for process in remaining { kill(process, SIGKILL) }
  }

  private func isZombie(_ process: Int32) -> Bool {
    // The line is "PID (NAME) STATE …".
    let line = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
    return line.split(separator: ")").last?.dropFirst().first == "Z"
  }

  @Test("Processes that a password command leaves behind do not delay Keyhaul, and do not stay")
  func end() throws {
    let start = ContinuousClock.now
    let outcome = try sandbox.devices.run(
      "keyhaul verify b --password-command 'sleep 300 & echo $! >left; (sleep 300; echo x) & echo $! >>left; cat .bp'")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(ContinuousClock.now - start < .seconds(60))
    try expectNoRemainingProcess()
  }

  @Test("Processes that a failed password command leaves behind do not stay")
  func failure() throws {
    let outcome = try sandbox.devices.run("keyhaul verify b --password-command 'sleep 300 & echo $! >left; exit 3'")
    #expect(outcome.status == 1 && outcome.errors.contains("it exited with code 3"), "\(outcome)")
    try expectNoRemainingProcess()
  }

  @Test("A password command works if Keyhaul's parent process ignores the end of its children")
  func ignoredChildSignal() throws {
    let outcome = try sandbox.devices.run("env --ignore-signal=CHLD keyhaul verify b --password-command 'cat .bp'")
    #expect(outcome.status == 0, "\(outcome)")
  }

  @Test("All 900,000 bytes that a password command prints are the password")
  func output() throws {
    func passwordFlag(byteCount: Int) -> String {
      "--password-command 'sleep 300 & head -c \(byteCount) /dev/zero | tr \"\\\\0\" a'"
    }
    let longPassword = passwordFlag(byteCount: 900_000)
    let created = try sandbox.devices.run("keyhaul backup old-phone -o long.tar --rounds 1 -q \(longPassword)")
    #expect(created.status == 0, "\(created)")
    let withSamePassword = try sandbox.devices.run("keyhaul verify long.tar \(longPassword)")
    #expect(withSamePassword.status == 0, "\(withSamePassword)")
    let withShorterPassword = try sandbox.devices.run("keyhaul verify long.tar \(passwordFlag(byteCount: 899_999))")
    #expect(withShorterPassword.status == 12, "\(withShorterPassword)")
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
    try expectNoRemainingProcess()
  }

  @Test("A password command that stops itself ends with an error if no shell can continue it")
  func stops() throws {
    let outcome = try sandbox.devices.run(
      "setsid -w keyhaul verify b --password-command 'echo $$ >left; kill -STOP $$; cat .bp'")
    #expect(outcome.status == 1, "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("it uses a terminal that another program has"), "\(outcome)")
    try expectNoRemainingProcess()
  }
}
