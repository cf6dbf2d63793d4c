import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Leftovers of interrupted runs")
struct LeftoverTests {
  /// Encrypts the backup's keybag again with the same password.
  private func rekey(_ path: String) throws {
    let archive = try BackupArchive.open(.path(path))
    let keybag = try BackupKeybag.rewrap(
      archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: SampleBackup.password))
    try BackupRewriter(system: unsynced).replaceKeybag(
      of: archive, at: path, with: keybag, keys: archive.keybag.keys(SampleBackup.password))
  }

  @Test("Leftovers next to a backup are recognized by their names, and their contents are classified")
  func recognized() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    #expect(BackupLeftover.all(beside: directory.path("b")).isEmpty)
    try SampleBackup(hasPassword: false).write(to: .directory(directory.path(".b.1f.tmp")))
    try SampleBackup().write(to: .directory(directory.path(".b.2a.old")))
    try SampleBackup(hasPassword: false).write(to: .file(directory.path(".b.3.tmp"), .tar))
    try directory.write([1, 2, 3], to: ".b.4.tmp")
    try directory.write([1], to: ".b.5.tmp/51/x")
    // Names of other backups, without a random part, or of other programs.
    for name in [".c.1f.tmp", ".b..tmp", ".b.xyz.tmp", "b.1f.tmp", ".b.1f"] { try directory.write([1], to: name) }
    let leftovers = BackupLeftover.all(beside: directory.path("b"))
    #expect(
      leftovers.map { ($0.path as NSString).lastPathComponent } == [
        ".b.1f.tmp", ".b.2a.old", ".b.3.tmp", ".b.4.tmp", ".b.5.tmp",
      ])
    #expect(leftovers.map(\.content) == [.plain, .encrypted, .plain, .unknown, .unknown])
    #expect(leftovers.map(\.isRemovedByNextWrite) == [true, false, true, true, true])
    #expect(BackupLeftover.all(beside: directory.path("b/")) == leftovers)
  }

  @Test("A temporary file of a running process is not a leftover")
  func fileInUse() throws {
    let directory = try TemporaryDirectory()
    try directory.write([1], to: ".b.1f.tmp")
    let file = try FileHandle(forReadingFrom: URL(filePath: directory.path(".b.1f.tmp")))
    #expect(flock(file.fileDescriptor, LOCK_EX) == 0)
    #expect(BackupLeftover.all(beside: directory.path("b")).isEmpty)
    try file.close()
    #expect(BackupLeftover.all(beside: directory.path("b")).count == 1)
  }

  @Test(
    "The next change of a backup's password removes its leftovers", arguments: ["b/", "b.tar"])
  func removed(destination: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path(destination)
    let name = destination.replacing("/", with: "")
    try SampleBackup().write(to: BackupDestination(path: path))
    if destination == "b/" {
      try SampleBackup(hasPassword: false).write(to: .directory(directory.path(".b.1f.tmp")))
    } else {
      try SampleBackup(hasPassword: false).write(to: .file(directory.path(".b.tar.1f.tmp"), .tar))
    }
    try rekey(path)
    #expect(BackupLeftover.all(beside: path).isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [name])
  }

  @Test("A leftover with an unrelated file is not removed")
  func unrelated() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    try SampleBackup().write(to: .directory(directory.path(".b.1f.tmp")))
    try directory.write([1], to: ".b.1f.tmp/notes.txt")
    try rekey(directory.path("b"))
    #expect(BackupLeftover.all(beside: directory.path("b")).count == 1)
  }

  @Test("A temporary manifest in a backup's directory does not prevent its replacement")
  func temporaryManifest() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("b")))
    try directory.write([1], to: "b/.Manifest.plist.1f.tmp")
    #expect(try BackupDirectory.unrelatedFiles(in: directory.path("b")).isEmpty)
    try rekey(directory.path("b"))
    #expect(try !FileManager.default.contentsOfDirectory(atPath: directory.path("b")).contains { $0.hasPrefix(".") })
  }
}
