import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Manifests that are too large for memory")
struct LargeManifestTests {
  private func database(rowCount: Int, blobByteCount: Int) throws -> [UInt8] {
    try ExternalDatabase.bytes(
      ExternalDatabase.schema
        + """
        WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < \(rowCount - 1))
        INSERT INTO Files SELECT printf('%040x', i), 'HomeDomain', 'file' || i, 1, zeroblob(\(blobByteCount)) FROM n;
        """)
  }

  @Test(
    "Reads page by page and at 2,000 random positions (400 in a quick run) return the same bytes",
    arguments: [false, true])
  func anywhere(isEncrypted: Bool) throws {
    let database = try database(rowCount: 300, blobByteCount: 1000)
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "large"))
    let stored = try SpooledData(isEncrypted ? FileCipher.encrypt(database, key: key) : database)
    let bytes = try isEncrypted ? DatabaseBytes(stored, key: key) : DatabaseBytes(stored)
    #expect(bytes.byteCount == database.count && database.count > 5 * 65_536)
    let reader = try bytes.reader()
    func checkRead(at offset: Int, count: Int) throws {
      var buffer = [UInt8](repeating: 0xAA, count: count)
      try buffer.withUnsafeMutableBytes { try reader.read(at: offset, into: $0) }
      #expect(buffer.elementsEqual(database[offset..<offset + count]), "\(count) bytes from \(offset)")
    }
    for offset in stride(from: 0, to: database.count, by: 4096) { try checkRead(at: offset, count: 4096) }
    var random = SeededRandom(seed: 17)
    for _ in 0..<Cases.count(2_000, quick: 400) {
      let offset = Int.random(in: 0..<database.count, using: &random)
      let maximumCount = min(database.count - offset, Bool.random(using: &random) ? 100 : 100_000)
      try checkRead(at: offset, count: Int.random(in: 0...maximumCount, using: &random))
    }
    #expect(throws: KeyhaulError.self) { try checkRead(at: database.count - 10, count: 11) }
  }

  @Test("A large manifest has the same content in an unlinked file and in memory")
  func bothStorages() throws {
    let plain = try database(rowCount: 2000, blobByteCount: 5000)
    #expect(plain.count > ManifestStorage.minimumFileByteCount)
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "large"))
    let encrypted = try FileCipher.encrypt(plain, key: key)
    let digest = try Digest.sha256(encrypted)
    for storage in [ManifestStorage.temporaryFile, .memory] {
      let stored = try spooled(encrypted, in: storage)
      #expect(stored.isInFile == (storage == .temporaryFile))
      #expect(stored.byteCount == encrypted.count)
      #expect(stored.sha256 == digest)
      let fileList = FileList(try ManifestDatabase(try DatabaseBytes(stored, key: key)))
      var rowCount = 0
      try fileList.forEachFile { (file) throws(KeyhaulError) in
        rowCount += 1
        // A second query is possible during the first. The database's identifiers are not those of its paths.
        if rowCount.isMultiple(of: 500), let path = file.relativePath {
          let error = #expect(throws: KeyhaulError.self) {
            try fileList.file(domain: "HomeDomain", relativePath: path)
          }
          #expect(error?.code == .hostile)
        }
      }
      #expect(rowCount == 2000)
      #expect(try fileList.listing().inconsistentRowCount == 2000)
    }
  }

  @Test("A large manifest leaves no temporary file and no plaintext on disk")
  func noTrace() throws {
    let domain = "planted-in-the-manifest"
    let plain = try ExternalDatabase.bytes(
      ExternalDatabase.schema
        + """
        INSERT INTO Files VALUES ('x', '\(domain)', NULL, 0, NULL);
        INSERT INTO Files VALUES ('y', NULL, NULL, 0, zeroblob(9000000));
        """)
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "trace"))
    let namesBefore = try FileSystem.temporaryFileNames()
    let stored = try spooled(try FileCipher.encrypt(plain, key: key), in: .temporaryFile)
    #expect(stored.isInFile)
    let fileList = FileList(try ManifestDatabase(try DatabaseBytes(stored, key: key)))
    #expect(try fileList.listing().inconsistentRowCount == 2)
    #expect(try FileSystem.remainingTemporaryFileNames(since: namesBefore) == [])
    let bytes = try stored.bytes()
    #expect(!bytes.isEmpty)
    #expect(Data(bytes).range(of: Data(domain.utf8)) == nil)
    #expect(Data(plain).range(of: Data(domain.utf8)) != nil)
  }

  @Test("The error for a lack of temporary space has the location and advice")
  func noRoom() throws {
    let system = FileSystem { $0 == .write ? .failure(.noSpace) : nil }
    let error = #expect(throws: KeyhaulError.self) {
      var builder = try SpooledDataBuilder(.temporaryFile, system: system)
      let bytes = [UInt8](repeating: 1, count: ManifestStorage.minimumFileByteCount)
      try bytes.withUnsafeBytes { try builder.append($0) }
      return try builder.finish()
    }
    #expect(error?.code == .noTemporarySpace)
    #expect(error?.meaning.remedy == .keepInMemory)
  }

  @Test("A failure to read the temporary file is not reported as damage", arguments: [0, 1, 2, 40, 100, 139])
  func unreadable(successCount: Int) throws {
    let plain = try database(rowCount: 2000, blobByteCount: 5000)
    let readCount = Locked(0)
    let system = FileSystem { call in
      guard call == .read else { return nil }
      return readCount.withLock { count in
        count += 1
        return count > successCount ? .failure(.ioError) : nil
      }
    }
    var builder = try SpooledDataBuilder(.temporaryFile, system: system)
    try plain.withUnsafeBytes { try builder.append($0) }
    let stored = try builder.finish()
    let error = #expect(throws: KeyhaulError.self) {
      try ManifestDatabase(try DatabaseBytes(stored)).forEachFile { _ in }
    }
    #expect(error?.code == .unreadable)
    #expect(error?.reason == "a temporary file: input/output error")
  }

  @Test("Data below the minimum size is stored in memory, and other data in a file")
  func threshold() throws {
    let limit = ManifestStorage.minimumFileByteCount
    #expect(try !spooled([UInt8](repeating: 1, count: limit - 1), in: .temporaryFile).isInFile)
    #expect(try spooled([UInt8](repeating: 1, count: limit), in: .temporaryFile).isInFile)
  }

  /// Stores bytes in chunks, as a reader of backups does.
  private func spooled(_ bytes: [UInt8], in storage: ManifestStorage) throws -> SpooledData {
    let chunkByteCount = 1 << 18
    var builder = try SpooledDataBuilder(storage, system: .real)
    for start in stride(from: 0, to: bytes.count, by: chunkByteCount) {
      try Array(bytes[start...].prefix(chunkByteCount)).withUnsafeBytes { try builder.append($0) }
    }
    return try builder.finish()
  }
}
