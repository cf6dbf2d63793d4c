import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("A folder with the backups of several devices")
struct BackupDirectoryTests {
  private static let old = String(repeating: "ab", count: 20)

  private func directory() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    for file in try SampleBackup().storedFiles() {
      try directory.write(file.bytes, to: "\(SampleBackup.udid)/\(file.path)")
      try directory.write(file.bytes, to: "\(SampleBackup.udid)-20240101-101112/\(file.path)")
    }
    try OldBackup(try SampleBackup(hasPassword: false)).write(to: directory, Self.old)
    try directory.write([1], to: "\(Self.old)0/Manifest.plist")
    try directory.write([1], to: "Notes/readme.txt")
    try directory.write([1], to: "readme.txt")
    return directory
  }

  @Test("lists each with its device, date and whether it has a password")
  func listing() throws {
    let directory = try directory()
    let entries = try BackupDirectory.backups(in: directory.path)
    #expect(
      entries.map(\.name) == [SampleBackup.udid, "\(SampleBackup.udid)-20240101-101112", Self.old, "\(Self.old)0"])
    #expect(entries.map(\.identifier) == [SampleBackup.udid, SampleBackup.udid, Self.old, nil])
    #expect(entries.map(\.deviceName) == ["old-phone", "old-phone", "old-phone", nil])
    #expect(entries.map(\.isEncrypted) == [true, true, false, nil])
    #expect(entries.map(\.state) == [.finished, .finished, .finished, .damaged])
    #expect(entries.map(\.isArchivedCopy) == [false, true, false, false])
    #expect(entries[0].date == SampleBackup.date)
    for entry in entries.prefix(3) { _ = try BackupArchive.open(.path(directory.path(entry.name))) }
  }

  @Test("may hold ten thousand folders, and not one more")
  func folderCount() throws {
    let directory = try TemporaryDirectory()
    for index in 0..<BackupDirectory.maximumDirectoryCount {
      try FileManager.default.createDirectory(atPath: directory.path("f\(index)"), withIntermediateDirectories: false)
    }
    #expect(try BackupDirectory.backups(in: directory.path).isEmpty)
    try FileManager.default.createDirectory(atPath: directory.path("more"), withIntermediateDirectories: false)
    let error = #expect(throws: KeyhaulError.self) { try BackupDirectory.backups(in: directory.path) }
    #expect(error?.code == .overLimit && error?.reason.hasSuffix("has more than 10,000 folders") == true)
  }

  @Test("lists a link to a backup as one; links that lead elsewhere are none")
  func links() throws {
    let directory = try directory()
    func link(_ name: String, to target: String) throws {
      try FileManager.default.createSymbolicLink(
        atPath: directory.path(name), withDestinationPath: target.hasPrefix("/") ? target : directory.path(target))
    }
    try FileManager.default.createDirectory(atPath: directory.path("shelf"), withIntermediateDirectories: false)
    try link("shelf/latest", to: SampleBackup.udid)
    for (name, target) in [
      ("gone", "nowhere"), ("loop", "shelf/loop"), ("file", "readme.txt"), ("notes", "Notes"), ("null", "/dev/null"),
    ] {
      try link("shelf/\(name)", to: target)
    }
    let entries = try BackupDirectory.backups(in: directory.path("shelf"))
    #expect(entries.map(\.name) == ["latest"] && entries.map(\.isLink) == [true])
    #expect(entries.map(\.identifier) == [SampleBackup.udid] && entries.map(\.state) == [.finished])
    #expect(try BackupDirectory.backup(SampleBackup.udid.lowercased(), among: entries)?.name == "latest")
    // Beside what it leads to it is no second backup of the device.
    try FileManager.default.moveItem(atPath: directory.path(SampleBackup.udid), toPath: directory.path("shelf/attic"))
    try FileManager.default.removeItem(atPath: directory.path("shelf/latest"))
    try link("shelf/latest", to: "shelf/attic")
    let both = try BackupDirectory.backups(in: directory.path("shelf"))
    #expect(both.map(\.name) == ["attic", "latest"] && both.map(\.isLink) == [false, true])
    #expect(try BackupDirectory.backup(SampleBackup.udid, among: both)?.name == "attic")
    #expect(try BackupDirectory.backup("latest", among: both)?.name == "latest")
  }

  @Test("tells those that were never finished, that nothing is said of, and that lack their list")
  func states() throws {
    let directory = try directory()
    let status = "\(SampleBackup.udid)/Status.plist"
    func state() throws -> BackupDirectory.Entry.State? {
      try BackupDirectory.backups(in: directory.path).first { $0.name == SampleBackup.udid }?.state
    }
    try directory.write(try BackupStatus(uuid: nil, date: nil, snapshotState: "uploading").serialized(), to: status)
    #expect(try state() == .unfinished)
    try directory.write([1], to: status)
    #expect(try state() == .damaged)
    try FileManager.default.removeItem(atPath: directory.path(status))
    #expect(try state() == nil)
    try FileManager.default.removeItem(atPath: directory.path("\(SampleBackup.udid)/Manifest.db"))
    #expect(try state() == .damaged)
  }

  @Test("is no backup itself; what is near is named: packed ones in it, and the folder in it that holds some")
  func near() throws {
    let directory = try TemporaryDirectory()
    func reason(_ path: String) -> String? {
      do throws(KeyhaulError) {
        _ = try BackupArchive.open(.path(path))
        return nil
      } catch {
        return error.reason
      }
    }
    try directory.write(Array("not a backup".utf8), to: "shelf/notes.txt")
    #expect(reason(directory.path("shelf")) == "it has no Manifest.plist")
    try directory.write(try SampleBackup().packed(as: .tar), to: "shelf/family.backup")
    #expect(reason(directory.path("shelf")) == "it has no Manifest.plist; \"family.backup\" in it may be a backup")
    for file in try SampleBackup().storedFiles() {
      try directory.write(file.bytes, to: "shelf/Backup/\(SampleBackup.udid)/\(file.path)")
    }
    #expect(
      reason(directory.path("shelf"))
        == "it has no Manifest.plist; \"family.backup\" in it may be a backup; backups are in \"Backup\"")
    for name in ["a", "b", "c"] { try directory.write(try SampleBackup().packed(as: .zip), to: "shelf/\(name)") }
    #expect(reason(directory.path("shelf"))?.contains("\"a\", \"b\", \"c\", ... in it may be a backup") == true)
  }

  @Test("gives one by its folder's name or its device's identifier, and never by a part of either")
  func choosing() throws {
    let directory = try directory()
    let entries = try BackupDirectory.backups(in: directory.path)
    #expect(try BackupDirectory.backup(Self.old, among: entries)?.name == Self.old)
    #expect(try BackupDirectory.backup(Self.old.uppercased(), among: entries)?.name == Self.old)
    let copy = "\(SampleBackup.udid)-20240101-101112"
    #expect(try BackupDirectory.backup(copy, among: entries)?.name == copy)
    // A directory's own name goes before the identifier of two.
    #expect(try BackupDirectory.backup(SampleBackup.udid, among: entries)?.name == SampleBackup.udid)
    for part in [String(Self.old.dropLast()), String(SampleBackup.udid.prefix(8)), "", "ab", "old-phone"] {
      #expect(try BackupDirectory.backup(part, among: entries) == nil, "\(part)")
    }
    let copies = Array(entries.dropFirst().prefix(1)) + Array(entries.dropFirst().prefix(1))
    let error = #expect(throws: KeyhaulError.self) {
      try BackupDirectory.backup(SampleBackup.udid, among: copies)
    }
    #expect(error?.code == .unsupported)
  }

  @Test("that isn't there is not found, and one without backups has none")
  func nothing() throws {
    let directory = try TemporaryDirectory()
    #expect(try BackupDirectory.backups(in: directory.path).isEmpty)
    let error = #expect(throws: KeyhaulError.self) { try BackupDirectory.backups(in: directory.path("none")) }
    #expect(error?.code == .notFound)
  }
}
