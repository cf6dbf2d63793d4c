import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Decrypted copies of backups")
struct DecryptionTests {
  private static let files: [FileTreeBackup.File] = [
    .init(path: "Library"), .text("Library/notes.txt", "a note in plaintext"),
    .init(path: "Library/empty", content: []),
    .init(path: "large", content: (0..<300_001).map { UInt8(truncatingIfNeeded: $0 / 7) }),
    .init(path: "no digest", content: [1, 2, 3], digest: .none),
    .init(path: "wrong digest", content: [4], digest: .wrong),
    .link("link", to: "large"),
  ]

  private func decrypt(
    in directory: TemporaryDirectory, from name: String = "backup", to out: String
  ) throws -> DecryptedBackup {
    let archive = try BackupArchive.open(.path(directory.path(name)))
    return try BackupRewriter(system: unsynced).decrypt(
      archive, at: directory.path(name), to: BackupDestination(path: directory.path(out)),
      keys: archive.keybag.keys(SampleBackup.password))
  }

  @Test(
    "A decrypted copy has all files in Apple's layout, from and to each format",
    arguments: [("backup", "out/"), ("backup", "out.tar"), ("b.zip", "out/"), ("b.tar.zst", "out.zip")])
  func formats(from source: String, to target: String) throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    if source != "backup" {
      _ = try BackupRewriter(system: unsynced).convert(
        archive, at: directory.path("backup"), to: BackupDestination(path: directory.path(source)))
    }
    let result = try decrypt(in: directory, from: source, to: target)
    #expect(result.decryptedCount == 5 && result.faults.isEmpty && result.copy.unrelatedFiles.isEmpty)
    #expect(result.differingFiles.map(\.relativePath) == ["wrong digest"] && !result.isComplete)

    let copy = try BackupArchive.open(.path(directory.path(target)))
    #expect(copy.manifest.isEncrypted == false && copy.manifest.manifestKey == nil && copy.manifest.isDecryptedCopy)
    #expect(!copy.areFilesEncrypted && !copy.isListEncrypted && copy.keybag == archive.keybag)
    #expect(copy.isEncrypted, "its keychain is still encrypted with the password")
    try checkFiles(of: copy)
  }

  /// Checks that a decrypted copy has the contents and records of `files`.
  private func checkFiles(of copy: BackupArchive) throws {
    let keys = try copy.keybag.keys(SampleBackup.password)
    let copiedFiles = try copy.plainFiles(keys)
    for file in Self.files {
      guard let content = file.content else { continue }
      let copied = try #require(copiedFiles["HomeDomain-\(file.path)"])
      #expect(copied.bytes == content && copied.record.encryptionKey == nil, "\(file.path)")
      let digest: [UInt8]? =
        switch file.digest {
        case .stored, .plain: SHA1.hash(content)
        case .wrong: [UInt8](repeating: 1, count: 20)
        case .none: nil
        }
      #expect(copied.record.digest == digest, "copying does not correct a digest: \(file.path)")
      #expect(copied.record.mode == 0o100644 && copied.record.lastModified == 1_600_000_000)
    }
  }

  @Test("A decrypted copy cannot be restored")
  func notRestorable() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    _ = try decrypt(in: directory, to: "out/")
    let error = #expect(throws: KeyhaulError.self) {
      try BackupArchive.open(.path(directory.path("out"))).requireUsable(for: .restoring)
    }
    #expect(error?.code == .decryptedCopy)
  }

  @Test("A decrypted copy omits unreadable files and reports them")
  func faults() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([
      .text("whole", "whole"), .init(path: "gone", content: [1], isStored: false),
      .init(path: "cut", content: [2], damage: { $0.dropLast(3) }),
      // The keybag has no key of class 12.
      .init(path: "closed", content: [3], keyClass: 12),
    ])
    try backup.write(to: directory)
    try directory.write([9], to: "backup/ab/\(String(repeating: "ab", count: 20))")
    try directory.write([9], to: "backup/mine.txt")
    let result = try decrypt(in: directory, to: "out/")
    #expect(result.decryptedCount == 1)
    #expect(Set(result.faults.map(\.error.code)) == [.payloadMissing, .damaged, .keyUnavailable])
    #expect(Set(result.copy.unrelatedFiles) == ["ab/\(String(repeating: "ab", count: 20))", "mine.txt"])
    let copy = try BackupArchive.open(.path(directory.path("out")))
    #expect(try copy.storedFiles().count == 1)
  }

  @Test("A backup of iOS 9 cannot be decrypted, because Keyhaul never writes its manifest format")
  func old() throws {
    let directory = try TemporaryDirectory()
    try MBDBBackup(try SampleBackup()).write(to: directory, "backup")
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter().decrypt(
        archive, at: directory.path("backup"), to: .directory(directory.path("out")),
        keys: archive.keybag.keys(SampleBackup.password))
    }
    #expect(error?.code == .unsupported)
    #expect(!FileManager.default.fileExists(atPath: directory.path("out")))
  }
}
