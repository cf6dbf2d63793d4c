import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Encrypted backups with an unencrypted manifest")
struct PlaintextManifestTests {
  /// Creates an encrypted backup as in iOS 10.1: a single key derivation, and an unencrypted manifest with file keys.
  ///
  /// - Parameters:
  ///   - sql: Additional SQL statements for the manifest.
  ///   - manifestKey: The value of `ManifestKey`, which an unencrypted manifest does not need.
  private func files(
    _ sample: borrowing SampleBackup, adding sql: String = "", manifestKey: PropertyValue? = nil
  ) throws -> [(path: String, bytes: [UInt8])] {
    var files = try sample.storedFiles()
    var root = try propertyList("Manifest.plist", in: files)
    let archive = try open(packed(files))
    let fileList = try archive.fileList(with: sample.keys)
    let file = try fileList.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    let record = try #require(try file?.record())
    root["ManifestKey"] = manifestKey
    files["Manifest.plist"] = try BinaryPlist.encode(.dictionary(root))
    files["Manifest.db"] = try ExternalDatabase.bytes(
      ExternalDatabase.schema + ExternalDatabase.keychainRow(record: try record.archived()) + sql)
    return files
  }

  @Test("A backup of iOS 10.1, whose unencrypted manifest contains file keys, can be opened")
  func openable() throws {
    let sample = try SampleBackup()
    let archive = try open(packed(try files(sample)))
    #expect(archive.isEncrypted && !archive.isListEncrypted && archive.anomalies.isEmpty)
    // Only the keychain requires the password, not the manifest.
    #expect(try archive.fileList().listing(against: archive.storedFiles()).fileCount == 1)
    #expect(throws: KeyhaulError.self) { try archive.keychainFile() }
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    try archive.requireUsable(for: .restoring)
  }

  @Test("A backup with a seal whose authentication code cannot be checked is damaged")
  func uncheckableSeal() throws {
    let sample = try SampleBackup()
    var files = try files(sample, manifestKey: .data([3, 0, 0, 0] + [UInt8](repeating: 7, count: 40)))
    func verification() throws -> BackupVerification {
      let archive = try open(packed(files))
      #expect(archive.isEncrypted && !archive.isListEncrypted)
      return try BackupVerification(archive, keys: try archive.keybag.keys(SampleBackup.password))
    }
    let withoutSeal = try verification()
    #expect(withoutSeal.faults.allSatisfy { $0.check == .items })
    files["Keyhaul.seal"] = try sealWithInvalidCode(for: files)
    let withSeal = try verification()
    #expect(withSeal.verdict == .damaged && !withSeal.isWhole && !withSeal.isEachFileSealed)
    #expect(withSeal.faults.filter { $0.check == .seal }.map(\.file) == ["Keyhaul.seal"], "\(withSeal.faults)")
  }

  /// Returns a seal that anyone can create without the password: only its authentication code is invalid.
  private func sealWithInvalidCode(for files: [(path: String, bytes: [UInt8])]) throws -> [UInt8] {
    var seal = "keyhaul-seal 1 hmac-sha256\n"
    for (path, bytes) in files.filter({ $0.path != "Keyhaul.seal" }).sorted(by: { $0.path < $1.path }) {
      seal += "\(String(hexadecimal: try Digest.sha256(bytes))) \(bytes.count) \(path)\n"
    }
    let code = String(repeating: "0", count: 64)
    return Array("\(seal)\(code)\n".utf8)
  }

  @Test("The rows of the manifest determine the encryption, not the version or other tables")
  func encryptionFromRows() throws {
    let sample = try SampleBackup()
    let properties = "INSERT INTO Properties VALUES ('salt', x'00'), ('passwordHash', x'00');"
    #expect(try open(packed(try files(sample, adding: properties))).isEncrypted)
  }

  @Test("The password of a backup of iOS 10.1 can be changed and removed")
  func rekeyed() throws {
    let sample = try SampleBackup()
    let directory = try TemporaryDirectory()
    let path = directory.path("b.tar")
    try directory.write(packed(try files(sample)), to: "b.tar")
    let archive = try BackupArchive.open(.path(path))
    let keybag = try BackupKeybag.rewrap(
      archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: "battery staple"))
    try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: path, with: keybag)
    let rekeyed = try BackupArchive.open(.path(path))
    #expect(try rekeyed.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    // The keybag of a backup without a password has no second key derivation.
    var keybagWithoutPassword = keybag
    keybagWithoutPassword.secondStep = nil
    _ = try BackupRewriter(system: unsynced).reencrypt(
      rekeyed, at: path, with: keybagWithoutPassword, keys: try keybag.keys("battery staple"))
    let decrypted = try BackupArchive.open(.path(path))
    #expect(!decrypted.isEncrypted && decrypted.anomalies.isEmpty, "\(decrypted.anomalies)")
    #expect(try decrypted.keychainFile().bytes == sample.contents.keychainFile)
  }

  @Test("A backup without file keys that claims to be encrypted is read as unencrypted and cannot be restored")
  func falseClaim() throws {
    let sample = try SampleBackup(hasPassword: false)
    var files = try sample.storedFiles()
    var root = try propertyList("Manifest.plist", in: files)
    root["IsEncrypted"] = .boolean(true)
    files["Manifest.plist"] = try BinaryPlist.encode(.dictionary(root))
    let archive = try open(packed(files))
    #expect(!archive.isEncrypted && archive.anomalies == [.encryptionClaimed])
    #expect(try archive.keychainFile().bytes == sample.contents.keychainFile)
    let error = #expect(throws: KeyhaulError.self) { try archive.requireUsable(for: .restoring) }
    #expect(error?.code == .falseClaim && error?.category == .refused)
  }

  @Test("An encrypted manifest without a key is damaged")
  func keyIsMissing() throws {
    var files = try SampleBackup().storedFiles()
    var root = try propertyList("Manifest.plist", in: files)
    root["ManifestKey"] = nil
    files["Manifest.plist"] = try BinaryPlist.encode(.dictionary(root))
    let error = try #require(try failure(opening: packed(files)))
    #expect(error.code == .damaged && error.reason.contains("no ManifestKey"))
    files["Manifest.db"] = []
    #expect(try failure(opening: packed(files))?.code == .damaged)
  }
}
