import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Backups of iOS 4 to 9")
struct OldLayoutTests {
  /// The size of the magic number and the version.
  private static let manifestHeaderByteCount = 6

  /// Opens the backup as a directory, a tar with and without a leading directory, and a zip.
  private func archives(_ backup: MBDBBackup, _ directory: TemporaryDirectory) throws -> [BackupArchive] {
    try backup.write(to: directory, "backup")
    var archives = [try BackupArchive.open(.path(directory.path("backup")))]
    let udid = String(repeating: "ab", count: 20)
    for prefix in ["", "\(udid)/", "\(udid)-20150101-101112/"] {
      var tar = TarFixture()
      for file in backup.files { tar.add(prefix + file.path, file.bytes) }
      try directory.write(tar.finished(), to: "tar\(archives.count)")
      archives.append(try BackupArchive.open(.path(directory.path("tar\(archives.count)"))))
    }
    var zip = ZipFixture()
    for file in backup.files { zip.add(file.path, file.bytes) }
    try directory.write(zip.finished(), to: "zip")
    archives.append(try BackupArchive.open(.path(directory.path("zip"))))
    return archives
  }

  @Test("An old backup opens with its password, and its manifest is readable without it", arguments: [true, false])
  func opens(hasPassword: Bool) throws {
    let sample = try SampleBackup(hasPassword: hasPassword)
    let directory = try TemporaryDirectory()
    let archives = try archives(try MBDBBackup(sample), directory)
    #expect(Set(archives.map(\.digest)).count == 1)
    for archive in archives {
      #expect(archive.layout == .mbdb)
      #expect(archive.isEncrypted == hasPassword)
      #expect(archive.anomalies.isEmpty)
      #expect(archive.hasKeychain)
      #expect(try archive.storedFiles().count == 3)
      let fileList = try archive.fileList()
      let listing = try fileList.listing()
      #expect(listing.fileCount == 3)
      #expect(listing.directoryCount == 2)
      #expect(listing.linkCount == 1)
      #expect(listing.rowCountByDomain == ["KeychainDomain": 2, "HomeDomain": 4])
      #expect(listing.inconsistentRowCount == 0)
      #expect(try fileList.listing(against: try archive.storedFiles()).missingCount == 0)
      // The third file is empty, so it needs no payload.
      #expect(try fileList.listing(against: StoredPayloads()).missingCount == 2)
      #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    }
  }

  @Test("Each file of an old backup is found by its domain and path, and readable", arguments: [true, false])
  func payloads(hasPassword: Bool) throws {
    let sample = try SampleBackup(hasPassword: hasPassword)
    let directory = try TemporaryDirectory()
    let backup = try MBDBBackup(sample)
    for archive in try archives(backup, directory) {
      let fileList = try archive.fileList(with: sample.keys)
      let file = try #require(try fileList.file(domain: "HomeDomain", relativePath: MBDBBackup.notePath))
      #expect(file.kind == .file)
      #expect(try file.hasMatchingIdentifier())
      #expect(try file.record()?.lastModified == 1_400_000_000)
      var bytes: [UInt8] = []
      let reading = try archive.readPayload(of: file, with: sample.keys) { bytes.append(contentsOf: $0) }
      #expect(bytes == MBDBBackup.noteContent)
      let stored = try #require(backup.files[file.fileIdentifier])
      #expect(reading.storedByteCount == Int64(stored.count))
      #expect(reading.plainByteCount == Int64(MBDBBackup.noteContent.count))
      #expect(reading.storedSHA1 == SHA1.hash(stored))
      #expect(reading.storedSHA1 == (try file.record())?.digest)
      #expect(reading.hasValidPadding)
      #expect(try fileList.file(domain: "HomeDomain", relativePath: "Library/none") == nil)
      let link = try #require(try fileList.file(domain: "HomeDomain", relativePath: "Library/link"))
      #expect(link.kind == .link)
      #expect(try link.record()?.target == "/etc/passwd")
      let error = #expect(throws: KeyhaulError.self) {
        try archive.readPayload(of: link, with: sample.keys) { _ in }
      }
      #expect(error?.code == .unsupported)
    }
  }

  @Test("A backup with an old and a new manifest is read with the new one")
  func bothManifests() throws {
    let sample = try SampleBackup()
    let oldBackup = try MBDBBackup(sample)
    var files = try sample.storedFiles()
    files.append(("Manifest.mbdb", try #require(oldBackup.files["Manifest.mbdb"])))
    let directory = try TemporaryDirectory()
    for file in files { try directory.write(file.bytes, to: "backup/\(file.path)") }
    for archive in [try open(packed(files)), try BackupArchive.open(.path(directory.path("backup")))] {
      #expect(archive.layout == .manifestDB)
      #expect(archive.digest == (try open(packed(try sample.storedFiles()))).digest)
      #expect(try archive.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    }
  }

  @Test("A truncated manifest of an old backup is damaged, or lacks records if the cut is at the end of a record")
  func truncated() throws {
    let sample = try SampleBackup()
    var files = try MBDBBackup(sample).files
    let manifest = try #require(files["Manifest.mbdb"])
    var cutsAfterRecord = 0
    for count in manifest.indices {
      files["Manifest.mbdb"] = Array(manifest.prefix(count))
      do throws(KeyhaulError) {
        let archive = try openPacked(files)
        let listing = try archive.fileList().listing()
        // The end of a record does not show whether more records follow.
        #expect(listing.fileCount < 3 || listing.linkCount < 1)
        cutsAfterRecord += 1
      } catch {
        #expect(error.category == .damaged, "\(count): \(error)")
      }
    }
    // The manifest has six records. A cut after its header or after one of the first five is not detected.
    #expect(cutsAfterRecord == 6)
  }

  @Test("An old manifest with a flipped bit is read or refused, without a crash")
  func flippedBits() throws {
    let sample = try SampleBackup()
    var files = try MBDBBackup(sample).files
    let manifest = try #require(files["Manifest.mbdb"])
    var random = SeededRandom(seed: 4)
    for _ in 0..<500 {
      var changedManifest = manifest
      let offset = Int.random(in: 0..<changedManifest.count, using: &random)
      changedManifest[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      files["Manifest.mbdb"] = changedManifest
      do throws(KeyhaulError) {
        let archive = try openPacked(files)
        _ = try archive.fileList().listing()
        _ = try archive.keychainFile(with: sample.keys)
      } catch {
        continue
      }
    }
  }

  @Test("An old manifest that lists the keychain file twice is refused")
  func duplicateKeychain() throws {
    let sample = try SampleBackup()
    var files = try MBDBBackup(sample).files
    let manifest = try #require(files["Manifest.mbdb"])
    let records = manifest.dropFirst(Self.manifestHeaderByteCount)
    files["Manifest.mbdb"] = manifest + records
    let error = #expect(throws: KeyhaulError.self) { try openPacked(files).keychainFile(with: sample.keys) }
    #expect(error?.code == .hostile)
  }

  @Test("If an old manifest has no records, a stored keychain file is an error; otherwise, there is no keychain")
  func unlistedKeychain() throws {
    let sample = try SampleBackup()
    var files = try MBDBBackup(sample).files
    let manifest = try #require(files["Manifest.mbdb"])
    files["Manifest.mbdb"] = Array(manifest.prefix(Self.manifestHeaderByteCount))
    let storedError = #expect(throws: KeyhaulError.self) { try openPacked(files).keychainFile(with: sample.keys) }
    #expect(storedError?.code == .damaged)
    files[KeychainPayload.fileIdentifier] = nil
    let missingError = #expect(throws: KeyhaulError.self) { try openPacked(files).keychainFile(with: sample.keys) }
    #expect(missingError?.code == .noKeychain)
  }

  /// Opens files as a tar like `open(packed(files))`, but throws only errors of type `KeyhaulError`.
  private func openPacked(_ files: [(path: String, bytes: [UInt8])]) throws(KeyhaulError) -> BackupArchive {
    do {
      return try open(packed(files))
    } catch let error as KeyhaulError {
      throw error
    } catch {
      throw KeyhaulError(.unreadable, "\(error)")
    }
  }
}
