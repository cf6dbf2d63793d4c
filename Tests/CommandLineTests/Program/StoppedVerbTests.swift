import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("A verb that is stopped", .serialized)
struct StoppedVerbTests {
  /// Every line that waits for a key's derivation, as long as that takes.
  static let lines =
    ["rekey plain --in-place --new-password-command 'touch asked; cat .np'"]
    + [
      "inspect b --list", "verify b", "diff b b", "export b -o x.json", "export b -o x.csv --reveal",
      "export b --domain KeychainDomain --path keychain-backup.plist -o x.plist",
      "rekey b --in-place --new-password-file .np",
      "rekey b --in-place --no-password", "plan b --to new-phone -o x.plan", "why b --item 0",
      "restore b --to new-phone --yes",
    ].map { "\($0) --password-command 'touch asked; cat .bp'" }

  private func world() throws -> MoveWorld {
    try MoveWorld(named: "stopped verbs") { world in
      try world.write(Array("battery staple\n".utf8), to: ".np")
      try world.devices.run("mkdir tmp")
      try world.backUp(to: "b/")
      try world.ask(for: 10_000_000, in: "DPIC", of: "b")
      try world.succeed("backup old-phone -o plain/ --no-password -q")
    }
  }

  /// The files here, with their bytes.
  private func files(of world: MoveWorld) throws -> [String: [UInt8]] {
    try world.files(in: ".").filter { !$0.hasSuffix("/lock") && $0 != "asked" }
      .reduce(into: [:]) { $0[$1] = try world.read($1) }
  }

  @Test(
    "says what stopped it, and leaves nothing changed or behind; a quick run tries every verb with one of the signals",
    arguments: [("INT", Int32(130), "Ctrl-C"), ("TERM", 143, "signal 15"), ("HUP", 129, "signal 1")])
  func derivation(signal: String, status: Int32, name: String) throws {
    let world = try world()
    let before = try files(of: world)
    for line in signal == "INT" ? Self.lines : Cases.chosen(Self.lines, quick: 2) {
      // The shell becomes the program, which is then no job in the background: those hear no Ctrl-C.
      let outcome = try world.devices.run(
        """
        rm -f asked
        (while [ ! -e asked ]; do sleep 0.01; done; sleep 0.1; kill -\(signal) $$) &
        TMPDIR=$PWD/tmp exec keyhaul \(line)
        """)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(outcome.errors.hasSuffix("error: stopped by \(name)\n  why: nothing was changed\n"), "\(line)")
      #expect(outcome.errors.contains("error: stopped") && !outcome.errors.contains("warning"), "\(line): \(outcome)")
      #expect(outcome.output == "" || line.hasPrefix("restore"), "\(line): \(outcome.output)")
      try #expect(files(of: world) == before, "\(line)")
    }
  }

  @Test("twice at once is gone, and leaves as little; a quick run tries four of the verbs")
  func twice() throws {
    let world = try world()
    // What SQLite has open is closed by the next one who opens it.
    func lasting() throws -> [String: [UInt8]] {
      try files(of: world).filter { !$0.key.hasSuffix("-wal") && !$0.key.hasSuffix("-shm") }
    }
    let before = try lasting()
    let contents = try world.contents(of: "new-phone")
    for line in Cases.chosen(Self.lines, quick: 4) {
      let outcome = try world.devices.run(
        """
        rm -f asked
        (while [ ! -e asked ]; do sleep 0.01; done; sleep 0.1; kill -INT $$; kill -INT $$) &
        TMPDIR=$PWD/tmp exec keyhaul \(line)
        """)
      #expect(outcome.status == 130, "\(line): \(outcome)")
      try #expect(lasting() == before, "\(line)")
      #expect(try world.contents(of: "new-phone") == contents, "\(line)")
    }
  }

  @Test(
    "while it copies, takes away what it had begun",
    arguments: [("INT", Int32(130), "Ctrl-C"), ("TERM", 143, "signal 15")])
  func copying(signal: String, status: Int32, name: String) throws {
    let world = try world()
    // A payload that takes its time, and cannot be packed.
    try world.devices.run(
      "mkdir plain/ab; head -c 60000000 /dev/urandom > plain/ab/abababababababababababababababababababab")
    let before = try world.names()
    for line in [
      "convert plain -o copy.tar.gz", "convert plain -o copy.zip",
    ] {
      let outcome = try world.devices.run(
        """
        (while ! ls -A . plain | grep -q '[.]tmp$'; do sleep 0.002; done; kill -\(signal) $$) &
        TMPDIR=$PWD/tmp exec keyhaul \(line)
        """)
      #expect(outcome.status == status, "\(line): \(outcome)")
      #expect(
        outcome.errors.hasSuffix("error: stopped by \(name)\n  why: nothing was changed\n"), "\(line): \(outcome)")
      #expect(try world.names() == before, "\(line)")
      #expect(try world.names(in: "tmp").isEmpty && !world.names(in: "plain").contains { $0.hasPrefix(".") })
      try world.succeed("inspect plain --list -q")
    }
  }
}
