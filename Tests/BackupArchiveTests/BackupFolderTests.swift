import BackupArchive
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("A folder with the backups of several devices")
struct BackupFolderTests {
  private static let old = String(repeating: "ab", count: 20)

  private func folder() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    for file in try SampleBackup().storedFiles() {
      try folder.write(file.bytes, to: "\(SampleBackup.udid)/\(file.path)")
      try folder.write(file.bytes, to: "\(SampleBackup.udid)-20240101-101112/\(file.path)")
    }
    try OldBackup(try SampleBackup(hasPassword: false)).write(to: folder, Self.old)
    try folder.write([1], to: "\(Self.old)0/Manifest.plist")
    try folder.write([1], to: "Notes/readme.txt")
    try folder.write([1], to: "readme.txt")
    return folder
  }

  @Test("lists each with its device, date and whether it has a password")
  func listing() throws {
    let folder = try folder()
    let entries = try BackupFolder.backups(in: folder.path)
    #expect(
      entries.map(\.name) == [SampleBackup.udid, "\(SampleBackup.udid)-20240101-101112", Self.old, "\(Self.old)0"])
    #expect(entries.map(\.identifier) == [SampleBackup.udid, SampleBackup.udid, Self.old, nil])
    #expect(entries.map(\.deviceName) == ["old-phone", "old-phone", "old-phone", nil])
    #expect(entries.map(\.isEncrypted) == [true, true, false, nil])
    #expect(entries.map(\.state) == [.finished, .finished, .finished, .damaged])
    #expect(entries.map(\.isArchivedCopy) == [false, true, false, false])
    #expect(entries[0].date == SampleBackup.date)
    for entry in entries.prefix(3) { _ = try BackupArchive.open(.path(folder.path(entry.name))) }
  }

  @Test("lists a link to a backup as one; links that lead elsewhere are none")
  func links() throws {
    let folder = try folder()
    func link(_ name: String, to target: String) throws {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path(name), withDestinationPath: target.hasPrefix("/") ? target : folder.path(target))
    }
    try FileManager.default.createDirectory(atPath: folder.path("shelf"), withIntermediateDirectories: false)
    try link("shelf/latest", to: SampleBackup.udid)
    for (name, target) in [
      ("gone", "nowhere"), ("loop", "shelf/loop"), ("file", "readme.txt"), ("notes", "Notes"), ("null", "/dev/null"),
    ] {
      try link("shelf/\(name)", to: target)
    }
    let entries = try BackupFolder.backups(in: folder.path("shelf"))
    #expect(entries.map(\.name) == ["latest"] && entries.map(\.isLink) == [true])
    #expect(entries.map(\.identifier) == [SampleBackup.udid] && entries.map(\.state) == [.finished])
    #expect(try BackupFolder.backup(SampleBackup.udid.lowercased(), among: entries)?.name == "latest")
    // Beside what it leads to it is no second backup of the device.
    try FileManager.default.moveItem(atPath: folder.path(SampleBackup.udid), toPath: folder.path("shelf/attic"))
    try FileManager.default.removeItem(atPath: folder.path("shelf/latest"))
    try link("shelf/latest", to: "shelf/attic")
    let both = try BackupFolder.backups(in: folder.path("shelf"))
    #expect(both.map(\.name) == ["attic", "latest"] && both.map(\.isLink) == [false, true])
    #expect(try BackupFolder.backup(SampleBackup.udid, among: both)?.name == "attic")
    #expect(try BackupFolder.backup("latest", among: both)?.name == "latest")
  }

  @Test("tells those that were never finished, that nothing is said of, and that lack their list")
  func states() throws {
    let folder = try folder()
    let status = "\(SampleBackup.udid)/Status.plist"
    func state() throws -> BackupFolder.Entry.State? {
      try BackupFolder.backups(in: folder.path).first { $0.name == SampleBackup.udid }?.state
    }
    try folder.write(try BackupStatus(uuid: nil, date: nil, snapshotState: "uploading").serialized(), to: status)
    #expect(try state() == .unfinished)
    try folder.write([1], to: status)
    #expect(try state() == .damaged)
    try FileManager.default.removeItem(atPath: folder.path(status))
    #expect(try state() == nil)
    try FileManager.default.removeItem(atPath: folder.path("\(SampleBackup.udid)/Manifest.db"))
    #expect(try state() == .damaged)
  }

  @Test("is no backup itself; what is near is named: packed ones in it, and the folder in it that holds some")
  func near() throws {
    let folder = try TemporaryFolder()
    func reason(_ path: String) -> String? {
      do throws(BackupArchiveError) {
        _ = try BackupArchive.open(.path(path))
        return nil
      } catch {
        return error.reason
      }
    }
    try folder.write(Array("not a backup".utf8), to: "shelf/notes.txt")
    #expect(reason(folder.path("shelf")) == "it has no Manifest.plist")
    try folder.write(try SampleBackup().packed(as: .tar), to: "shelf/family.backup")
    #expect(reason(folder.path("shelf")) == "it has no Manifest.plist; in it \"family.backup\" may be one")
    for file in try SampleBackup().storedFiles() {
      try folder.write(file.bytes, to: "shelf/Backup/\(SampleBackup.udid)/\(file.path)")
    }
    #expect(
      reason(folder.path("shelf"))
        == "it has no Manifest.plist; in it \"family.backup\" may be one; backups are in \"Backup\"")
    for name in ["a", "b", "c"] { try folder.write(try SampleBackup().packed(as: .zip), to: "shelf/\(name)") }
    #expect(reason(folder.path("shelf"))?.contains("in it \"a\", \"b\", \"c\", ... may be one") == true)
  }

  @Test("gives one by its folder's name or its device's identifier, and never by a part of either")
  func choosing() throws {
    let folder = try folder()
    let entries = try BackupFolder.backups(in: folder.path)
    #expect(try BackupFolder.backup(Self.old, among: entries)?.name == Self.old)
    #expect(try BackupFolder.backup(Self.old.uppercased(), among: entries)?.name == Self.old)
    let copy = "\(SampleBackup.udid)-20240101-101112"
    #expect(try BackupFolder.backup(copy, among: entries)?.name == copy)
    // A folder's own name goes before the identifier of two.
    #expect(try BackupFolder.backup(SampleBackup.udid, among: entries)?.name == SampleBackup.udid)
    for part in [String(Self.old.dropLast()), String(SampleBackup.udid.prefix(8)), "", "ab", "old-phone"] {
      #expect(try BackupFolder.backup(part, among: entries) == nil, "\(part)")
    }
    let copies = Array(entries.dropFirst().prefix(1)) + Array(entries.dropFirst().prefix(1))
    let error = #expect(throws: BackupArchiveError.self) {
      try BackupFolder.backup(SampleBackup.udid, among: copies)
    }
    #expect(error?.code == .unsupported)
  }

  @Test("that isn't there is not found, and one without backups has none")
  func nothing() throws {
    let folder = try TemporaryFolder()
    #expect(try BackupFolder.backups(in: folder.path).isEmpty)
    let error = #expect(throws: BackupArchiveError.self) { try BackupFolder.backups(in: folder.path("none")) }
    #expect(error?.code == .notFound)
  }
}
