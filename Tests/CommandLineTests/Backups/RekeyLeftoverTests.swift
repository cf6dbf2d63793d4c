import Foundation
import Testing

@testable import keyhaul

/// A message as it is before it is broken into lines.
@Suite("Leftovers of killed rekeys")
struct RekeyLeftoverTests {
  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "b/")
    return sandbox
  }

  @Test(
    "Every command that reads the backup reports a leftover with its name, contents and advice",
    arguments: [
      "inspect b", "verify b --password-file .bp", "convert b -o c.zip", "export b -o x.json --password-file .bp",
    ])
  func told(line: String) throws {
    let sandbox = try sandbox()
    // The backup as it was before it had a password: what a kill between the exchange and the removal leaves.
    try sandbox.succeed("backup old-phone -o .b.1f2e.tmp/ --no-password -q")
    let errors = try unwrapped(sandbox.keyhaul(line).errors)
    #expect(errors.contains("warning: an interrupted run left a file or folder next to b"))
    #expect(errors.contains("/.b.1f2e.tmp: it is a backup whose files are not encrypted"))
    #expect(errors.contains("try: delete it; the next rekey of b also deletes it"))
  }

  @Test("The next rekey deletes a leftover, and a dry run keeps it")
  func swept() throws {
    let sandbox = try sandbox()
    try sandbox.succeed("backup old-phone -o .b.1f2e.tmp/ --no-password -q")
    let line = "rekey b --password-file .bp --new-password-file .np"
    try sandbox.succeed("\(line) --dry-run")
    #expect(try sandbox.names().contains(".b.1f2e.tmp"))
    try sandbox.succeed(line)
    #expect(try !sandbox.names().contains(".b.1f2e.tmp"))
    #expect(try !sandbox.keyhaul("inspect b").errors.contains("warning"))
  }

  @Test("A leftover is found next to the file that a link points to")
  func linked() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("mkdir elsewhere && mv b elsewhere/b && ln -s elsewhere/b link")
    try sandbox.succeed("backup old-phone -o elsewhere/.b.1f2e.tmp/ --no-password -q")
    let errors = try unwrapped(sandbox.keyhaul("inspect link").errors)
    #expect(errors.contains("elsewhere/.b.1f2e.tmp: it is a backup whose files"))
  }
}

@Suite("Backup file names outside ASCII in any locale")
struct EntryNameProgramTests {
  @Test(
    "A backup with such a name is inspected, verified, rekeyed and copied, and keeps its name",
    arguments: ["C", "C.UTF-8"])
  func everyVerb(locale: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
    try sandbox.backUp(to: "Gr\u{F6}\u{DF}e/")
    try sandbox.devices.run("tar -cf b.tar Gr\u{F6}\u{DF}e")
    for line in [
      "inspect b.tar", "verify b.tar --password-file .bp",
      "rekey b.tar --password-file .bp --new-password-file .np", "verify b.tar --password-file .np",
      "convert b.tar -o c.zip", "convert b.tar -o c/", "verify c.zip --password-file .np",
    ] {
      let outcome = try sandbox.devices.run("LC_ALL=\(locale) keyhaul \(line)")
      #expect(outcome.status == 0, "\(line): \(outcome.errors)")
    }
    #expect(Data(try sandbox.read("b.tar")).ranges(of: Data("Gr\u{F6}\u{DF}e/Manifest.plist".utf8)).count > 0)
    #expect(try sandbox.names().filter { $0.hasPrefix(".b.") } == [])
  }
}

@Suite("Backups with a false claim of encryption")
struct FalseClaimTests {
  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o p/ --no-password -q")
    let path = sandbox.home.appending(path: "p/Manifest.plist")
    var root = try #require(
      try PropertyListSerialization.propertyList(from: try Data(contentsOf: path), format: nil) as? [String: Any])
    root["IsEncrypted"] = true
    try PropertyListSerialization.data(fromPropertyList: root, format: .binary, options: 0).write(to: path)
    return sandbox
  }

  @Test("Inspect shows what is true about such a backup")
  func read() throws {
    let sandbox = try sandbox()
    let lines: [(String, Int32)] = [
      ("inspect p", 3), ("verify p", 13), ("export p -o x.json", 3), ("plan p --to old-phone", 3),
    ]
    for (line, status) in lines {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == status, "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("warning: p says that it is encrypted, but it is not"))
    }
    #expect(try sandbox.object(sandbox.keyhaul("inspect p --json").output)["encrypted"] as? Bool == false)
  }

  @Test(
    "Such a backup is neither restored nor changed, even if its device is available",
    arguments: [
      "restore p --to old-phone --yes", "rekey p --new-password-file .bp --rounds 1",
      "rekey p --no-password",
    ])
  func refused(line: String) throws {
    let sandbox = try sandbox()
    let before = try sandbox.contents(of: "old-phone")
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == 14)
    #expect(outcome.errors.contains("p says that it is encrypted, but it is not"))
    #expect(unwrapped(outcome.errors).contains("but its manifest is not, and no file has a key"))
    #expect(try sandbox.contents(of: "old-phone") == before)
  }
}
