import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@Suite("Replacement of keychain files")
struct KeychainReplacementTests {
  static let names = ["b/", "b.tar", "b.tar.gz", "b.tar.zst", "b.zip"]
  private static let keychainPath = "51/\(KeychainPayload.fileIdentifier)"

  /// Returns the backup's keychain file with an additional item.
  private func fileWithExtraItem(_ archive: BackupArchive, _ keys: ClassKeys) throws -> [UInt8] {
    var file = try archive.keychainFile(with: keys).file
    file.entries.append(
      .init(kind: .key, blob: try SeededRandomSource(seed: "more").bytes(500), persistentReference: nil))
    return try file.serialized()
  }

  /// Creates the sample backup, with or without a password, at a path.
  private func makeBackup(_ name: String, in directory: TemporaryDirectory, hasPassword: Bool) throws -> BackupArchive {
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory, as: "first")
    let path = directory.path("first")
    if hasPassword {
      let archive = try BackupArchive.open(.path(path))
      _ = try BackupRewriter(system: unsynced).reencrypt(
        archive, at: path, with: try fixture.keybagWithPassword("one"), keys: archive.keybag.keys(""))
    }
    let target = BackupDestination(path: directory.path(name))
    _ = try BackupRewriter(system: unsynced).convert(try BackupArchive.open(.path(path)), at: path, to: target)
    try FileManager.default.removeItem(atPath: path)
    return try BackupArchive.open(.path(directory.path(name)))
  }

  private func replace(
    _ archive: BackupArchive, at path: String, with file: [UInt8], _ password: String, system: FileSystem = unsynced
  ) throws -> RewrittenBackup {
    try BackupRewriter(system: system).replaceKeychain(
      of: archive, at: path, with: file, keys: archive.keybag.keys(password),
      random: SeededRandomSource(seed: "replacement"))
  }

  @Test("Replacing the keychain file changes only this file and the manifest", arguments: names, [true, false])
  func replaces(name: String, hasPassword: Bool) throws {
    let directory = try TemporaryDirectory()
    let oldArchive = try makeBackup(name, in: directory, hasPassword: hasPassword)
    let password = hasPassword ? "one" : ""
    let oldFiles = try oldArchive.plainFiles(oldArchive.keybag.keys(password))
    let file = try fileWithExtraItem(oldArchive, oldArchive.keybag.keys(password))
    let path = directory.path(name)
    _ = try replace(oldArchive, at: path, with: file, password)

    let newArchive = try BackupArchive.open(.path(path))
    #expect(try newArchive.keychainFile(with: newArchive.keybag.keys(password)).bytes == file)
    #expect(try newArchive.manifest.serialized() == oldArchive.manifest.serialized())
    let newFiles = try newArchive.plainFiles(newArchive.keybag.keys(password))
    #expect(newFiles.keys == oldFiles.keys)
    for (path, newFile) in newFiles {
      let oldFile = try #require(oldFiles[path])
      let isKeychain = path == "\(KeychainPayload.domain)-\(KeychainPayload.relativePath)"
      #expect((newFile.bytes != oldFile.bytes) == isKeychain, "\(path)")
      #expect((newFile.record != oldFile.record) == isKeychain, "\(path)")
      #expect(newFile.record.size == Int64(newFile.bytes.count), "\(path)")
      #expect(newFile.reading.matches(newFile.record.digest) != false, "\(path)")
    }
    #expect(try newArchive.keychainFile(with: newArchive.keybag.keys(password)).anomalies.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 1)
  }

  @Test("All other files keep their bytes, times, and permissions", arguments: [true, false])
  func otherFiles(hasPassword: Bool) throws {
    let directory = try TemporaryDirectory()
    let archive = try makeBackup("b/", in: directory, hasPassword: hasPassword)
    let password = hasPassword ? "one" : ""
    let oldFiles = try bytes(in: directory, "b")
    let oldAttributes = try attributes(ofFilesIn: directory)
    let file = try fileWithExtraItem(archive, archive.keybag.keys(password))
    _ = try replace(archive, at: directory.path("b"), with: file, password)
    let newFiles = try bytes(in: directory, "b")
    let newAttributes = try attributes(ofFilesIn: directory)
    // Without a password, the sample has no seal.
    let changedPaths = ["Manifest.db", Self.keychainPath, "Keyhaul.seal"]
    #expect(oldFiles.keys == newFiles.keys)
    for path in oldFiles.keys {
      let isChanged = changedPaths.contains(path)
      #expect((oldFiles[path] != newFiles[path]) == isChanged, "\(path)")
      #expect((oldAttributes[path] != newAttributes[path]) == isChanged, "\(path)")
    }
  }

  /// Returns the time, permissions, and file number of each file of the backup.
  private func attributes(ofFilesIn directory: TemporaryDirectory) throws -> [String: [String]] {
    var attributes: [String: [String]] = [:]
    for path in try bytes(in: directory, "b").keys {
      let allAttributes = try FileManager.default.attributesOfItem(atPath: directory.path("b/\(path)"))
      let compared: [FileAttributeKey] = [.modificationDate, .posixPermissions, .systemFileNumber]
      attributes[path] = compared.map { "\(allAttributes[$0] ?? "none")" }
    }
    return attributes
  }

  @Test("Without hard links, the other files are copied")
  func withoutLinks() throws {
    let directory = try TemporaryDirectory()
    let archive = try makeBackup("b/", in: directory, hasPassword: true)
    let oldFiles = try bytes(in: directory, "b")
    let file = try fileWithExtraItem(archive, archive.keybag.keys("one"))
    let withoutLinks = FileSystem { call in
      switch call {
      case .link: .failure(.notSupported)
      case .sync: .omitted
      default: nil
      }
    }
    _ = try replace(archive, at: directory.path("b"), with: file, "one", system: withoutLinks)
    let newFiles = try bytes(in: directory, "b")
    let changedPaths = newFiles.keys.filter { oldFiles[$0] != newFiles[$0] }
    #expect(Set(changedPaths) == ["Manifest.db", Self.keychainPath, "Keyhaul.seal"])
    #expect(newFiles.count == oldFiles.count)
  }

  @Test(
    "If replacing the keychain fails, the backup is unchanged (a directory and a third of the calls in a quick run)",
    arguments: Cases.chosen(["b/", "b.zip"], quick: 1), FaultInjectionTests.faults)
  func everyCall(name: String, fault: FileSystem.InjectedFault) throws {
    let directory = try TemporaryDirectory()
    let oldArchive = try makeBackup(name, in: directory, hasPassword: true)
    let file = try fileWithExtraItem(oldArchive, oldArchive.keybag.keys("one"))
    let path = directory.path(name)
    for call in fault.calls(among: FaultInjectionTests.faults) {
      let treeBefore = try tree(directory.path)
      let failing = SingleFault(at: call, fault)
      let archive = try BackupArchive.open(.path(path))
      let result = Result { try replace(archive, at: path, with: file, "one", system: failing.system) }
      let newArchive = try BackupArchive.open(.path(path))
      let keychain = try newArchive.keychainFile(with: newArchive.keybag.keys("one")).bytes
      switch result {
      case .success: #expect(keychain == file, "call \(call)")
      case .failure: #expect(try tree(directory.path) == treeBefore, "call \(call)")
      }
      // The replacement made fewer calls, so the fault was not injected.
      let allCallsHaveFailed = failing.callCount < call
      if allCallsHaveFailed {
        // The archive reads a zip through another file system, so few calls are left.
        #expect(call > (name == "b.zip" ? 3 : 8))
        return
      }
    }
  }

  @Test("The keychain of a backup that has changed since it was opened is not replaced")
  func changedSinceOpening() throws {
    let directory = try TemporaryDirectory()
    let archive = try makeBackup("b/", in: directory, hasPassword: true)
    let file = try fileWithExtraItem(archive, archive.keybag.keys("one"))
    _ = try replace(archive, at: directory.path("b"), with: file, "one")
    let filesBefore = try bytes(in: directory, "b")
    let error = #expect(throws: KeyhaulError.self) {
      _ = try replace(archive, at: directory.path("b"), with: file, "one")
    }
    #expect(error?.code == .changed)
    #expect(try bytes(in: directory, "b") == filesBefore)
  }

  @Test("The keychain of a backup in a directory with other files is not replaced")
  func unrelatedFile() throws {
    let directory = try TemporaryDirectory()
    let archive = try makeBackup("b/", in: directory, hasPassword: true)
    let file = try fileWithExtraItem(archive, archive.keybag.keys("one"))
    try directory.write([1], to: "b/note.txt")
    let filesBefore = try bytes(in: directory, "b")
    let error = #expect(throws: KeyhaulError.self) {
      _ = try replace(archive, at: directory.path("b"), with: file, "one")
    }
    #expect(error?.code == .occupied && error?.reason.contains("note.txt") == true)
    #expect(try bytes(in: directory, "b") == filesBefore)
  }
}
