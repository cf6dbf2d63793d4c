import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("An unencrypted Manifest.db without a Manifest.plist")
struct MissingManifestTests {
  private typealias Files = [(path: String, bytes: [UInt8])]

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Creates a backup without a password and without a manifest.
  private func files() throws -> Files {
    var files = try UnencryptedBackupFixture().stored()
    files["Manifest.plist"] = nil
    return files
  }

  /// Opens a backup of the files as a directory, a tar, and a zip.
  private func archives(of files: Files) throws -> [BackupArchive] {
    var zip = ZipFixture()
    for file in files {
      try directory.write(file.bytes, to: "folder/\(file.path)")
      zip.add(file.path, file.bytes)
    }
    try directory.write(packed(files), to: "tar")
    try directory.write(zip.finished(), to: "zip")
    return try ["folder", "tar", "zip"].map { try BackupArchive.open(.path(directory.path($0))) }
  }

  @Test("In a directory, a tar, and a zip, the database is read as an unencrypted manifest, with a finding")
  func read() throws {
    for archive in try archives(of: files()) {
      #expect(archive.findings == [.manifestMissing])
      #expect(!archive.isEncrypted && !archive.isListEncrypted && archive.keybag.classKeys.isEmpty)
      #expect(archive.status?.isFinished == true)
      let fileList = try archive.fileList()
      let listing = try fileList.listing(against: archive.storedFiles())
      #expect(listing.fileCount == UnencryptedBackupFixture.files.count + 1 && listing.missingCount == 0)
      let notes = try #require(try fileList.file(domain: "AppDomain-com.example", relativePath: "Documents/notes"))
      var content: [UInt8] = []
      try archive.forEachPayload(of: archive.storedFiles()) { (payload) throws(KeyhaulError) in
        guard payload.fileIdentifier == notes.fileIdentifier else { return }
        _ = try payload.forEachChunk { content.append(contentsOf: $0) }
      }
      #expect(content == Array("plain text here, and more".utf8))
    }
  }

  @Test("Only reading is allowed, and the refusal names the missing file")
  func refusals() throws {
    let archive = try #require(try archives(of: files()).first)
    try archive.requireUsable(for: .reading)
    for use in BackupPurpose.allCases where use != .reading {
      let error = #expect(throws: KeyhaulError.self, "\(use)") { try archive.requireUsable(for: use) }
      #expect(error?.category == .damaged, "\(use)")
      #expect(
        error?.reason
          == "Manifest.plist: it is missing; the manifest database was read as an unencrypted manifest", "\(use)")
    }
  }

  @Test("Rows in the write-ahead log are read as well")
  func withLog() throws {
    var files = try files()
    let manifest = try JournaledManifest.moving("Library/fifteen", "Library/sixteen", of: files["Manifest.db"] ?? [])
    (files["Manifest.db"], files["Manifest.db-wal"]) = (manifest.database, manifest.log)
    for archive in try archives(of: files) {
      #expect(try archive.fileList().listing().fileCount == UnencryptedBackupFixture.files.count + 1)
      #expect(archive.anomalies.contains(.listJournalRead(name: "Manifest.db-wal")))
    }
  }

  @Test("If payloads are longer than recorded by the size of the padding, the backup counts as encrypted")
  func encryptedPayloads() throws {
    let sample = try SampleBackup()
    var files = try sample.storedFiles()
    let complete = try open(packed(files))
    let fileList = try complete.fileList(with: sample.keys)
    let plainKeychain = try complete.keychainFile(with: sample.keys).bytes
    let file = try fileList.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    let record = try #require(try file?.record()).archived()
    let row = ExternalDatabase.keychainRow(record: record)
    files["Manifest.plist"] = nil
    files["Manifest.db"] = try ExternalDatabase.bytes(ExternalDatabase.schema + row)
    for archive in try archives(of: files) {
      #expect(archive.findings == [.manifestMissing] && archive.isEncrypted && !archive.isListEncrypted)
      #expect(try archive.fileList().listing().fileCount == 1)
    }
    // A payload that another tool decrypted has the recorded size, without padding.
    files["51/\(KeychainPayload.fileIdentifier)"] = plainKeychain
    for archive in try archives(of: files) { #expect(archive.findings == [.manifestMissing] && !archive.isEncrypted) }
  }

  @Test("A Manifest.db that is not a manifest database is not a backup")
  func unreadable() throws {
    let otherDatabase = try ExternalDatabase.bytes("CREATE TABLE Photos (name TEXT);")
    let trigger = try ExternalDatabase.bytes(
      ExternalDatabase.schema + "CREATE TRIGGER t AFTER INSERT ON Files BEGIN DELETE FROM Files; END;")
    for bytes in [otherDatabase, trigger, Array(otherDatabase.prefix(600)), [1, 2, 3], []] {
      let error = try failure(opening: packed([("Manifest.db", bytes)]))
      #expect(error?.code == .notABackup && error?.reason == "it has no Manifest.plist in any folder")
      try directory.write(bytes, to: "folder/Manifest.db")
      let folderError = #expect(throws: KeyhaulError.self) { try BackupArchive.open(.path(directory.path("folder"))) }
      #expect(folderError?.code == .notABackup && folderError?.reason == "it has no Manifest.plist")
    }
  }

  @Test("An encrypted Manifest.db without a Manifest.plist cannot be recognized as a backup")
  func encryptedManifest() throws {
    var files = try SampleBackup.storedFiles()
    files["Manifest.plist"] = nil
    #expect(try failure(opening: packed(files))?.code == .notABackup)
  }
}
