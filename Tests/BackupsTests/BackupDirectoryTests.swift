import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Directories with backups of several devices")
struct BackupDirectoryTests {
  private static let old = String(repeating: "ab", count: 20)

  private func directory() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    for file in try SampleBackup().storedFiles() {
      try directory.write(file.bytes, to: "\(SampleBackup.udid)/\(file.path)")
      try directory.write(file.bytes, to: "\(SampleBackup.udid)-20240101-101112/\(file.path)")
    }
    try MBDBBackup(try SampleBackup(hasPassword: false)).write(to: directory, Self.old)
    try directory.write([1], to: "\(Self.old)0/Manifest.plist")
    try directory.write([1], to: "Notes/readme.txt")
    try directory.write([1], to: "readme.txt")
    return directory
  }

  @Test("A directory of backups is listed with devices, dates, and encryption")
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

  @Test("A directory of backups can have ten thousand subdirectories, but no more")
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

  @Test("A link to a backup is listed as a backup, and other links are not")
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
    // A link to a listed backup is not a second backup of the device.
    try FileManager.default.moveItem(atPath: directory.path(SampleBackup.udid), toPath: directory.path("shelf/attic"))
    try FileManager.default.removeItem(atPath: directory.path("shelf/latest"))
    try link("shelf/latest", to: "shelf/attic")
    let both = try BackupDirectory.backups(in: directory.path("shelf"))
    #expect(both.map(\.name) == ["attic", "latest"] && both.map(\.isLink) == [false, true])
    #expect(try BackupDirectory.backup(SampleBackup.udid, among: both)?.name == "attic")
    #expect(try BackupDirectory.backup("latest", among: both)?.name == "latest")
  }

  @Test("Unfinished backups, backups of unknown state, and backups without a manifest database are distinguished")
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

  @Test("The error for a directory that is not a backup names nearby backups")
  func nearbyBackups() throws {
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

  @Test("A backup is chosen by its directory name or its device identifier, never by a part of them")
  func choosing() throws {
    let directory = try directory()
    let entries = try BackupDirectory.backups(in: directory.path)
    #expect(try BackupDirectory.backup(Self.old, among: entries)?.name == Self.old)
    #expect(try BackupDirectory.backup(Self.old.uppercased(), among: entries)?.name == Self.old)
    let copy = "\(SampleBackup.udid)-20240101-101112"
    #expect(try BackupDirectory.backup(copy, among: entries)?.name == copy)
    // A directory name has precedence over the identifier of two backups.
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

  @Test("A missing directory is not found, and a directory without backups is empty")
  func nothing() throws {
    let directory = try TemporaryDirectory()
    #expect(try BackupDirectory.backups(in: directory.path).isEmpty)
    let error = #expect(throws: KeyhaulError.self) { try BackupDirectory.backups(in: directory.path("none")) }
    #expect(error?.code == .notFound)
  }
}
