import Basics
import KeychainCrypto
import KeychainFormats
import Synchronization
import TestSupport
import Testing

@testable import Backups

@Suite("Verification of directories and container files")
struct ContainerVerificationTests {
  /// The expected notes about the anomalies of `faultyBackup` that are not faults.
  private static let notes = [
    "1 stored file is not in the manifest", "HomeDomain/file-7.txt has 24 bytes, but the manifest records 3",
  ]

  /// Creates a backup with one missing and four damaged files, and with anomalies that are not faults.
  ///
  /// The files 0, 4, 10 and 11 are intact.
  private func faultyBackup(_ layout: BackupLayout) throws -> EditableBackup {
    var files = (0..<12).map { EditableBackup.File("file-\($0).txt", Array("content of file number \($0)".utf8)) }
    // Without a digest, only the padding shows that file 5 is changed below.
    files[5].digest = .none
    files[6].digest = .ofPlaintext
    files[7].size = 3
    files[8].isStored = false
    // An empty file needs no payload, so this is not a fault.
    files[9] = EditableBackup.File("empty.txt", [])
    files[9].isStored = false
    let backup = try EditableBackup(layout: layout, files: files, items: [.password("anna")])
    for name in ["file-3.txt", "file-1.txt"] { try backup.change("HomeDomain/\(name)") { $0[3] ^= 1 } }
    try backup.change("HomeDomain/file-5.txt") { $0[$0.count - 1] ^= 1 }
    try backup.change("HomeDomain/file-2.txt") { $0.removeLast(3) }
    let unlistedIdentifier = String(repeating: "a", count: 40)
    try backup.write([1, 2, 3], to: layout.storedPath(of: unlistedIdentifier))
    return backup
  }

  @Test(
    "A container file has the same report as its directory, with and without the password",
    arguments: BackupLayout.allCases, [ContainerFormat.tar, .gzippedTar, .zip])
  func sameReport(layout: BackupLayout, format: ContainerFormat) throws {
    let backup = try faultyBackup(layout)
    let directory = try backup.open()
    let containerPath = backup.directory.path("packed")
    _ = try BackupRewriter(system: unsynced).convert(directory, at: backup.path, to: .file(containerPath, format))
    let container = try BackupArchive.open(.path(containerPath))
    let noKeys: ClassKeys? = nil
    #expect(try BackupVerification(directory, keys: noKeys) == BackupVerification(container, keys: noKeys))
    let keys: ClassKeys? = try directory.unlock(password: Secret(utf8: EditableBackup.password)).classKeys(
      deviceKey: nil)
    let report = try BackupVerification(directory, keys: keys)
    #expect(try BackupVerification(container, keys: keys) == report)
    #expect(report.faultCount == [.files: 5])
    // A missing payload is found in the manifest, before any payload is read. The other faults are sorted by name.
    let faultyFileNumbers = [8, 1, 2, 3, 5]
    #expect(report.faults.map(\.file) == faultyFileNumbers.map { "HomeDomain/file-\($0).txt" })
    #expect(
      report.faults.map(\.kind)
        == [.payloadMissing, .digestMismatch, .digestMismatch, .digestMismatch, .paddingInvalid])
    #expect(report.notes == Self.notes)
    #expect(
      report.checks.first { $0.id == .files }?.detail
        == "12 of 13 present, 1 of them empty and not stored, 7 digests match, 1 without a digest, 6 paddings valid "
        + "apart from the keychain's, 1 with a size that differs from the record, 4 damaged")
  }

  @Test("A verification lists the files of a directory only once")
  func listsOnce() throws {
    let backup = try faultyBackup(.manifestDB)
    let listCalls = Counter()
    let system = FileSystem { call in
      if call == .list { listCalls.increment() }
      return nil
    }
    let archive = try BackupArchive.open(.path(backup.path), limits: .standard, system: system)
    let countBeforeListing = listCalls.count
    _ = try archive.storedFiles()
    let countBeforeVerification = listCalls.count
    let callsPerListing = countBeforeVerification - countBeforeListing
    #expect(callsPerListing > 0)

    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let keys: ClassKeys? = try key.classKeys(deviceKey: nil)
    let report = try BackupVerification(archive, keys: keys)
    #expect(listCalls.count - countBeforeVerification == callsPerListing)
    // The notes show that the verification compared the listing with the manifest.
    #expect(report.notes == Self.notes)
  }

  /// A counter that several threads can increment.
  private final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock(\.self) }
    func increment() { value.withLock { $0 += 1 } }
  }

  @Test("A limited list keeps the first faults by file name, in any order of addition", arguments: [0, 1, 2])
  func sorted(rotation: Int) {
    var faults = SortedFaults(limit: 3)
    // Seven and ten have no common factor, so that this is a permutation of all ten names.
    let names = (0..<10).map { "file-\(($0 * 7 + rotation) % 10)" }
    for name in names { faults.add(.init(.files, .digestMismatch, file: name, "changed")) }
    #expect(faults.firstFaults.map(\.file) == ["file-0", "file-1", "file-2"])
    #expect(faults.count == 10)
  }
}
