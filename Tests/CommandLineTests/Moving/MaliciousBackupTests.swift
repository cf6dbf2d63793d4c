import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Malicious backups")
struct MaliciousBackupTests {
  struct MaliciousEntry: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var name = "X/evil"
    /// The type flag of ustar: 0 file, 1 hard link, 2 symbolic link, 3 character device, 4 block device, 6 pipe.
    var kind: Character = "0"
    var target = ""
  }

  static let maliciousEntries = [
    MaliciousEntry(testDescription: "a path that climbs out", name: "X/../../victim/evil"),
    MaliciousEntry(testDescription: "a path that begins with ..", name: "../victim/evil"),
    MaliciousEntry(testDescription: "an absolute path", name: "/etc/keyhaul-victim/evil"),
    MaliciousEntry(testDescription: "a symbolic link out", kind: "2", target: "../../victim"),
    MaliciousEntry(
      testDescription: "a symbolic link in place of the manifest", name: "X/Manifest.plist", kind: "2",
      target: "/etc/passwd"),
    MaliciousEntry(testDescription: "a hard link", kind: "1", target: "/etc/passwd"),
    MaliciousEntry(testDescription: "a device", kind: "3"),
    MaliciousEntry(testDescription: "a disk", kind: "4"),
    MaliciousEntry(testDescription: "a pipe", kind: "6"),
    MaliciousEntry(testDescription: "a backslash path", name: #"X\..\..\evil"#),
  ]

  @Test("A malicious tar is rejected with its problem, and nothing is written", arguments: maliciousEntries)
  func tar(entry: MaliciousEntry) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var tar = CraftedArchive()
    tar.add(name: entry.name, kind: entry.kind, target: entry.target, entry.kind == "0" ? Array("evil".utf8) : [])
    for file in try sandbox.files(in: "b") { tar.add(name: "X/\(file)", try sandbox.read("b/\(file)")) }
    try sandbox.write(tar.tar, to: "evil.tar")
    try expectRefusal(of: "evil.tar", in: sandbox)
  }

  @Test(
    "A malicious zip is rejected with its problem, and nothing is written",
    // Zip files have no hard links, devices or pipes.
    arguments: maliciousEntries.filter { !["1", "3", "4", "6"].contains($0.kind) })
  func zip(entry: MaliciousEntry) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var zip = CraftedArchive()
    // The malicious entry takes the place of the backup's file with the same name.
    for file in try sandbox.files(in: "b") where "X/\(file)" != entry.name {
      zip.add(name: "X/\(file)", try sandbox.read("b/\(file)"))
    }
    zip.add(name: entry.name, kind: entry.kind, Array((entry.kind == "2" ? entry.target : "evil").utf8))
    try sandbox.write(zip.zip, to: "evil.zip")
    try expectRefusal(of: "evil.zip", in: sandbox)
  }

  /// The contents of new-phone, as a new sandbox has them.
  private static let originalContents = Result { try PhoneSandbox().contents(of: "new-phone") }

  /// Checks that commands refuse a backup, and that they change neither a device nor the file that the backup could
  /// overwrite.
  private func expectRefusal(of name: String, in sandbox: PhoneSandbox) throws {
    let victim = sandbox.home.appending(path: "victim")
    try FileManager.default.createDirectory(at: victim, withIntermediateDirectories: true)
    try Data("mine".utf8).write(to: victim.appending(path: "evil"))
    let names = try sandbox.names()
    for line in ["restore \(name) --to new-phone --yes", "plan \(name) --to new-phone", "inspect \(name)"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp")
      #expect(outcome.status == 14 && outcome.output.isEmpty, "\(outcome)")
      #expect(outcome.errors.hasPrefix("error: refused to read \(name)\n  why: "), "\(outcome.errors)")
      #expect(outcome.errors.contains("  try: don't trust this file; nothing was written\n"))
    }
    #expect(try sandbox.names() == names && sandbox.contents(of: "new-phone") == Self.originalContents.get())
    #expect(try sandbox.names(in: "victim") == ["evil"] && sandbox.read("victim/evil") == Array("mine".utf8))
    #expect(!FileManager.default.fileExists(atPath: "/etc/keyhaul-victim"))
  }

  @Test("A crafted backup without a malicious part is accepted")
  func harmless() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    var crafted = CraftedArchive()
    for file in try sandbox.files(in: "b") { crafted.add(name: "X/\(file)", try sandbox.read("b/\(file)")) }
    try sandbox.write(crafted.tar, to: "b.tar")
    try sandbox.write(crafted.zip, to: "b.zip")
    let folderItems = PlannedItems(try sandbox.plan("b/"))
    #expect(folderItems.migrating.count == 14)
    #expect(PlannedItems(try sandbox.plan("b.tar")) == folderItems)
    #expect(PlannedItems(try sandbox.plan("b.zip")) == folderItems)
  }

  @Test("A folder with a link, pipe or folder in place of a file is rejected without waiting")
  func directory() throws {
    let sandbox = try PhoneSandbox()
    for command in ["ln -s ../b/Manifest.db", "mkfifo", "mkdir", "ln -s /dev/zero"] {
      try sandbox.devices.run("rm -rf b")
      try sandbox.backUp(to: "b/")
      try sandbox.devices.run("mv b/Manifest.db away && \(command) b/Manifest.db")
      let outcome = try sandbox.keyhaul("plan b/ --to new-phone --password-file .bp")
      #expect(outcome.status == 14, "\(command): \(outcome)")
    }
  }
}
