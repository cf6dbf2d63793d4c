import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@Suite("Adding and removing passwords of backups")
struct ReencryptionTests {
  private func rewrite(
    _ path: String, with keybag: Keybag, currentPassword: String, system: FileSystem = unsynced
  ) throws -> RewrittenBackup {
    let archive = try BackupArchive.open(.path(path))
    return try BackupRewriter(system: system).reencrypt(
      archive, at: path, with: keybag, keys: archive.keybag.keys(currentPassword))
  }

  /// Creates the backup as a directory or a container file, and returns its path.
  private func makeBackup(
    _ fixture: UnencryptedBackupFixture, _ directory: TemporaryDirectory, as destination: String
  ) throws -> String {
    try fixture.write(to: directory)
    guard destination != "backup" else { return directory.path("backup") }
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    _ = try BackupRewriter(system: unsynced).convert(
      archive, at: directory.path("backup"), to: BackupDestination(path: directory.path(destination)))
    return directory.path(destination)
  }

  @Test("A backup of iOS 9 or earlier is refused before anything is changed", arguments: [true, false])
  func oldLayout(hasPassword: Bool) throws {
    let directory = try TemporaryDirectory()
    try MBDBBackup(try SampleBackup(hasPassword: hasPassword)).write(to: directory, "backup")
    let error = #expect(throws: KeyhaulError.self) {
      try BackupRewriter.checkReencryption(of: try BackupArchive.open(.path(directory.path("backup"))))
    }
    #expect(error?.code == .unsupported)
    #expect(error?.reason == "it is from iOS 9 or earlier; this works with backups from iOS 10 and later")
  }

  @Test("Adding a password keeps the permissions of a container file")
  func permissions() throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    let path = try makeBackup(fixture, directory, as: "b.tar")
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    _ = try rewrite(path, with: try fixture.keybagWithPassword("correct horse"), currentPassword: "")
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o644)
  }

  static let destinations = ["backup", "b.tar", "b.tar.zst", "b.zip"]

  @Test("After adding a password, no plaintext remains, and all files open with the password", arguments: destinations)
  func passwordAdded(destination: String) throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    let path = try makeBackup(fixture, directory, as: destination)
    let keybag = try fixture.keybagWithPassword("correct horse")
    let outcome = try rewrite(path, with: keybag, currentPassword: "")
    #expect(outcome.fileCount == 11 && outcome.unrelatedFiles.isEmpty && outcome.leftover == nil)

    let archive = try BackupArchive.open(.path(path))
    #expect(archive.isEncrypted && archive.keybag == keybag && archive.keybag.uuid == fixture.keybag.uuid)
    #expect(archive.manifest.manifestKey?.count == 44)
    #expect(throws: DataProtectionError.self) { _ = try archive.keybag.keys("") }
    try checkEncryptedFiles(of: archive, fixture)
    let keys = try archive.keybag.keys("correct horse")
    let keychain = try archive.keychainFile(with: keys)
    #expect(keychain.bytes == fixture.keychain && keychain.anomalies.isEmpty)
    if destination == "backup" { try checkNoPlaintext(in: directory) }
    // The keys of device-bound classes additionally require the device key.
    for keyClass: UInt32 in 1...11 {
      let expected: ClassKeyAvailability = [5, 9, 10, 11].contains(keyClass) ? .deviceBound : .available
      #expect(keys.availability(of: KeyClass(rawValue: keyClass)) == expected)
    }
  }

  /// Checks that each file has its content, its own key, and a matching record.
  private func checkEncryptedFiles(of archive: BackupArchive, _ fixture: UnencryptedBackupFixture) throws {
    let files = try archive.plainFiles(archive.keybag.keys("correct horse"))
    #expect(files.count == 6)
    for file in try fixture.contents() {
      let written = try #require(files["\(file.domain)-\(file.path)"])
      #expect(written.bytes == file.bytes, "\(file.path)")
      #expect(written.reading.hasValidPadding)
      #expect(written.record.digest == written.reading.storedSHA1)
      #expect(written.record.size == Int64(file.bytes.count) && written.record.extendedAttributes == [1, 2, 3])
      // The padding fills the last cipher block, or is a block of its own.
      let blockByteCount = 16
      let paddedByteCount = (file.bytes.count / blockByteCount + 1) * blockByteCount
      #expect(written.reading.storedByteCount == Int64(paddedByteCount))
    }
    #expect(Set(files.values.map { $0.record.encryptionKey?.wrappedKey }).count == 6)
    for (name, keyClass): (String, UInt32) in [
      ("HomeDomain-Library/fifteen", 1), ("AppDomain-com.example-Documents/notes", 3),
    ] {
      #expect(files[name]?.record.encryptionKey?.keyClass.rawValue == keyClass)
    }
  }

  /// Checks that no file contains the texts of the unencrypted files, manifest, and keychain.
  private func checkNoPlaintext(in directory: TemporaryDirectory) throws {
    for (name, content) in try bytes(in: directory, "backup") {
      for text in ["plain text here", "Library/fifteen", "SQLite format 3", "keybag-uuid"] {
        #expect(Data(content).range(of: Data(text.utf8)) == nil, "\(text) in \(name)")
      }
    }
  }

  @Test("Removing the password restores the original backup, except for the keybag's salt", arguments: destinations)
  func passwordRemoved(destination: String) throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    let path = try makeBackup(fixture, directory, as: destination)
    let original = try BackupArchive.open(.path(path), system: .real)
    let originalFiles = try original.plainFiles(original.keybag.keys(""))
    let keybagWithPassword = try fixture.keybagWithPassword("correct horse")
    _ = try rewrite(path, with: keybagWithPassword, currentPassword: "")
    let keybag = try fixture.keybagWithoutPassword(keybagWithPassword, "correct horse")
    _ = try rewrite(path, with: keybag, currentPassword: "correct horse")

    let archive = try BackupArchive.open(.path(path))
    #expect(!archive.isEncrypted && archive.manifest.manifestKey == nil && archive.keybag == keybag)
    // Only a keybag with a password has a second step of key derivation.
    #expect(archive.keybag.secondStep == nil)
    let files = try archive.plainFiles(archive.keybag.keys(""))
    #expect(files.keys == originalFiles.keys)
    for (name, file) in files {
      #expect(file.bytes == originalFiles[name]?.bytes && file.record == originalFiles[name]?.record, "\(name)")
    }
    #expect(archive.manifest.others == original.manifest.others)
  }

  @Test("The class keys are unchanged after adding and removing a password")
  func sameClassKeys() throws {
    let fixture = try UnencryptedBackupFixture()
    let keybag = try fixture.keybagWithoutPassword(
      try fixture.keybagWithPassword("correct horse"), "correct horse")
    let oldKeys = try fixture.keybag.unlock(password: .empty, deviceKey: fixture.deviceKey)
    let newKeys = try keybag.unlock(password: .empty, deviceKey: fixture.deviceKey)
    for keyClass in (1...11).map({ KeyClass(rawValue: $0) }) {
      let wrappedKey = try oldKeys.wrapFileKey(Secret(utf8: String(repeating: "k", count: 32)), keyClass: keyClass)
      let byteCount = try newKeys.unwrapFileKey(wrappedKey).count
      #expect(byteCount == 32, "class \(keyClass.rawValue)")
      #expect(keybag.classKey(keyClass)?.wrap == fixture.keybag.classKey(keyClass)?.wrap)
    }
  }

  @Test("A directory with other files is refused, except files of the operating system")
  func unrelatedNames() throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    let keybag = try fixture.keybagWithPassword("x")
    try directory.write([1], to: "backup/.DS_Store")
    try directory.write([1], to: "backup/note.txt")
    let treeBefore = try tree(directory.path)
    let error = #expect(throws: KeyhaulError.self) {
      _ = try rewrite(directory.path("backup"), with: keybag, currentPassword: "")
    }
    #expect(error?.code == .occupied && error?.reason.contains("note.txt") == true)
    #expect(try tree(directory.path) == treeBefore)
    try FileManager.default.removeItem(atPath: directory.path("backup/note.txt"))
    _ = try rewrite(directory.path("backup"), with: keybag, currentPassword: "")
    #expect(try BackupArchive.open(.path(directory.path("backup"))).isEncrypted)
  }

  @Test("An unlisted payload is reported and not copied")
  func unlisted() throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    let name = "55/" + String(repeating: "5", count: 40)
    try directory.write(Array("plain text here".utf8), to: "backup/\(name)")
    let outcome = try rewrite(directory.path("backup"), with: try fixture.keybagWithPassword("x"), currentPassword: "")
    #expect(outcome.unrelatedFiles == [name])
    #expect(!FileManager.default.fileExists(atPath: directory.path("backup/\(name)")))
  }

  @Test("The operation stops at a file that can be decrypted only in part")
  func damaged() throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    let keybag = try fixture.keybagWithPassword("x")
    _ = try rewrite(directory.path("backup"), with: keybag, currentPassword: "")
    let file = try #require(try fixture.contents().first { $0.path == "Media/large.jpg" })
    let name = "backup/\(file.identifier.prefix(2))/\(file.identifier)"
    var stored = try directory.read(name)
    // In CBC mode, flipping a bit of an encrypted block flips the same bit of the next decrypted block. Here, it is the
    // top bit of the last byte, which states the size of the padding. A size above 16 is invalid.
    stored[stored.count - 17] ^= 0x80
    try directory.write(stored, to: name)
    let treeBefore = try tree(directory.path)
    let withoutPassword = try fixture.keybagWithoutPassword(keybag, "x")
    let error = #expect(throws: KeyhaulError.self) {
      _ = try rewrite(directory.path("backup"), with: withoutPassword, currentPassword: "x")
    }
    #expect(error?.code == .damaged)
    #expect(try tree(directory.path) == treeBefore)
  }

  @Test(
    "If a call fails, the backup is either unchanged or encrypted",
    arguments: ["backup", "b.tar"],
    [FileSystem.InjectedFault.failure(.noSpace), .failure(.ioError), .short])
  func failedCall(destination: String, fault: FileSystem.InjectedFault) throws {
    let fixture = try UnencryptedBackupFixture()
    let keybag = try fixture.keybagWithPassword("x")
    // A directory needs more calls than a container, so the steps are larger. A quick run tests a fifth of these calls.
    let step = destination == "backup" ? 7 : 3
    for call in stride(from: 1, through: 100_000, by: Cases.isExhaustive ? step : 5 * step) {
      let directory = try TemporaryDirectory()
      let path = try makeBackup(fixture, directory, as: destination)
      let treeBefore = try tree(directory.path)
      let failing = SingleFault(at: call, fault)
      var failed = false
      do {
        _ = try rewrite(path, with: keybag, currentPassword: "", system: failing.system)
      } catch let error as KeyhaulError {
        failed = true
        #expect([.noSpace, .unwritable, .unreadable, .changed].contains(error.code), "call \(call): \(error)")
      }
      let archive = try BackupArchive.open(.path(path))
      #expect(archive.isEncrypted == !failed, "call \(call)")
      if failed { #expect(try tree(directory.path) == treeBefore, "call \(call)") }
      // The rewrite made fewer calls, so the fault was not injected.
      if failing.callCount < call { break }
    }
  }

  @Test("If the file system cannot exchange two names, a directory is replaced by two renames")
  func withoutExchange() throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    let withoutExchange = FileSystem { call in
      switch call {
      case .exchange: .failure(.noFunction)
      case .sync: .omitted
      default: nil
      }
    }
    let keybag = try fixture.keybagWithPassword("x")
    _ = try rewrite(directory.path("backup"), with: keybag, currentPassword: "", system: withoutExchange)
    #expect(try BackupArchive.open(.path(directory.path("backup"))).isEncrypted)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["backup"])
  }
}
