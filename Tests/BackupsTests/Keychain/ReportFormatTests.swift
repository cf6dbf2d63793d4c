import Basics
import KeychainCrypto
import KeychainFormats
import Synchronization
import TestSupport
import Testing

@testable import Backups

@Suite("Verification reports in all formats")
struct ReportFormatTests {
  /// Notes that are not faults.
  private static let notes = [
    "1 stored file is not in the manifest", "HomeDomain/file-7.txt has 24 bytes, but the manifest records 3",
  ]

  /// Creates a backup with all kinds of faulty files.
  private func faultyBackup(_ layout: BackupLayout) throws -> EditableBackup {
    var files = (0..<12).map { EditableBackup.File("file-\($0).txt", Array("content of file number \($0)".utf8)) }
    files[5].digest = .none
    files[6].digest = .ofPlaintext
    files[7].size = 3
    files[8].isStored = false
    files[9] = EditableBackup.File("empty.txt", [])
    files[9].isStored = false
    // The files 0, 4, 10, and 11 stay unchanged.
    let backup = try EditableBackup(layout: layout, files: files, items: [.password("anna")])
    for name in ["file-3.txt", "file-1.txt"] { try backup.change("HomeDomain/\(name)") { $0[3] ^= 1 } }
    try backup.change("HomeDomain/file-5.txt") { $0[$0.count - 1] ^= 1 }
    try backup.change("HomeDomain/file-2.txt") { $0.removeLast(3) }
    try backup.write([1, 2, 3], to: layout.storedPath(of: String(repeating: "a", count: 40)))
    return backup
  }

  @Test(
    "The report is the same in any format, with and without the password", arguments: BackupLayout.allCases,
    [ContainerFormat.tar, .gzippedTar, .zip])
  func sameReport(layout: BackupLayout, format: ContainerFormat) throws {
    let backup = try faultyBackup(layout)
    let directory = try backup.open()
    let path = backup.directory.path("packed")
    _ = try BackupRewriter(system: unsynced).convert(directory, at: backup.path, to: .file(path, format))
    let file = try BackupArchive.open(.path(path))
    let noKeys: ClassKeys? = nil
    #expect(try BackupVerification(directory, keys: noKeys) == BackupVerification(file, keys: noKeys))
    let keys: ClassKeys? = try directory.unlock(password: Secret(utf8: EditableBackup.password)).classKeys(
      deviceKey: nil)
    let report = try BackupVerification(directory, keys: keys)
    #expect(try BackupVerification(file, keys: keys) == report)
    #expect(report.faultCount == [.files: 5])
    #expect(
      report.faults.map(\.file) == [8, 1, 2, 3, 5].map { "HomeDomain/file-\($0).txt" })
    #expect(
      report.faults.map(\.kind)
        == [.payloadMissing, .digestMismatch, .digestMismatch, .digestMismatch, .paddingInvalid])
    #expect(report.notes == Self.notes)
    #expect(
      report.checks.first { $0.id == .files }?.detail
        == "12 of 13 present, 1 of them empty and not stored, 7 digests match, 1 without a digest, 6 paddings valid "
        + "apart from the keychain's, 1 with a size that differs from the record, 4 damaged")
  }

  @Test("The files of a directory are listed only once")
  func listsOnce() throws {
    let backup = try faultyBackup(.manifestDB)
    let listCalls = Counter()
    let system = FileSystem { call in
      if call == .list { listCalls.add() }
      return nil
    }
    let archive = try BackupArchive.open(.path(backup.path), limits: .standard, system: system)
    let countBefore = listCalls.count
    _ = try archive.storedFiles()
    let callsPerListing = listCalls.count - countBefore
    #expect(callsPerListing > 0)
    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let keys: ClassKeys? = try key.classKeys(deviceKey: nil)
    let report = try BackupVerification(archive, keys: keys)
    #expect(report.notes == Self.notes)
    // One listing is that above, and the other is that of the verification.
    #expect(listCalls.count - countBefore == 2 * callsPerListing)
  }

  private final class Counter: Sendable {
    private let value = Mutex(0)
    var count: Int { value.withLock(\.self) }
    func add() { value.withLock { $0 += 1 } }
  }

  @Test("The first faults are sorted by file, in any order of their detection", arguments: [0, 1, 2])
  func sorted(rotation: Int) {
    var faults = SortedFaults(limit: 3)
    let names = (0..<10).map { "file-\(($0 * 7 + rotation) % 10)" }
    for name in names { faults.add(.init(.files, .digestMismatch, file: name, "changed")) }
    #expect(faults.first.map(\.file) == ["file-0", "file-1", "file-2"])
    #expect(faults.count == 10)
  }
}
