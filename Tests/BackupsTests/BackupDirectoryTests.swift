import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Directories with backups of several devices")
struct BackupDirectoryTests {
  /// The name of an archived copy, as Finder forms it: the device identifier, the date, and the time.
  private static let archivedCopy = "\(SampleBackup.udid)-20240101-101112"
  private static let oldLayout = String(repeating: "ab", count: 20)
  /// The name of a damaged backup. With 41 digits, it is not a device identifier.
  private static let damaged = oldLayout + "0"

  /// Creates a directory with a backup, its archived copy, a backup of iOS 9, a damaged backup, and other files.
  private func directoryWithBackups() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    for file in try SampleBackup().storedFiles() {
      try directory.write(file.bytes, to: "\(SampleBackup.udid)/\(file.path)")
      try directory.write(file.bytes, to: "\(Self.archivedCopy)/\(file.path)")
    }
    try MBDBBackup(try SampleBackup(hasPassword: false)).write(to: directory, Self.oldLayout)
    try directory.write([1], to: "\(Self.damaged)/Manifest.plist")
    try directory.write([1], to: "Notes/readme.txt")
    try directory.write([1], to: "readme.txt")
    return directory
  }

  @Test("A directory of backups is listed with devices, dates, and encryption")
  func listing() throws {
    let directory = try directoryWithBackups()
    let entries = try BackupDirectory.backups(in: directory.path)
    #expect(entries.map(\.name) == [SampleBackup.udid, Self.archivedCopy, Self.oldLayout, Self.damaged])
    #expect(entries.map(\.identifier) == [SampleBackup.udid, SampleBackup.udid, Self.oldLayout, nil])
    #expect(entries.map(\.deviceName) == ["old-phone", "old-phone", "old-phone", nil])
    #expect(entries.map(\.isEncrypted) == [true, true, false, nil])
    #expect(entries.map(\.state) == [.finished, .finished, .finished, .damaged])
    #expect(entries.map(\.isArchivedCopy) == [false, true, false, false])
    #expect(entries[0].date == SampleBackup.date)
    for entry in entries.prefix(3) { _ = try BackupArchive.open(.path(directory.path(entry.name))) }
  }

  @Test("A directory of backups can have ten thousand subdirectories, but no more")
  func directoryCount() throws {
    let directory = try TemporaryDirectory()
    for index in 0..<BackupDirectory.maximumDirectoryCount {
      try FileManager.default.createDirectory(atPath: directory.path("f\(index)"), withIntermediateDirectories: false)
    }
    #expect(try BackupDirectory.backups(in: directory.path).isEmpty)
    try FileManager.default.createDirectory(atPath: directory.path("more"), withIntermediateDirectories: false)
    let error = #expect(throws: KeyhaulError.self) { try BackupDirectory.backups(in: directory.path) }
    #expect(error?.code == .overLimit && error?.reason.hasSuffix("has more than 10,000 folders") == true)
  }

  private func link(_ name: String, to target: String, in directory: TemporaryDirectory) throws {
    try FileManager.default.createSymbolicLink(
      atPath: directory.path(name), withDestinationPath: target.hasPrefix("/") ? target : directory.path(target))
  }

  @Test("A link to a backup is listed as a backup, and other links are not")
  func links() throws {
    let directory = try directoryWithBackups()
    try FileManager.default.createDirectory(atPath: directory.path("shelf"), withIntermediateDirectories: false)
    try link("shelf/latest", to: SampleBackup.udid, in: directory)
    for (name, target) in [
      ("gone", "nowhere"), ("loop", "shelf/loop"), ("file", "readme.txt"), ("notes", "Notes"), ("null", "/dev/null"),
    ] {
      try link("shelf/\(name)", to: target, in: directory)
    }
    let entries = try BackupDirectory.backups(in: directory.path("shelf"))
    #expect(entries.map(\.name) == ["latest"] && entries.map(\.isLink) == [true])
    #expect(entries.map(\.identifier) == [SampleBackup.udid] && entries.map(\.state) == [.finished])
    #expect(try BackupDirectory.backup(SampleBackup.udid.lowercased(), among: entries)?.name == "latest")
  }

  @Test("A device identifier chooses a backup itself, not a link to it in the same directory")
  func linkToListedBackup() throws {
    let directory = try TemporaryDirectory()
    try SampleBackup().write(to: .directory(directory.path("attic")))
    try link("latest", to: "attic", in: directory)
    let entries = try BackupDirectory.backups(in: directory.path)
    #expect(entries.map(\.name) == ["attic", "latest"] && entries.map(\.isLink) == [false, true])
    #expect(try BackupDirectory.backup(SampleBackup.udid, among: entries)?.name == "attic")
    #expect(try BackupDirectory.backup("latest", among: entries)?.name == "latest")
  }

  @Test("The status and the manifest database show whether a backup is unfinished, damaged, or of unknown state")
  func states() throws {
    let directory = try directoryWithBackups()
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

  @Test("A backup is chosen by its directory name or its device identifier, never by a part of them or a device name")
  func choosing() throws {
    let directory = try directoryWithBackups()
    let entries = try BackupDirectory.backups(in: directory.path)
    #expect(try BackupDirectory.backup(Self.oldLayout, among: entries)?.name == Self.oldLayout)
    #expect(try BackupDirectory.backup(Self.oldLayout.uppercased(), among: entries)?.name == Self.oldLayout)
    #expect(try BackupDirectory.backup(Self.archivedCopy, among: entries)?.name == Self.archivedCopy)
    // A directory name has precedence over the identifier of two backups.
    #expect(try BackupDirectory.backup(SampleBackup.udid, among: entries)?.name == SampleBackup.udid)
    for part in [String(Self.oldLayout.dropLast()), String(SampleBackup.udid.prefix(8)), "", "ab", "old-phone"] {
      #expect(try BackupDirectory.backup(part, among: entries) == nil, "\(part)")
    }
  }

  @Test("A device identifier of two archived copies chooses neither")
  func ambiguousIdentifier() throws {
    let directory = try directoryWithBackups()
    let entries = try BackupDirectory.backups(in: directory.path)
    let archivedCopy = try #require(entries.first { $0.isArchivedCopy })
    let error = #expect(throws: KeyhaulError.self) {
      try BackupDirectory.backup(SampleBackup.udid, among: [archivedCopy, archivedCopy])
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
