import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Commands stopped by a signal", .serialized)
struct StoppedCommandTests {
  /// The commands that derive a key for several seconds.
  static let lines =
    ["rekey plain --in-place --new-password-command 'touch asked; cat .np'"]
    + [
      "inspect b --list", "verify b", "diff b b", "export b -o x.json", "export b -o x.csv --reveal",
      "export b --domain KeychainDomain --path keychain-backup.plist -o x.plist",
      "rekey b --in-place --new-password-file .np",
      "rekey b --in-place --no-password", "plan b --to new-phone -o x.plan", "why b --item 0",
      "restore b --to new-phone --yes",
    ].map { "\($0) --password-command 'touch asked; cat .bp'" }

  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "stopped verbs") { sandbox in
      try sandbox.write(Array("battery staple\n".utf8), to: ".np")
      try sandbox.devices.run("mkdir tmp")
      try sandbox.backUp(to: "b/")
      try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
      try sandbox.succeed("backup old-phone -o plain/ --no-password -q")
    }
  }

  /// Runs a command, and sends signals to it as soon as a condition in shell syntax is true.
  private func run(
    _ line: String, in sandbox: PhoneSandbox, sending signals: [String], after condition: String
  ) throws -> BuiltProgram.Outcome {
    let kills = signals.map { "kill -\($0) $$" }.joined(separator: "; ")
    // With exec, the program is not a background job, which would ignore Ctrl-C.
    return try sandbox.devices.run(
      """
      rm -f asked
      (until \(condition); do sleep 0.002; done; \(kills)) &
      TMPDIR=$PWD/tmp exec keyhaul \(line)
      """)
  }

  /// A shell condition that is true a short time after the command read its password, while the command derives a key.
  private static let keyDerivationCondition = "[ -e asked ] && sleep 0.1"

  /// Returns the files in the sandbox with their contents, except lock files and `asked`.
  private func files(of sandbox: PhoneSandbox) throws -> [String: [UInt8]] {
    try sandbox.files(in: ".").filter { !$0.hasSuffix("/lock") && $0 != "asked" }
      .reduce(into: [:]) { $0[$1] = try sandbox.read($1) }
  }

  @Test(
    "A stopped command names the signal and leaves no change or file (2 commands for TERM and HUP in a quick run)",
    arguments: [("INT", Int32(130), "Ctrl-C"), ("TERM", 143, "signal 15"), ("HUP", 129, "signal 1")])
  func derivation(signal: String, status: Int32, name: String) throws {
    let sandbox = try sandbox()
    let before = try files(of: sandbox)
    for line in signal == "INT" ? Self.lines : Cases.chosen(Self.lines, quick: 2) {
      let outcome = try run(line, in: sandbox, sending: [signal], after: Self.keyDerivationCondition)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(outcome.errors.hasSuffix("error: stopped by \(name)\n  why: nothing was changed\n"), "\(line)")
      #expect(outcome.errors.contains("error: stopped") && !outcome.errors.contains("warning"), "\(line): \(outcome)")
      #expect(outcome.output == "" || line.hasPrefix("restore"), "\(line): \(outcome.output)")
      try #expect(files(of: sandbox) == before, "\(line)")
    }
  }

  @Test("A command that is stopped twice exits immediately and leaves no change or file (4 commands in a quick run)")
  func twice() throws {
    let sandbox = try sandbox()
    // SQLite's own files may stay until the database is next opened.
    func withoutSQLiteFiles() throws -> [String: [UInt8]] {
      try files(of: sandbox).filter { !$0.key.hasSuffix("-wal") && !$0.key.hasSuffix("-shm") }
    }
    let before = try withoutSQLiteFiles()
    let contents = try sandbox.contents(of: "new-phone")
    for line in Cases.chosen(Self.lines, quick: 4) {
      let outcome = try run(line, in: sandbox, sending: ["INT", "INT"], after: Self.keyDerivationCondition)
      #expect(outcome.status == 130, "\(line): \(outcome)")
      try #expect(withoutSQLiteFiles() == before, "\(line)")
      #expect(try sandbox.contents(of: "new-phone") == contents, "\(line)")
    }
  }

  @Test(
    "A stopped copy is removed",
    arguments: [("INT", Int32(130), "Ctrl-C"), ("TERM", 143, "signal 15")])
  func copying(signal: String, status: Int32, name: String) throws {
    let sandbox = try sandbox()
    // A large payload that cannot be compressed, so that the copy takes a while.
    try sandbox.devices.run(
      "mkdir plain/ab; head -c 60000000 /dev/urandom > plain/ab/abababababababababababababababababababab")
    let before = try sandbox.names()
    for line in ["convert plain -o copy.tar.gz", "convert plain -o copy.zip"] {
      let outcome = try run(line, in: sandbox, sending: [signal], after: "ls -A . plain | grep -q '[.]tmp$'")
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(
        outcome.errors.hasSuffix("error: stopped by \(name)\n  why: nothing was changed\n"), "\(line): \(outcome)")
      #expect(try sandbox.names() == before, "\(line)")
      #expect(try sandbox.names(in: "tmp").isEmpty && !sandbox.names(in: "plain").contains { $0.hasPrefix(".") })
      try sandbox.succeed("inspect plain --list -q")
    }
  }
}
