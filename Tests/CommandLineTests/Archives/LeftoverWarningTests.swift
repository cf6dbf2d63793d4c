import Foundation
import Testing

@testable import keyhaul

/// A message as it is before it is broken into lines.
private func unwrapped(_ text: String) -> String { text.split { $0.isWhitespace }.joined(separator: " ") }

@Suite("What a killed rekey left beside a backup")
struct LeftoverWarningTests {
  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "b/")
    return world
  }

  @Test(
    "is told by each verb that opens that backup, with its name, what it is and what to do",
    arguments: [
      "inspect b", "verify b --password-file .bp", "convert b -o c.zip", "export b -o x.json --password-file .bp",
    ])
  func told(line: String) throws {
    let world = try world()
    // The backup as it was before it had a password: what a kill between the exchange and the removal leaves.
    try world.succeed("backup old-phone -o .b.1f2e.tmp/ --no-password -q")
    let errors = try unwrapped(world.keyhaul(line).errors)
    #expect(errors.contains("warning: an interrupted run left a file or folder next to b"))
    #expect(errors.contains("/.b.1f2e.tmp: it is a backup whose files are not encrypted"))
    #expect(errors.contains("try: delete it; the next rekey of b also deletes it"))
  }

  @Test("goes with the next rekey, and stays with a dry run")
  func swept() throws {
    let world = try world()
    try world.succeed("backup old-phone -o .b.1f2e.tmp/ --no-password -q")
    let line = "rekey b --password-file .bp --new-password-file .np"
    try world.succeed("\(line) --dry-run")
    #expect(try world.names().contains(".b.1f2e.tmp"))
    try world.succeed(line)
    #expect(try !world.names().contains(".b.1f2e.tmp"))
    #expect(try !world.keyhaul("inspect b").errors.contains("warning"))
  }

  @Test("is told beside what a link leads to")
  func linked() throws {
    let world = try world()
    try world.devices.run("mkdir elsewhere && mv b elsewhere/b && ln -s elsewhere/b link")
    try world.succeed("backup old-phone -o elsewhere/.b.1f2e.tmp/ --no-password -q")
    let errors = try unwrapped(world.keyhaul("inspect link").errors)
    #expect(errors.contains("elsewhere/.b.1f2e.tmp: it is a backup whose files"))
  }
}

@Suite("A one-file backup whose folder has a name beyond ASCII, under any locale")
struct EntryNameProgramTests {
  @Test("is inspected, verified, rekeyed and copied, and keeps that name", arguments: ["C", "C.UTF-8"])
  func everyVerb(locale: String) throws {
    let world = try MoveWorld()
    try world.write(Array("battery staple\n".utf8), to: ".np")
    try world.backUp(to: "Gr\u{F6}\u{DF}e/")
    try world.devices.run("tar -cf b.tar Gr\u{F6}\u{DF}e")
    for line in [
      "inspect b.tar", "verify b.tar --password-file .bp",
      "rekey b.tar --password-file .bp --new-password-file .np", "verify b.tar --password-file .np",
      "convert b.tar -o c.zip", "convert b.tar -o c/", "verify c.zip --password-file .np",
    ] {
      let outcome = try world.devices.run("LC_ALL=\(locale) keyhaul \(line)")
      #expect(outcome.status == 0, "\(line): \(outcome.errors)")
    }
    #expect(Data(try world.read("b.tar")).ranges(of: Data("Gr\u{F6}\u{DF}e/Manifest.plist".utf8)).count > 0)
    #expect(try world.names().filter { $0.hasPrefix(".b.") } == [])
  }
}

@Suite("A backup that says it is encrypted, and is not")
struct FalseClaimTests {
  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o p/ --no-password -q")
    let path = world.home.appending(path: "p/Manifest.plist")
    var root = try #require(
      try PropertyListSerialization.propertyList(from: try Data(contentsOf: path), format: nil) as? [String: Any])
    root["IsEncrypted"] = true
    try PropertyListSerialization.data(fromPropertyList: root, format: .binary, options: 0).write(to: path)
    return world
  }

  @Test("is shown with what is true of it")
  func read() throws {
    let world = try world()
    let lines: [(String, Int32)] = [
      ("inspect p", 3), ("verify p", 13), ("export p -o x.json", 3), ("plan p --to old-phone", 3),
    ]
    for (line, status) in lines {
      let outcome = try world.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("warning: p says that it is encrypted, but it is not"))
    }
    #expect(try world.object(world.keyhaul("inspect p --json").output)["encrypted"] as? Bool == false)
  }

  @Test(
    "is neither restored nor changed, though its device is available",
    arguments: [
      "restore p --to old-phone --yes", "rekey p --new-password-file .bp --rounds 1",
      "rekey p --no-password",
    ])
  func refused(line: String) throws {
    let world = try world()
    let before = try world.contents(of: "old-phone")
    let outcome = try world.keyhaul(line)
    #expect(outcome.status == 14)
    #expect(outcome.errors.contains("p says that it is encrypted, but it is not"))
    #expect(unwrapped(outcome.errors).contains("but its manifest is not, and no file has a key"))
    #expect(try world.contents(of: "old-phone") == before)
  }
}
