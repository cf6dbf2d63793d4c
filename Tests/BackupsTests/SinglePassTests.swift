import Basics
import KeychainCrypto
import Synchronization
import TestSupport
import Testing

@testable import Backups
@testable import KeychainFormats

@Suite("Reading all payloads in one pass")
struct SinglePassTests {
  static let containers = ["c.tar", "c.tar.gz", "c.tar.zst", "c.zip"]

  /// Counts the calls of a file system.
  private final class CallCounter: Sendable {
    private let counts = Mutex<[FileSystem.Call: Int]>([:])

    var system: FileSystem {
      FileSystem { [self] call in
        counts.withLock { $0[call, default: 0] += 1 }
        return nil
      }
    }

    subscript(call: FileSystem.Call) -> Int { counts.withLock { $0[call, default: 0] } }

    func reset() { counts.withLock { $0 = [:] } }
  }

  /// Writes a backup with a number of incompressible payloads of some kilobytes.
  private func writeBackup(payloadCount: Int, to target: BackupDestination) throws {
    var files = try UnencryptedBackupFixture().stored()
    var random = SeededRandom(seed: 11)
    for index in 0..<payloadCount {
      let identifier = try ListedFile.fileIdentifier(domain: "HomeDomain", relativePath: "\(index)")
      let bytes = (0..<500).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
      files.append(("\(identifier.prefix(2))/\(identifier)", bytes))
    }
    let backup = StoredBackup(
      directoryName: UnencryptedBackupFixture.udid, modificationTime: 0,
      files: try files.map { try StoredFile(path: $0.path, bytes: $0.bytes) })
    _ = try BackupInstaller(system: unsynced).place(backup.outgoing, at: target, replace: false)
  }

  @Test(
    "Each stored payload is read once with its content, from a directory and a container",
    arguments: containers + ["c/"])
  func complete(container: String) throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    _ = try BackupRewriter(system: unsynced).convert(
      BackupArchive.open(.path(directory.path("backup"))), at: directory.path("backup"),
      to: BackupDestination(path: directory.path(container)))
    let archive = try BackupArchive.open(.path(directory.path(container)))
    let expected = try Dictionary(uniqueKeysWithValues: fixture.contents().map { ($0.identifier, $0.bytes) })
    var files: [String: ListedFile] = [:]
    try archive.fileList().forEachFile { files[$0.fileIdentifier] = $0 }
    var contents: [String: [UInt8]] = [:]
    try archive.forEachPayload(of: archive.storedFiles()) { (payload) throws(KeyhaulError) in
      guard let file = files[payload.fileIdentifier], contents[payload.fileIdentifier] == nil else {
        Issue.record("\(payload.fileIdentifier) is not listed, or was read twice")
        return
      }
      var bytes: [UInt8] = []
      let keys: ClassKeys? = nil
      let reading = try archive.read(payload, as: file, with: keys) { bytes.append(contentsOf: $0) }
      #expect(reading.storedSHA1 == SHA1.hash(bytes) && reading.hasValidPadding)
      contents[payload.fileIdentifier] = bytes
    }
    #expect(contents == expected)
  }

  @Test("Reading four times as many payloads takes four times as many calls, without restarting", arguments: containers)
  func linear(container: String) throws {
    let readCount = try readCount(payloadCount: 100, container: container)
    let readCountOfFourTimesAsMany = try self.readCount(payloadCount: 400, container: container)
    #expect(readCountOfFourTimesAsMany <= 4 * readCount + 8)
  }

  /// Reads all payloads of a backup, checks the number of seeks, and returns the number of read calls.
  private func readCount(payloadCount: Int, container: String) throws -> Int {
    let directory = try TemporaryDirectory()
    let path = directory.path(container)
    try writeBackup(payloadCount: payloadCount, to: BackupDestination(path: path))
    let counter = CallCounter()
    let archive = try BackupArchive.open(.path(path), limits: .standard, system: counter.system)
    counter.reset()
    var readPayloadCount = 0
    var byteCount: Int64 = 0
    let keys: ClassKeys? = nil
    try archive.forEachPayload(of: archive.storedFiles()) { (payload) throws(KeyhaulError) in
      readPayloadCount += 1
      let file = try Self.makeListedFile(for: payload)
      let reading = try archive.read(payload, as: file, with: keys) { (_) throws(KeyhaulError) in }
      byteCount += reading.storedByteCount
    }
    let stored = try archive.storedFiles()
    #expect(readPayloadCount == stored.count && byteCount == stored.byteCount)
    // Only a zip requires seeks, because it is read by its central directory.
    #expect(counter[.seek] <= (container == "c.zip" ? 4 * readPayloadCount : 1))
    return counter[.read]
  }

  /// Creates a listed file for a payload that is not listed, to read its stored bytes.
  private static func makeListedFile(for payload: StoredPayload) throws(KeyhaulError) -> ListedFile {
    let record = FileRecord(relativePath: payload.fileIdentifier, mode: 0o100644, protectionClass: .fileNone)
    return try ListedFile(MBDBManifest.Entry(domain: "HomeDomain", record: record, extendedAttributes: []))
  }

  @Test("A zip with two corrupt payloads is read without them if the limit is two, and refused if it is one")
  func corruptPayloads() throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    _ = try BackupRewriter(system: unsynced).convert(
      BackupArchive.open(.path(directory.path("backup"))), at: directory.path("backup"),
      to: .file(directory.path("c.zip"), .zip))
    let allPayloads = Set(try fixture.contents().map(\.identifier))
    let (smallFile, largeFile) = ("Library/sixteen", "Media/large.jpg")
    let corruptFiles = try fixture.contents().filter { [smallFile, largeFile].contains($0.path) }
    let corruptPayloads = Set(corruptFiles.map(\.identifier))
    var zip = try directory.read("c.zip")
    for identifier in corruptPayloads { try Self.corrupt(identifier, in: &zip) }
    try directory.write(zip, to: "c.zip")

    let results = try readPayloads(of: directory.path("c.zip"), corruptPayloadLimit: 2)
    #expect(results.failed == corruptPayloads)
    #expect(results.succeeded == allPayloads.subtracting(corruptPayloads))

    let error = #expect(throws: KeyhaulError.self) {
      _ = try readPayloads(of: directory.path("c.zip"), corruptPayloadLimit: 1)
    }
    #expect(error?.code == .damaged)
  }

  /// Reads all payloads and returns the identifiers of those that can and cannot be read.
  private func readPayloads(
    of path: String, corruptPayloadLimit: Int
  ) throws -> (succeeded: Set<String>, failed: Set<String>) {
    var limits = BackupLimits.standard
    limits.resumptionCount = corruptPayloadLimit
    let archive = try BackupArchive.open(.path(path), limits: limits, system: .real)
    var succeeded: Set<String> = []
    var failed: Set<String> = []
    let keys: ClassKeys? = nil
    try archive.forEachPayload(of: archive.storedFiles()) { (payload) throws(KeyhaulError) in
      let file = try Self.makeListedFile(for: payload)
      do throws(KeyhaulError) {
        _ = try archive.read(payload, as: file, with: keys) { (_) throws(KeyhaulError) in }
        succeeded.insert(payload.fileIdentifier)
      } catch {
        failed.insert(payload.fileIdentifier)
      }
    }
    return (succeeded, failed)
  }

  /// Changes the compressed data of an entry to begin with an invalid block type (RFC 1951, 3.2.3).
  private static func corrupt(_ identifier: String, in zip: inout [UInt8]) throws {
    let name = Array(identifier.utf8)
    let endOfName = try #require(zip.indices.first { zip[$0...].starts(with: name) }) + name.count
    let signature = Array("PK\u{3}\u{4}".utf8)
    let header = try #require((0..<endOfName).last { zip[$0...].starts(with: signature) })
    // The last two bytes of the local header are the size of the extra field, which follows the name.
    let extraFieldByteCount = Int(zip[header + 28]) | Int(zip[header + 29]) << 8
    zip[endOfName + extraFieldByteCount] = 0xFF
  }
}
