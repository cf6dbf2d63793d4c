import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Known errors of other backup readers")
struct ReaderTrapTests {
  /// Opens the sample with a changed Manifest.plist.
  private func openSample(
    _ sample: borrowing SampleBackup, _ change: (inout PropertyDictionary) -> Void
  ) throws -> BackupArchive {
    var files = try sample.storedFiles()
    let bytes = try #require(files["Manifest.plist"])
    var root = try #require(try BinaryPlist.decode(bytes).dictionaryValue)
    change(&root)
    files["Manifest.plist"] = try BinaryPlist.encode(.dictionary(root))
    return try open(packed(files))
  }

  @Test(
    "Versions are not compared as text, and no version determines the format",
    arguments: [
      "9.3.6", "10.1.1", "10.2", "9", "", "x", "100.0",
    ])
  func versionAsText(version: String) throws {
    let sample = try SampleBackup()
    let archive = try openSample(sample) { root in
      root["Lockdown"] = .dictionary(["ProductVersion": .string(version)])
    }
    #expect(archive.layout == .manifestDB)
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
  }

  @Test(
    "A manifest whose version is 9.1 or a number is read like any other",
    arguments: [
      PropertyValue.string("9.1"), .real(10), .integer(10), .string("10"),
    ])
  func manifestVersion(version: PropertyValue) throws {
    let sample = try SampleBackup()
    let archive = try openSample(sample) { $0["Version"] = version }
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
  }

  @Test(
    "The padding determines the size of a file, not the recorded size", arguments: [-20, -1, 0, 1, 4096])
  func recordedSize(difference: Int64) throws {
    let plain = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
    let backup = try SingleFileBackup(plain, recordedSize: Int64(plain.count) + difference)
    var bytes: [UInt8] = []
    let reading = try backup.readFile { bytes.append(contentsOf: $0) }
    #expect(bytes == plain)
    #expect(reading.plainByteCount == 1000)
    #expect(reading.storedByteCount == 1008)
    #expect(reading.hasValidPadding)
  }

  @Test(
    "An empty file can be stored as a block of padding, as an empty payload, or not at all",
    arguments: [SingleFileBackup.Payload.encrypted, .empty, .missing])
  func emptyFile(payload: SingleFileBackup.Payload) throws {
    let backup = try SingleFileBackup([], recordedSize: 0, payload: payload)
    let reading = try backup.readFile { #expect($0.isEmpty) }
    #expect(reading.storedByteCount == (payload == .encrypted ? 16 : 0))
    #expect(reading.plainByteCount == 0)
    #expect(reading.hasValidPadding)
  }

  @Test("Empty manifests and an empty keychain file are damaged")
  func emptyMetadata() throws {
    let sample = try SampleBackup()
    let directory = try TemporaryDirectory()
    for name in ["Manifest.db", "Manifest.plist", "51/\(KeychainPayload.fileIdentifier)"] {
      var files = try sample.storedFiles()
      files[name] = []
      for file in files { try directory.write(file.bytes, to: "backup/\(file.path)") }
      let directoryError = #expect(throws: KeyhaulError.self, "\(name)") {
        try BackupArchive.open(.path(directory.path("backup"))).keychainFile(with: sample.keys)
      }
      #expect(directoryError?.category == .damaged, "\(name)")
      let error = #expect(throws: KeyhaulError.self, "\(name)") {
        try open(packed(files)).keychainFile(with: sample.keys)
      }
      #expect(error?.category == .damaged, "\(name)")
    }
  }

  @Test("An empty file is not a backup")
  func emptyContainer() throws {
    #expect(try failure(opening: [])?.code == .notABackup)
  }

  @Test("Rows that remain from a transfer can have a NULL domain, a NULL record, and flags 16")
  func leftOverRows() throws {
    let identifiers = (0..<3).map { String(repeating: "0\($0)", count: 20) }
    let sql =
      "INSERT INTO Files VALUES ('\(identifiers[0])', NULL, NULL, 16, NULL);"
      + "INSERT INTO Files VALUES ('\(identifiers[1])', NULL, 'x', 1, NULL);"
      + ExternalDatabase.row(SHA1.hash(Array("HomeDomain-a".utf8)).hex, domain: "HomeDomain", path: "a", flags: 16)
      + ExternalDatabase.row(SHA1.hash(Array("HomeDomain-b".utf8)).hex, domain: "HomeDomain", path: "b", flags: 17)
    let bytes = try SpooledData(try ExternalDatabase.bytes(ExternalDatabase.schema + sql))
    let fileList = FileList(try ManifestDatabase(try DatabaseBytes(bytes)))
    let listing = try fileList.listing()
    #expect(listing.rowWithoutDomainCount == 2)
    #expect(listing.inconsistentRowCount == 0)
    #expect(listing.fileCount == 1)
    #expect(listing.otherCount == 1)
    var kinds: [ListedFile.Kind] = []
    try fileList.forEachFile { (file) throws(KeyhaulError) in
      kinds.append(file.kind)
      #expect(try file.record() == nil)
      #expect(try file.hasMatchingIdentifier())
    }
    #expect(kinds == [.other, .file, .other, .file])
    #expect(try fileList.file(domain: "HomeDomain", relativePath: "b")?.kind == .file)
  }

  @Test("Class 16 in a keybag is a separate class, not class 0 of a later generation")
  func classSixteen() throws {
    let sample = try SampleBackup()
    var keybag = sample.contents.keybag
    let fileNone = try #require(keybag.classKeys.first { $0.keyClass == .fileNone })
    keybag.classKeys.append(
      Keybag.ClassKey(
        uuid: [UInt8](repeating: 9, count: 16), keyClass: KeyClass(rawValue: 16), wrap: try #require(fileNone.wrap),
        wrappedKey: try #require(fileNone.wrappedKey)))
    let noKey: DeviceKey? = nil
    let keys = try keybag.unlock(password: Secret(utf8: SampleBackup.password), deviceKey: noKey)
    let availability = [16, 0].map { keys.availability(of: KeyClass(rawValue: $0)) }
    #expect(availability == [.available, .absent])
    #expect(keys.wrappedCount == 12)
    #expect(keys.unwrappedCount == 12)
  }

  @Test("Without IsEncrypted, the key of the manifest database determines the encryption")
  func notStated() throws {
    let sample = try SampleBackup()
    let archive = try openSample(sample) { $0["IsEncrypted"] = nil }
    #expect(archive.isEncrypted)
    #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
  }

}

/// An encrypted backup whose manifest lists a single file.
final class SingleFileBackup {
  /// The stored payload of the file.
  enum Payload: Sendable { case encrypted, empty, missing }

  private let sample: SampleBackup
  private let archive: BackupArchive
  private let file: ListedFile

  init(_ plain: [UInt8], recordedSize: Int64, payload: Payload = .encrypted) throws {
    let sample = try SampleBackup()
    var files = try sample.storedFiles()
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "single"))
    let wrappedKey = try sample.keys.wrapFileKey(key, keyClass: .fileNone)
    let identifier = SHA1.hash(Array("HomeDomain-file".utf8)).hex
    let record = FileRecord(
      relativePath: "file", encryptionKey: try ClassWrappedKey(parsing: wrappedKey), mode: 0o100600, size: recordedSize,
      protectionClass: .fileNone)
    let manifestKey = try Secret(count: 32, from: SeededRandomSource(seed: "list"))
    let database = try ExternalDatabase.bytes(
      ExternalDatabase.schema
        + ExternalDatabase.row(identifier, domain: "HomeDomain", path: "file", record: try record.archived()))
    files["Manifest.db"] = try FileCipher.encrypt(database, key: manifestKey)
    var manifest = try BackupManifest(parsing: try #require(files["Manifest.plist"]))
    manifest.manifestKey = try sample.keys.wrapFileKey(manifestKey, keyClass: .fileNone)
    files["Manifest.plist"] = try manifest.serialized()
    let stored: [UInt8]? =
      switch payload {
      case .encrypted: try FileCipher.encrypt(plain, key: key)
      case .empty: []
      case .missing: nil
      }
    files["\(identifier.prefix(2))/\(identifier)"] = stored
    let archive = try open(packed(files))
    file = try #require(try archive.fileList(with: sample.keys).file(domain: "HomeDomain", relativePath: "file"))
    self.archive = archive
    self.sample = sample
  }

  /// Reads the file, and calls a closure with each chunk of its plaintext.
  func readFile(_ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void) throws(KeyhaulError) -> PayloadScan {
    try archive.readPayload(of: file, with: sample.keys, chunk: body)
  }
}
