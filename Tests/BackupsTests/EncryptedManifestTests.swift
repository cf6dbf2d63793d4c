import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Backups of iOS 10.0 with encrypted records")
struct EncryptedManifestTests {
  private let identifier = KeychainPayload.fileIdentifier
  private static let salt = [UInt8](0..<8)

  /// Encrypts a record as in iOS 10.0, without Base64: AES-128-CBC with the salted hash of the password as its key.
  private func encrypted(_ record: [UInt8], password: String = SampleBackup.password) throws -> [UInt8] {
    let hash = SHA1.hash(Array(password.utf8) + Self.salt)
    let key = Secret(copying: hash.prefix(16))
    let paddingCount = 16 - record.count % 16
    let padded = record + [UInt8](repeating: UInt8(paddingCount), count: paddingCount)
    let context = try CipherContext(.aes128CBC, .encrypt)
    try key.withBytes { try context.begin(key: $0, iv: [UInt8](0..<16)) }
    return try [UInt8](count: padded.count) { (output) throws(DataProtectionError) in
      try padded.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
    }
  }

  private func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }

  /// Returns the decrypted record of the keychain file.
  private func record(_ sample: borrowing SampleBackup) throws -> [UInt8] {
    let fileList = try open(packed(try sample.storedFiles())).fileList(with: sample.keys)
    let file = try fileList.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    return try #require(try file?.record()).archived()
  }

  /// Creates a backup with the manifest of iOS 10.0.
  ///
  /// - Parameters:
  ///   - record: The SQL expression of the keychain file's record, or an empty string for a manifest without rows.
  ///   - properties: The SQL values for the table `Properties`, in parentheses.
  private func backup(
    _ sample: borrowing SampleBackup, record: String,
    properties: String = "('salt', x'0001020304050607'), ('passwordHash', x'00')"
  ) throws -> BackupArchive {
    var files = try sample.storedFiles()
    var root = try propertyList("Manifest.plist", in: files)
    root["ManifestKey"] = nil
    files["Manifest.plist"] = try BinaryPlist.encode(.dictionary(root))
    var sql = ExternalDatabase.schema
    if !record.isEmpty {
      sql += "INSERT INTO Files VALUES ('\(identifier)', 'KeychainDomain', 'keychain-backup.plist', 1, \(record));"
    }
    if !properties.isEmpty { sql += "INSERT INTO Properties VALUES \(properties);" }
    files["Manifest.db"] = try ExternalDatabase.bytes(sql)
    return try open(packed(files))
  }

  /// Returns the class keys with the key of the records.
  private func keys(of archive: BackupArchive, _ password: String = SampleBackup.password) throws -> ClassKeys {
    let keys = try archive.keybag.unlock(password: Secret(utf8: password), deviceKey: nil)
    return keys.with(recordKey: try archive.recordKey(password: Secret(utf8: password)))
  }

  @Test("A backup of iOS 10.0 opens with its password, with records as Base64 text, Base64 data, or bytes")
  func opens() throws {
    let sample = try SampleBackup()
    let bytes = try encrypted(try record(sample))
    let base64Text = "'\(base64(bytes))'"
    let base64Data = "x'\(Array(base64(bytes).utf8).hex)'"
    for record in [base64Text, base64Data, "x'\(bytes.hex)'"] {
      let archive = try backup(sample, record: record)
      #expect(archive.isEncrypted && archive.isListEncrypted && !archive.isListFileEncrypted)
      #expect(archive.hasEncryptedRecords && archive.anomalies.isEmpty)
      #expect(try archive.keychainFile(with: keys(of: archive)).bytes == sample.contents.keychainFile)
    }
  }

  @Test("The manifest cannot be read without the key of its records")
  func withoutRecordKey() throws {
    let sample = try SampleBackup()
    let archive = try backup(sample, record: "'\(base64(try encrypted(try record(sample))))'")
    let errorWithoutKeys = #expect(throws: KeyhaulError.self) { _ = try archive.fileList() }
    let errorWithClassKeys = #expect(throws: KeyhaulError.self) { _ = try archive.fileList(with: sample.keys) }
    #expect(errorWithoutKeys?.code == .keyUnavailable && errorWithClassKeys?.code == .keyUnavailable)
  }

  @Test("A record that cannot be decrypted is damaged")
  func damagedRecord() throws {
    let sample = try SampleBackup()
    let truncated = Array(try encrypted(try record(sample)).dropLast())
    let ofOtherPassword = try encrypted(try record(sample), password: "battery staple")
    for record in ["x'\(truncated.hex)'", "x'\(ofOtherPassword.hex)'", "'no base64!'", "x'00'"] {
      let archive = try backup(sample, record: record)
      let error = #expect(throws: KeyhaulError.self) { try archive.keychainFile(with: keys(of: archive)) }
      #expect(error?.code == .damaged && error?.reason.hasPrefix("the record of \(identifier): ") == true)
      // The names in the manifest are unencrypted.
      #expect(try archive.fileList(with: keys(of: archive)).listing().fileCount == 1)
    }
  }

  @Test(
    "A backup without a usable salt is damaged, with the reason",
    arguments: [
      ("", "no salt"), ("('passwordHash', x'00')", "no salt"), ("('salt', x'')", "a salt of 0 bytes"),
      ("('salt', NULL)", "neither data nor text"), ("('salt', 7)", "neither data nor text"),
      ("('salt', zeroblob(1025))", "a salt of 1,025 bytes"),
    ])
  func noSalt(properties: String, reason: String) throws {
    let sample = try SampleBackup()
    let archive = try backup(
      sample, record: "x'\(try encrypted(try record(sample)).hex)'", properties: properties)
    #expect(archive.isEncrypted && archive.hasEncryptedRecords)
    let error = #expect(throws: KeyhaulError.self) { _ = try archive.fileList(with: keys(of: archive)) }
    #expect(error?.code == .damaged && error?.reason.contains(reason) == true)
  }

  @Test("A salt can have the maximum size, and can be text")
  func salts() throws {
    let sample = try SampleBackup()
    let record = "x'\(try encrypted(try record(sample)).hex)'"
    for properties in ["('salt', zeroblob(1024))", "('salt', 'NaCl')"] {
      let archive = try backup(sample, record: record, properties: properties)
      // The record was encrypted with a different salt.
      #expect(throws: KeyhaulError.self) { try archive.keychainFile(with: keys(of: archive)) }
      #expect(try archive.fileList(with: keys(of: archive)).listing().fileCount == 1)
    }
  }

  @Test("Without rows, the password properties identify a backup of iOS 10.0")
  func noRows() throws {
    #expect(try backup(SampleBackup(), record: "").hasEncryptedRecords)
  }

  @Test("The password of a backup of iOS 10.0 cannot be changed or removed")
  func notRekeyed() throws {
    let sample = try SampleBackup()
    let archive = try backup(sample, record: "'\(base64(try encrypted(try record(sample))))'")
    let rekeyError = #expect(throws: KeyhaulError.self) { try BackupRewriter.checkRekeying(of: archive) }
    let reencryptionError = #expect(throws: KeyhaulError.self) { try BackupRewriter.checkReencryption(of: archive) }
    #expect(rekeyError == reencryptionError && rekeyError?.code == .sealedList && rekeyError?.category == .refused)
    #expect(
      rekeyError?.reason == "each record in its manifest is encrypted with its current password, as iOS 10.0 wrote it")
  }
}
