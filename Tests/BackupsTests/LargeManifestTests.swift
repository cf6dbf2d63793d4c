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
  /// Creates an encrypted database above the minimum size for a file.
  private func database(_ rowCount: Int, blobByteCount: Int) throws -> [UInt8] {
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
    let plain = try database(300, blobByteCount: 1000)
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "large"))
    let stored = try SpooledData(isEncrypted ? FileCipher.encrypt(plain, key: key) : plain)
    let bytes = try isEncrypted ? DatabaseBytes(stored, key: key) : DatabaseBytes(stored)
    #expect(bytes.byteCount == plain.count && plain.count > 5 * 65_536)
    let reader = try bytes.reader()
    func check(_ offset: Int, _ count: Int) throws {
      var buffer = [UInt8](repeating: 0xAA, count: count)
      try buffer.withUnsafeMutableBytes { try reader.read(at: offset, into: $0) }
      #expect(buffer.elementsEqual(plain[offset..<offset + count]), "\(count) bytes from \(offset)")
    }
    for offset in stride(from: 0, to: plain.count, by: 4096) { try check(offset, 4096) }
    var random = SeededRandom(seed: 17)
    for _ in 0..<Cases.count(2_000, quick: 400) {
      let offset = Int.random(in: 0..<plain.count, using: &random)
      let longest = min(plain.count - offset, Bool.random(using: &random) ? 100 : 100_000)
      try check(offset, Int.random(in: 0...longest, using: &random))
    }
    #expect(throws: KeyhaulError.self) { try check(plain.count - 10, 11) }
  }

  @Test("A large manifest has the same content in an unlinked file and in memory")
  func bothStorages() throws {
    let plain = try database(2000, blobByteCount: 5000)
    #expect(plain.count > ManifestStorage.minimumFileByteCount)
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "large"))
    let encrypted = try FileCipher.encrypt(plain, key: key)
    var digests: [[UInt8]] = []
    for storage in [ManifestStorage.temporaryFile, .memory] {
      let stored = try spooled(encrypted, storage)
      #expect(stored.isInFile == (storage == .temporaryFile))
      #expect(stored.byteCount == encrypted.count)
      digests.append(stored.sha256)
      let fileList = FileList(try ManifestDatabase(try DatabaseBytes(stored, key: key)))
      var count = 0
      try fileList.forEachFile { (file) throws(KeyhaulError) in
        count += 1
        // A nested query.
        if count.isMultiple(of: 500), let path = file.relativePath {
          let nested = #expect(throws: KeyhaulError.self) {
            try fileList.file(domain: "HomeDomain", relativePath: path)
          }
          #expect(nested?.code == .hostile)
        }
      }
      #expect(count == 2000)
      #expect(try fileList.listing().inconsistentRowCount == 2000)
    }
    #expect(digests[0] == digests[1])
    #expect(digests[0] == (try Digest.sha256(encrypted)))
  }

  @Test("A large manifest leaves no temporary file and no plaintext on disk")
  func noTrace() throws {
    let insert = "INSERT INTO Files VALUES ('x', 'planted-in-the-manifest', NULL, 0, NULL);"
    let plain = try ExternalDatabase.bytes(
      ExternalDatabase.schema + insert + "INSERT INTO Files VALUES ('y', NULL, NULL, 0, zeroblob(9000000));")
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "trace"))
    let before = try FileSystem.temporaryFileNames()
    let stored = try spooled(try FileCipher.encrypt(plain, key: key), .temporaryFile)
    #expect(stored.isInFile)
    let fileList = FileList(try ManifestDatabase(try DatabaseBytes(stored, key: key)))
    #expect(try fileList.listing().inconsistentRowCount == 2)
    #expect(try FileSystem.temporaryFileNames().subtracting(before).isEmpty)
    let bytes = try stored.bytes()
    #expect(!bytes.isEmpty)
    #expect(Data(bytes).range(of: Data("planted-in-the-manifest".utf8)) == nil)
    #expect(Data(plain).range(of: Data("planted-in-the-manifest".utf8)) != nil)
  }

  @Test("The error for a lack of temporary space has the location and advice")
  func noRoom() throws {
    let system = FileSystem { $0 == .write ? .failure(.noSpace) : nil }
    let error = #expect(throws: KeyhaulError.self) {
      var collector = try SpooledDataBuilder(.temporaryFile, system: system)
      let bytes = [UInt8](repeating: 1, count: ManifestStorage.minimumFileByteCount)
      try bytes.withUnsafeBytes { try collector.append($0) }
      return try collector.finish()
    }
    #expect(error?.code == .noTemporarySpace)
    #expect(error?.meaning.remedy == .keepInMemory)
  }

  @Test("A failure to read the temporary file is not reported as damage", arguments: [0, 1, 2, 40, 100, 139])
  func unreadable(successfulReads: Int) throws {
    let plain = try database(2000, blobByteCount: 5000)
    let reads = Locked(0)
    let system = FileSystem { call in
      guard call == .read else { return nil }
      return reads.withLock { reads in
        reads += 1
        return reads > successfulReads ? .failure(.ioError) : nil
      }
    }
    var collector = try SpooledDataBuilder(.temporaryFile, system: system)
    try plain.withUnsafeBytes { try collector.append($0) }
    let stored = try collector.finish()
    let error = #expect(throws: KeyhaulError.self) {
      try ManifestDatabase(try DatabaseBytes(stored)).forEachFile { _ in }
    }
    #expect(error?.code == .unreadable)
    #expect(error?.reason == "a temporary file: input/output error")
  }

  @Test("Data below the minimum size is stored in memory, and other data in a file")
  func threshold() throws {
    let limit = ManifestStorage.minimumFileByteCount
    #expect(try spooled([UInt8](repeating: 1, count: limit - 1), .temporaryFile).isInFile == false)
    #expect(try spooled([UInt8](repeating: 1, count: limit), .temporaryFile).isInFile)
  }

  private func spooled(_ bytes: [UInt8], _ storage: ManifestStorage) throws -> SpooledData {
    var collector = try SpooledDataBuilder(storage, system: .real)
    for start in stride(from: 0, to: bytes.count, by: 1 << 18) {
      try Array(bytes[start..<min(start + 1 << 18, bytes.count)]).withUnsafeBytes { try collector.append($0) }
    }
    return try collector.finish()
  }
}
