import Foundation
import Testing

@testable import keyhaul

@Suite("What exporting, rekeying and converting say and leave behind")
struct ArchiveSecrecyTests {
  private static let planted = "planted-4d1f-secret"
  private static let newPassword = "battery staple"

  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.write(Array("\(Self.newPassword)\n".utf8), to: ".np")
    try world.devices.run(
      "printf %s '\(Self.planted)' | keyhaul item add old-phone --service planted --account me --secret-file -")
    try world.backUp(to: "b.tar")
    try world.backUp(to: "b/")
    try world.succeed("backup old-phone -o plain/ --no-password -q")
    try FileManager.default.createDirectory(
      atPath: world.home.appending(path: "tmp").path, withIntermediateDirectories: true)
    return world
  }

  @Test("is no secret and no password, at any level of detail, in any file but the one that was asked for")
  func everything() throws {
    let world = try world()
    var said = Data()
    for mode in ["", "-vv", "--json", "-q"] {
      for line in [
        "export b.tar -o n.json --password-file .bp --yes", "export b.tar -o n.csv --password-file .bp --yes",
        "export old-phone -o n.json --yes", "export old-phone -o n.pem --yes", "export plain -o n.csv --reveal",
        "export b.tar -o n.json --password-file .np --yes",
        "export b.tar -o n.otp --format otpauth --password-file .bp",
        "export b --domain KeychainDomain --path keychain-backup.plist -o n.plist --password-file .bp --yes",
        "export b --domain KeychainDomain --path nothing -o n.x --password-file .bp",
        "convert b -o c.zip --yes", "convert c.zip -o c/ --yes",
        "rekey b.tar --password-file .bp --new-password-file .np",
        "rekey b.tar --password-file .bp --new-password-file .np",
        "rekey b.tar --password-file .np --new-password-file .bp",
        "rekey b --password-file .bp --new-password-file .np", "rekey b --password-file .np --new-password-file .bp",
        "rekey plain --new-password-file .np --rounds 5", "rekey plain --no-password --password-file .np",
        "rekey b --no-password --password-file .bp -n",
      ] {
        let outcome = try world.devices.run("TMPDIR=$PWD/tmp keyhaul \(line) \(mode)")
        said += Data((outcome.output + outcome.errors).utf8)
        #expect(try world.names(in: "tmp").isEmpty, "\(line)")
      }
    }
    #expect(said.count > 15_000)
    var places = ["what was said": said]
    for file in try world.files(in: ".") where !file.hasPrefix("devices/") && file != ".bp" && file != ".np" {
      places[file] = try Data(contentsOf: world.home.appending(path: file))
    }
    #expect(places["n.json"] != nil && places["c.zip"] != nil && places["n.plist"] != nil)
    for needle in [Self.planted, Self.newPassword, MoveWorld.password] {
      for spelling in [Data(needle.utf8), Data(Data(needle.utf8).base64EncodedString().utf8.dropLast(3))] {
        for (place, data) in places { #expect(data.range(of: spelling) == nil, "\(needle) in \(place)") }
      }
    }
    // And the search would have found it.
    try world.succeed("export b.tar -o yes.csv --reveal --password-file .bp")
    #expect(try Data(contentsOf: world.home.appending(path: "yes.csv")).range(of: Data(Self.planted.utf8)) != nil)
  }

  @Test("is readable by its owner alone, whatever the umask is")
  func modes() throws {
    let world = try world()
    for line in [
      "export b.tar -o x.csv --reveal --password-file .bp", "export b.tar -o x.json --password-file .bp",
      "export b.tar --domain KeychainDomain --path keychain-backup.plist -o x.plist --password-file .bp",
      "convert b -o x.tar", "convert b -o x/", "rekey b.tar --password-file .bp --new-password-file .np",
      "rekey plain --new-password-file .np --rounds 5",
    ] {
      #expect(try world.devices.run("umask 000; keyhaul \(line)").status == 0, "\(line)")
    }
    for name in ["x.csv", "x.json", "x.plist", "x.tar", "x/Manifest.plist", "b.tar", "plain/Manifest.plist"] {
      #expect(try world.devices.permissions(of: name) == 0o600, "\(name)")
    }
    #expect(try world.devices.permissions(of: "x") == 0o700)
    #expect(try world.devices.permissions(of: "plain") == 0o700)
  }

  @Test("asks for the new password twice, and for the old one first")
  func prompts() throws {
    let world = try world()
    let outcome = try world.keyhaul("rekey b.tar", typed: [MoveWorld.password, "fresh one", "fresh one"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.terminal == "Password of b.tar: \nNew password for b.tar: \nagain: \n")
    let different = try world.keyhaul("rekey b.tar", typed: ["fresh one", "a", "b"])
    #expect(different.status == 1 && different.errors.hasPrefix("error: the two passwords differ"))
    let wrong = try world.keyhaul("rekey b.tar", typed: [MoveWorld.password])
    #expect(wrong.status == 12, "the wrong password is said before a new one is asked for")
  }

  @Test("is the old backup or the new one, killed at any moment", arguments: ["b.tar", "b", "plain"])
  func killed(name: String) throws {
    let world = try world()
    try world.devices.run("cp -Rp \(name) kept")
    let isPlain = name == "plain"
    let line =
      isPlain
      ? "rekey plain --new-password-file .np --rounds 1" : "rekey \(name) --password-file .bp --new-password-file .np"
    let start = Date()
    try world.succeed(line)
    let time = Date().timeIntervalSince(start)
    var numbers = SeededNumbers(UInt64(name.count))
    for round in 0..<10 {
      try world.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
      let delay = Double.random(in: 0...time * 1.1, using: &numbers)
      try world.devices.run(
        "keyhaul \(line) > log 2>&1 & sleep \(String(format: "%.3f", delay)); kill -KILL $! 2> /dev/null; wait $! 2> /dev/null"
      )
      let old = try world.keyhaul("inspect \(name) --list" + (isPlain ? "" : " --password-file .bp")).status
      let new = try world.keyhaul("plan \(name) --to new-phone --password-file .np --json")
      #expect((old == 0) != (new.status == 0) || isPlain, "round \(round), after \(delay) s")
      if isPlain { #expect(old == 0 || new.status == 0, "round \(round), after \(delay) s") }
    }
    // The next one clears up what a killed one left.
    try world.devices.run("rm -rf \(name) && cp -Rp kept \(name)")
    try world.succeed(line)
    let left = try world.names().filter { $0.hasPrefix(".") && $0 != ".bp" && $0 != ".np" }
    let inside = name == "b" ? try world.names(in: "b").filter { $0.hasPrefix(".") } : []
    #expect(left.isEmpty && inside.isEmpty, "\(left) \(inside)")
  }
}
