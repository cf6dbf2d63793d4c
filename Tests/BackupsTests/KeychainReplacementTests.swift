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
    let old = try makeBackup(name, in: directory, hasPassword: hasPassword)
    let password = hasPassword ? "one" : ""
    let before = try old.plainFiles(old.keybag.keys(password))
    let file = try fileWithExtraItem(old, old.keybag.keys(password))
    let path = directory.path(name)
    _ = try replace(old, at: path, with: file, password)

    let new = try BackupArchive.open(.path(path))
    #expect(try new.keychainFile(with: new.keybag.keys(password)).bytes == file)
    #expect(try new.manifest.serialized() == old.manifest.serialized())
    let after = try new.plainFiles(new.keybag.keys(password))
    #expect(after.keys == before.keys)
    for (path, now) in after {
      let isKeychain = path == "\(KeychainPayload.domain)-\(KeychainPayload.relativePath)"
      #expect((now.bytes == before[path]?.bytes) == !isKeychain, "\(path)")
      #expect(now.record.size == Int64(now.bytes.count) && now.reading.matches(now.record.digest) != false, "\(path)")
      #expect((now.record == before[path]?.record) == !isKeychain, "\(path)")
    }
    #expect(try new.keychainFile(with: new.keybag.keys(password)).anomalies.isEmpty)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == 1)
  }

  @Test("All other files keep their bytes, times, and permissions", arguments: [true, false])
  func otherFiles(hasPassword: Bool) throws {
    let directory = try TemporaryDirectory()
    let old = try makeBackup("b/", in: directory, hasPassword: hasPassword)
    let password = hasPassword ? "one" : ""
    func attributes() throws -> [String: [FileAttributeKey: String]] {
      try bytes(in: directory, "b").keys.reduce(into: [:]) { attributes, path in
        let all = try FileManager.default.attributesOfItem(atPath: directory.path("b/\(path)"))
        attributes[path] = [.modificationDate, .posixPermissions, .systemFileNumber].reduce(into: [:]) {
          $0[$1] = "\(all[$1] ?? "none")"
        }
      }
    }
    let (stored, before) = (try bytes(in: directory, "b"), try attributes())
    _ = try replace(old, at: directory.path("b"), with: fileWithExtraItem(old, old.keybag.keys(password)), password)
    let (now, after) = (try bytes(in: directory, "b"), try attributes())
    // Without a password, the sample has no seal.
    let changed = ["Manifest.db", "51/\(KeychainPayload.fileIdentifier)", "Keyhaul.seal"]
    #expect(stored.keys == now.keys)
    for path in stored.keys {
      #expect((stored[path] == now[path]) == !changed.contains(path), "\(path)")
      #expect((before[path] == after[path]) == !changed.contains(path), "\(path)")
    }
  }

  @Test("Without hard links, the other files are copied")
  func withoutLinks() throws {
    let directory = try TemporaryDirectory()
    let old = try makeBackup("b/", in: directory, hasPassword: true)
    let stored = try bytes(in: directory, "b")
    let file = try fileWithExtraItem(old, old.keybag.keys("one"))
    let system = FileSystem { call in
      switch call {
      case .link: .failure(.notSupported)
      case .sync: .omitted
      default: nil
      }
    }
    _ = try replace(old, at: directory.path("b"), with: file, "one", system: system)
    let now = try bytes(in: directory, "b")
    let changed = Set(now.keys.filter { stored[$0] != now[$0] })
    #expect(
      changed == ["Manifest.db", "51/\(KeychainPayload.fileIdentifier)", "Keyhaul.seal"] && stored.count == now.count)
  }

  @Test(
    "After a failure, the old or the new backup exists (a directory and a third of the calls in a quick run)",
    arguments: Cases.chosen(["b/", "b.zip"], quick: 1), FaultInjectionTests.faults)
  func everyCall(name: String, fault: FileSystem.InjectedFault) throws {
    let directory = try TemporaryDirectory()
    let old = try makeBackup(name, in: directory, hasPassword: true)
    let file = try fileWithExtraItem(old, old.keybag.keys("one"))
    let path = directory.path(name)
    for call in fault.calls(among: FaultInjectionTests.faults) {
      let before = try tree(directory.path)
      let failing = SingleFault(at: call, fault)
      let archive = try BackupArchive.open(.path(path))
      let result = Result { try replace(archive, at: path, with: file, "one", system: failing.system) }
      let now = try BackupArchive.open(.path(path))
      let keychain = try now.keychainFile(with: now.keybag.keys("one")).bytes
      switch result {
      case .success: #expect(keychain == file, "call \(call)")
      case .failure: #expect(try tree(directory.path) == before, "call \(call)")
      }
      // The last call was reached. The archive reads through another file system, so a zip needs few calls.
      if failing.callCount < call { return #expect(call > (name == "b.zip" ? 3 : 8)) }
    }
  }

  @Test("A backup that has changed, and a directory with other files, are refused")
  func changedMeanwhile() throws {
    let directory = try TemporaryDirectory()
    let old = try makeBackup("b/", in: directory, hasPassword: true)
    let file = try fileWithExtraItem(old, old.keybag.keys("one"))
    _ = try replace(old, at: directory.path("b"), with: file, "one")
    let before = try bytes(in: directory, "b")
    let changed = #expect(throws: KeyhaulError.self) {
      _ = try replace(old, at: directory.path("b"), with: file, "one")
    }
    #expect(changed?.code == .changed)
    try directory.write([1], to: "b/note.txt")
    let now = try BackupArchive.open(.path(directory.path("b")))
    let occupied = #expect(throws: KeyhaulError.self) {
      _ = try replace(now, at: directory.path("b"), with: file, "one")
    }
    #expect(occupied?.code == .occupied && occupied?.reason.contains("note.txt") == true)
    #expect(try bytes(in: directory, "b").filter { $0.key != "note.txt" } == before)
  }
}
