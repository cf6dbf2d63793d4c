import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Keychain files of backups")
struct KeychainPayloadTests {
  private static let path = "51/\(KeychainPayload.fileIdentifier)"

  /// Returns the sample with a new encrypted manifest database.
  ///
  /// - Parameters:
  ///   - rows: The SQL that adds the rows of the table `Files`.
  ///   - payload: The stored keychain file, or `nil` if it is the sample's.
  ///   - tail: The bytes that replace the last bytes of the database.
  ///   - isStored: Whether the backup contains the keychain file.
  private func archive(
    _ sample: borrowing SampleBackup, rows: String, isPadded: Bool = true, payload: [UInt8]? = nil,
    tail: [UInt8] = [], isStored: Bool = true
  ) throws -> BackupArchive {
    var files = try sample.storedFiles()
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "manifest"))
    var database = try ExternalDatabase.bytes(ExternalDatabase.schema + rows)
    database.replaceSubrange((database.count - tail.count)..., with: tail)
    let encrypted = try FileCipher.encrypt(database, key: key)
    files["Manifest.db"] = isPadded ? encrypted : encrypted.dropLast(16)
    var manifest = try BackupManifest(parsing: try #require(files["Manifest.plist"]))
    manifest.manifestKey = try sample.keys.wrapFileKey(key, keyClass: .fileNone)
    files["Manifest.plist"] = try manifest.serialized()
    if let payload { files[Self.path] = payload }
    if !isStored { files[Self.path] = nil }
    return try open(packed(files))
  }

  private func row(_ record: FileRecord, flags: Int = 1) throws -> String {
    ExternalDatabase.keychainRow(flags: flags, record: try record.archived())
  }

  /// Returns the sample's payload, encrypted with a new key, and its record.
  private func payload(_ sample: borrowing SampleBackup) throws -> (record: FileRecord, stored: [UInt8]) {
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "payload"))
    let wrappedKey = try sample.keys.wrapFileKey(key, keyClass: .fileComplete)
    let record = FileRecord(
      relativePath: KeychainPayload.relativePath, encryptionKey: try ClassWrappedKey(parsing: wrappedKey),
      mode: 0o100600,
      size: Int64(try sample.contents.keychainFile.count), protectionClass: .fileComplete)
    return (record, try FileCipher.encrypt(sample.contents.keychainFile, key: key))
  }

  /// Returns the error if the keychain file cannot be read, otherwise `nil`.
  private func failure(_ sample: borrowing SampleBackup, _ archive: BackupArchive) throws -> KeyhaulError? {
    do throws(KeyhaulError) {
      _ = try archive.keychainFile(with: sample.keys)
      return nil
    } catch {
      return error
    }
  }

  @Test("The keychain file is found with any class of the file and the manifest")
  func otherClasses() throws {
    let sample = try SampleBackup()
    let (record, stored) = try payload(sample)
    let opened = try archive(sample, rows: try row(record), payload: stored).keychainFile(with: sample.keys)
    #expect(try opened.bytes == sample.contents.keychainFile)
    #expect(opened.anomalies.isEmpty)
    // Flags other than 1, the value for a file.
    for flags in [33, 137, 0] {
      let archive = try archive(sample, rows: try row(record, flags: flags), payload: stored)
      #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    }
  }

  @Test(
    "The padding determines the size of the keychain file, and a different recorded size is a note",
    arguments: [-1, 1, 1 << 40])
  func recordedSize(difference: Int64) throws {
    let sample = try SampleBackup()
    var (record, stored) = try payload(sample)
    record.size += difference
    let opened = try archive(sample, rows: try row(record), payload: stored).keychainFile(with: sample.keys)
    #expect(try opened.bytes == sample.contents.keychainFile)
    #expect(opened.anomalies == [.sizeDiffers(recorded: record.size, found: Int64(opened.bytes.count))])
  }

  @Test("The keychain file is found in a manifest that is encrypted without padding")
  func unpaddedDatabase() throws {
    let sample = try SampleBackup()
    let (record, stored) = try payload(sample)
    // The database itself may end with bytes that are also valid as padding.
    for tail in [[], [1], [2, 2], [UInt8](repeating: 16, count: 16)] as [[UInt8]] {
      let archive = try archive(sample, rows: try row(record), isPadded: false, payload: stored, tail: tail)
      let opened = try archive.keychainFile(with: sample.keys)
      #expect(opened.anomalies == [.databaseUnpadded])
    }
  }

  @Test("A backup with neither a keychain file nor a row for it has no keychain")
  func neitherStoredNorListed() throws {
    let sample = try SampleBackup()
    #expect(try failure(sample, try archive(sample, rows: "", isStored: false))?.code == .noKeychain)
  }

  @Test("A keychain file that the manifest lists, but that is not stored, is missing")
  func notStored() throws {
    let sample = try SampleBackup()
    var files = try sample.storedFiles()
    files[Self.path] = nil
    let error = try #require(try failure(sample, try open(packed(files))))
    #expect(error.code == .payloadMissing)
    #expect(error.category == .damaged)
  }

  @Test("A stored keychain file is damaged if the manifest has no row for it, or one without a valid record")
  func invalidRow() throws {
    let sample = try SampleBackup()
    let (record, stored) = try payload(sample)
    let rowWithoutRecord = ExternalDatabase.keychainRow()
    #expect(try failure(sample, try archive(sample, rows: ""))?.code == .damaged)
    #expect(try failure(sample, try archive(sample, rows: rowWithoutRecord))?.code == .damaged)

    var recordWithoutKey = record
    recordWithoutKey.encryptionKey = nil
    var recordWithOtherPath = record
    recordWithOtherPath.relativePath = "../keychain-backup.plist"
    let directoryRow = try row(record, flags: 2)
    for row in [try row(recordWithoutKey), try row(recordWithOtherPath), directoryRow] {
      #expect(try failure(sample, try archive(sample, rows: row, payload: stored))?.code == .damaged, "\(row)")
    }
  }

  @Test("A truncated keychain file is damaged")
  func truncated() throws {
    let sample = try SampleBackup()
    var files = try sample.storedFiles()
    let complete = try #require(files[Self.path])
    for count in [0, 1, 16, complete.count - 16, complete.count - 1] {
      files[Self.path] = Array(complete.prefix(count))
      #expect(try failure(sample, try open(packed(files)))?.category == .damaged, "\(count) bytes")
    }
  }

  @Test("A keychain file with a damaged key is damaged")
  func damagedKey() throws {
    let sample = try SampleBackup()
    var (record, stored) = try payload(sample)
    record.encryptionKey?.wrappedKey[5] ^= 1
    #expect(try failure(sample, try archive(sample, rows: try row(record), payload: stored))?.category == .damaged)
  }

  @Test("The keys of another backup do not decrypt the keychain file")
  func otherKeys() throws {
    let sample = try SampleBackup()
    let otherSample = try SampleBackup(seed: "other")
    let error = try #require(try failure(otherSample, try open(packed(try sample.storedFiles()))))
    #expect(error.category == .damaged)
    #expect(error.reason.hasPrefix("the key of the manifest database"))
  }

  @Test("A keychain file whose class key is damaged is damaged, and without a password its key is unavailable")
  func damagedClassKey() throws {
    let sample = try SampleBackup()
    var keybag = sample.contents.keybag
    let index = try #require(keybag.classKeys.firstIndex { $0.keyClass == .fileUntilFirstUserAuthentication })
    keybag.classKeys[index].wrappedKey?[7] ^= 1
    let password: Secret? = Secret(utf8: SampleBackup.password)
    let deviceKey: DeviceKey? = nil
    let keys = try keybag.unlock(password: password, deviceKey: deviceKey)
    let archive = try open(packed(try sample.storedFiles()))
    let error = #expect(throws: KeyhaulError.self) { try archive.keychainFile(with: keys) }
    #expect(error?.category == .damaged)
    let noPassword: Secret? = nil
    let keysWithoutPassword = try keybag.unlock(password: noPassword, deviceKey: deviceKey)
    let errorWithoutPassword = #expect(throws: KeyhaulError.self) {
      try archive.keychainFile(with: keysWithoutPassword)
    }
    #expect(errorWithoutPassword?.category == .wrongPassword)
  }

  /// A manifest key has four bytes for its class, and a wrapped key of forty bytes.
  @Test("A manifest key with a wrong size is damaged", arguments: [0, 43, 45])
  func manifestKeyLength(count: Int) throws {
    let sample = try SampleBackup()
    var files = try sample.storedFiles()
    var manifest = try BackupManifest(parsing: try #require(files["Manifest.plist"]))
    manifest.manifestKey = [UInt8](repeating: 3, count: count)
    files["Manifest.plist"] = try manifest.serialized()
    #expect(try failure(sample, try open(packed(files)))?.code == .damaged)
  }

  @Test("The keychain of a backup without a password is readable without keys, and its digest is checked")
  func withoutPassword() throws {
    let sample = try SampleBackup(hasPassword: false)
    var files = try sample.storedFiles()
    let archive = try open(packed(files))
    #expect(try archive.keychainFile().bytes == sample.contents.keychainFile)
    #expect(try archive.keychainFile().anomalies.isEmpty)
    #expect(try archive.fileList().listing().fileCount == 1)
    files[Self.path]?[40] ^= 1
    let file = try open(packed(files)).keychainFile()
    #expect(try file.anomalies == [.digestDiffers] && file.bytes != sample.contents.keychainFile)
  }

  @Test("The keychain of a backup with a password is not readable without keys")
  func withoutKeys() throws {
    let archive = try open(packed(try SampleBackup().storedFiles()))
    let error = #expect(throws: KeyhaulError.self) { try archive.keychainFile() }
    #expect(error?.category == .wrongPassword)
  }
}

@Suite("The published synthetic backup")
final class SyntheticBackupTests {
  private let directory: TemporaryDirectory
  private let vectors: TestVectors
  private let keybag: Keybag
  private let keys: ClassKeys
  /// The encrypted items, and the keychain file that contains them.
  private let items: [KeychainBackupFile.Entry]
  private let keychain: [UInt8]

  /// Writes the backup from its parts in the vectors.
  init() throws {
    directory = try TemporaryDirectory()
    vectors = try TestVectors.section("synthetic_backup")
    keybag = try Keybag(parsing: try vectors["keybag_hex"].bytes)
    let password: Secret? = Secret(utf8: try vectors["password"].string)
    let deviceKey: DeviceKey? = nil
    keys = try keybag.unlock(password: password, deviceKey: deviceKey)
    items = try vectors["items"].elements.prefix(4).map { item in
      KeychainBackupFile.Entry(
        kind: try #require(ItemKind(rawValue: try item["table"].string)), blob: try item["v_Data_hex"].bytes,
        persistentReference: try item["v_PersistentRef_hex"].bytes)
    }
    keychain = try KeychainBackupFile(keybagUUID: keybag.uuidText, entries: items).serialized()
    try writeFiles()
    try writePropertyLists()
  }

  /// Writes the payloads and the encrypted manifest database.
  private func writeFiles() throws {
    var rows = ""
    for file in try vectors["files"].elements {
      let record = try file["file_blob_hex"].bytes
      let identifier = try file["fileID"].string
      rows += ExternalDatabase.row(
        identifier, domain: try file["domain"].string, path: try file["relativePath"].string,
        flags: try file["flags"].integer, record: record)
      if let wrappedKey = try FileRecord(archive: record).encryptionKey {
        let plaintext = identifier == KeychainPayload.fileIdentifier ? keychain : Array("sixteen bytes...".utf8)
        let stored = try FileCipher.encrypt(plaintext, key: try keys.unwrapFileKey(wrappedKey.serialized()))
        try directory.write(stored, to: "\(identifier.prefix(2))/\(identifier)")
      }
    }
    let manifestKey = Secret(copying: try vectors["manifest_key_hex"].bytes)
    let database = try ExternalDatabase.bytes(ExternalDatabase.schema + rows)
    try directory.write(try FileCipher.encrypt(database, key: manifestKey), to: "Manifest.db")
  }

  private func writePropertyLists() throws {
    let manifest: PropertyDictionary = [
      "BackupKeyBag": .data(try vectors["keybag_hex"].bytes), "IsEncrypted": .boolean(true), "Version": .string("10.0"),
      "ManifestKey": .data(try vectors["manifest_key_field_hex"].bytes),
      "Lockdown": .dictionary(["ProductVersion": .string("17.0")]),
    ]
    try directory.write(try BinaryPlist.encode(.dictionary(manifest)), to: "Manifest.plist")
    try directory.write(
      try BinaryPlist.encode(.dictionary(["SnapshotState": .string("finished")])), to: "Status.plist")
  }

  @Test("The synthetic backup opens with its password, and all of its files are stored")
  func files() throws {
    let archive = try BackupArchive.open(.path(directory.path))
    #expect(archive.device.productVersion == "17.0")
    #expect(try archive.storedFiles().count == 3)
    let fileList = try archive.fileList(with: keys)
    let listing = try fileList.listing()
    #expect(listing.fileCount == 3)
    #expect(listing.rowCountByDomain == ["KeychainDomain": 2, "HomeDomain": 2])
    #expect(listing.inconsistentRowCount == 0)
    #expect(try fileList.listing(against: try archive.storedFiles()).missingCount == 0)
  }

  @Test("Without stored payloads, all regular files of the synthetic backup are missing")
  func missingFiles() throws {
    let fileList = try BackupArchive.open(.path(directory.path)).fileList(with: keys)
    let noPayloads = StoredPayloads()
    var missingIdentifiers: Set<String> = []
    let listing = try fileList.listing(against: noPayloads) { (file, _) throws(KeyhaulError) in
      if noPayloads.lacks(file) { missingIdentifiers.insert(file.fileIdentifier) }
    }
    let regular = try vectors["files"].elements.filter { try $0["flags"].integer == 1 }
    #expect(missingIdentifiers == Set(try regular.map { try $0["fileID"].string }))
    #expect(listing.missingCount == missingIdentifiers.count)
  }

  @Test("The keychain of the synthetic backup has its items, in the order of their kinds")
  func keychainFile() throws {
    let payload = try BackupArchive.open(.path(directory.path)).keychainFile(with: keys)
    #expect(payload.bytes == keychain)
    #expect(payload.file.keybagUUID == keybag.uuidText)
    let entries = payload.file.entries
    let expectedKinds = ItemKind.allCases.flatMap { kind in items.map(\.kind).filter { $0 == kind } }
    #expect(entries.map(\.kind) == expectedKinds)
    #expect(Set(entries.compactMap(\.blob)) == Set(items.compactMap(\.blob)))
  }
}
