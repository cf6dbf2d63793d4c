import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Partial backups")
struct PartialBackupTests {
  private func partialBackup(of files: [(path: String, bytes: [UInt8])]) throws -> BackupArchive {
    let directory = try TemporaryDirectory()
    try directory.write(packed(files), to: "backup.tar")
    return try BackupArchive.open(.path(directory.path("backup.tar")), system: .real, acceptsPartialBackup: true)
  }

  @Test(
    "If the manifest is unreadable, the other property lists are read, and only reading is allowed")
  func garbledManifest() throws {
    var files = try SampleBackup.storedFiles()
    files["Manifest.plist"] = Array("once upon a time".utf8)
    #expect(try failure(opening: packed(files))?.category == .damaged)
    let archive = try partialBackup(of: files)
    #expect(archive.isPartial && archive.isManifestUnreadable)
    #expect(archive.findings.map(\.kind) == [.manifestUnreadable])
    #expect(archive.status?.isFinished == true && archive.device.name == "old-phone" && archive.hasKeychain)
    for use in BackupPurpose.allCases where use != .reading {
      #expect(throws: KeyhaulError.self, "\(use)") { try archive.requireUsable(for: use) }
    }
  }

  @Test("A backup without a manifest database has its keybag, device, and date")
  func absentDatabase() throws {
    var files = try SampleBackup.storedFiles()
    files["Manifest.db"] = nil
    #expect(try failure(opening: packed(files))?.code == .payloadMissing)
    let archive = try partialBackup(of: files)
    #expect(archive.isPartial && !archive.isManifestUnreadable && archive.isEncrypted)
    #expect(archive.findings.map(\.kind) == [.listUnreadable] && archive.keybag.classKeys.count == 11)
    #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: .restoring) }
  }

  @Test("A single file with the name of a manifest is not a partial backup")
  func singleFile() throws {
    let files: [(path: String, bytes: [UInt8])] = [("Manifest.plist", Array("once upon a time".utf8))]
    let error = #expect(throws: KeyhaulError.self) { try partialBackup(of: files) }
    #expect(error?.category == .damaged)
  }

  @Test("A backup of an unsupported version is not a partial backup")
  func unsupportedVersion() throws {
    var files = try SampleBackup.storedFiles()
    let root: PropertyDictionary = ["Version": .string("99.0"), "IsEncrypted": .boolean(false)]
    files["Manifest.plist"] = try BinaryPlist.encode(.dictionary(root))
    #expect(throws: KeyhaulError.self) { try partialBackup(of: files) }
  }
}
