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

  /// Counts the calls of the file system.
  private final class Counter: Sendable {
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
  private func write(_ count: Int, to target: BackupDestination) throws {
    let fixture = try UnencryptedBackupFixture()
    var files = try fixture.stored()
    var random = SeededRandom(seed: 11)
    for index in 0..<count {
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
        Issue.record("\(payload.fileIdentifier) is not listed, or came twice")
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
    var reads: [Int] = []
    for count in [100, 400] {
      let directory = try TemporaryDirectory()
      let path = directory.path(container)
      try write(count, to: BackupDestination(path: path))
      let counter = Counter()
      let archive = try BackupArchive.open(.path(path), limits: .standard, system: counter.system)
      counter.reset()
      var payloadCount = 0
      var byteCount: Int64 = 0
      let keys: ClassKeys? = nil
      try archive.forEachPayload(of: archive.storedFiles()) { (payload) throws(KeyhaulError) in
        payloadCount += 1
        let file = try Self.listed(payload)
        byteCount += try archive.read(payload, as: file, with: keys) { (_) throws(KeyhaulError) in }
          .storedByteCount
      }
      let stored = try archive.storedFiles()
      #expect(payloadCount == stored.count && byteCount == stored.byteCount)
      reads.append(counter[.read])
      // A zip is read by its central directory, so only it requires seeks.
      #expect(counter[.seek] <= (container == "c.zip" ? 4 * payloadCount : 1))
    }
    #expect(reads[1] <= 4 * reads[0] + 8)
  }

  /// Returns a listed file for a payload that is not listed, to read its stored bytes.
  private static func listed(_ payload: StoredPayload) throws(KeyhaulError) -> ListedFile {
    let record = FileRecord(relativePath: payload.fileIdentifier, mode: 0o100644, protectionClass: .fileNone)
    return try ListedFile(MBDBManifest.Entry(domain: "HomeDomain", record: record, extendedAttributes: []))
  }

  @Test("Corrupt payloads do not stop the reading of others, up to the limit", arguments: [(2, true), (1, false)])
  func corrupt(limit: Int, isSufficient: Bool) throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    _ = try BackupRewriter(system: unsynced).convert(
      BackupArchive.open(.path(directory.path("backup"))), at: directory.path("backup"),
      to: .file(directory.path("c.zip"), .zip))
    let all = Set(try fixture.contents().map(\.identifier))
    // A small and a large payload.
    let damaged = try fixture.contents().filter { $0.bytes.count == 16 || $0.bytes.count > 1000 }.map(\.identifier)
    #expect(damaged.count == 2)
    var zip = try directory.read("c.zip")
    for identifier in damaged { try Self.corrupt(identifier, in: &zip) }
    try directory.write(zip, to: "c.zip")
    var limits = BackupLimits.standard
    limits.resumptionCount = limit
    let archive = try BackupArchive.open(.path(directory.path("c.zip")), limits: limits, system: .real)
    var failed: [String] = []
    var succeeded: [String] = []
    let keys: ClassKeys? = nil
    do throws(KeyhaulError) {
      try archive.forEachPayload(of: archive.storedFiles()) { (payload) throws(KeyhaulError) in
        let file = try Self.listed(payload)
        do throws(KeyhaulError) {
          _ = try archive.read(payload, as: file, with: keys) { (_) throws(KeyhaulError) in }
          succeeded.append(payload.fileIdentifier)
        } catch {
          failed.append(payload.fileIdentifier)
        }
      }
      #expect(isSufficient)
      #expect(Set(failed) == Set(damaged))
      #expect(Set(succeeded) == all.subtracting(damaged))
    } catch {
      #expect(!isSufficient && error.code == .damaged)
    }
  }

  /// Changes the compressed data of an entry to begin with an invalid block type (RFC 1951, 3.2.3).
  private static func corrupt(_ identifier: String, in zip: inout [UInt8]) throws {
    let name = Array(identifier.utf8)
    let end = try #require(zip.indices.first { zip[$0...].starts(with: name) }) + name.count
    // The local header has 30 bytes. The last two are the size of its extra field.
    let header = try #require((0..<end).last { zip[$0...].starts(with: [0x50, 0x4B, 3, 4]) })
    let extra = Int(zip[header + 28]) | Int(zip[header + 29]) << 8
    zip[end + extra] = 0xFF
  }
}
