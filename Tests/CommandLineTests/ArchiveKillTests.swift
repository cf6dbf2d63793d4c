import Foundation
import Testing

@testable import keyhaul

@Suite("A backup that is being changed or copied", .serialized)
struct ArchiveKillTests {
  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "b.tar")
    try world.backUp(to: "b/")
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    return world
  }

  /// Starts a line and kills it after a part of the time that it takes, some of it after its end.
  private func kill(_ world: MoveWorld, _ line: String, within seconds: Double, _ numbers: inout SeededNumbers) throws
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

  @Test("by rekey is the old one or the new one, killed at any moment", arguments: ["b.tar", "b", "plain"])
  func rekeyed(name: String) throws {
    let world = try world()
    try world.devices.run("cp -Rp \(name) kept")
    let isPlain = name == "plain"
    let line =
      isPlain
      ? "rekey plain --new-password-file .np --rounds 1" : "rekey \(name) --password-file .bp --new-password-file .np"
    let time = try duration(world, line)
    var numbers = SeededNumbers(UInt64(name.count))
    for _ in 0..<10 {
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
    "by convert is not there, or whole; what it replaces stands until then, and what is read is never touched",
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
    var numbers = SeededNumbers(UInt64(target.count))
    for round in 0..<10 {
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

@Suite("A disk that is full while a backup is changed or copied")
struct FullDiskTests {
  @Test("leaves the backup as it was, and no part of anything")
  func full() throws {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "b/")
    try world.backUp(to: "b.tar")
    try world.devices.run("cp -Rp b kept; cp b.tar kept.tar")
    let before = try world.names()
    for line in [
      "convert b -o c.tar", "convert b -o c.zip", "convert b.tar -o c/", "convert b -o c.tar.gz",
      "rekey b.tar --password-file .bp --new-password-file .np", "export b -o x.json --reveal --password-file .bp",
    ] {
      // A shell's limit stands for the disk: as much as one of the backup's files, and less than all of them.
      let outcome = try world.devices.run("ulimit -f 16; keyhaul \(line)")
      #expect(outcome.status == 1, "\(line): \(outcome)")
      let told = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(told.contains("error: could not write ") && told.contains(" file too large "), "\(line): \(told)")
      #expect(try world.names() == before, "\(line)")
    }
    #expect(try world.devices.run("diff -r b kept && cmp b.tar kept.tar").status == 0)
    let lost = try world.devices.run("keyhaul export b -o - --password-file .bp > /dev/full")
    #expect(lost.status == 1 && lost.errors.contains("error: could not write the result\n"), "\(lost)")
  }
}

@Suite("A verb that is stopped", .serialized)
struct StoppedVerbTests {
  /// Every line that waits for a key's derivation, as long as that takes.
  static let lines =
    ["rekey plain --rounds 3000000 --new-password-command 'touch asked; cat .np'"]
    + [
      "inspect b --list", "verify b", "diff b b", "export b -o x.json", "export b -o x.csv --reveal",
      "export b --domain KeychainDomain --path keychain-backup.plist -o x.plist", "rekey b --new-password-file .np",
      "rekey b --no-password", "plan b --to new-phone -o x.plan", "why b --item 0", "restore b --to new-phone --yes",
    ].map { "\($0) --password-command 'touch asked; cat .bp'" }

  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.devices.run("mkdir tmp")
    try world.succeed("backup old-phone -o b/ --password-file .bp --rounds 3000000 -q")
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    return world
  }

  /// The files here, with their bytes.
  private func files(of world: MoveWorld) throws -> [String: [UInt8]] {
    try world.files(in: ".").filter { !$0.hasSuffix("/lock") && $0 != "asked" }
      .reduce(into: [:]) { $0[$1] = try world.read($1) }
  }

  @Test(
    "says what stopped it and that nothing was changed, and leaves nothing behind",
    arguments: [("INT", Int32(130), "Ctrl-C"), ("TERM", 143, "signal 15"), ("HUP", 129, "signal 1")])
  func derivation(signal: String, status: Int32, name: String) throws {
    let world = try world()
    let before = try files(of: world)
    for line in Self.lines {
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

  @Test("twice at once is gone, and leaves as little")
  func twice() throws {
    let world = try world()
    let before = try files(of: world)
    for line in Self.lines {
      let outcome = try world.devices.run(
        """
        rm -f asked
        (while [ ! -e asked ]; do sleep 0.01; done; sleep 0.1; kill -INT $$; kill -INT $$) &
        TMPDIR=$PWD/tmp exec keyhaul \(line)
        """)
      #expect(outcome.status == 130, "\(line): \(outcome)")
      try #expect(files(of: world) == before, "\(line)")
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
