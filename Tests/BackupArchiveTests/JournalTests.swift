import BackupArchive
import Foundation
import TestSupport
import Testing

@Suite("A journal of SQLite's beside the manifest")
struct JournalTests {
  private func backup(in directory: TemporaryDirectory, journal name: String, byteCount: Int) throws {
    try TreeBackup([.text("notes.txt", "a note")]).write(to: directory)
    try Data(count: byteCount).write(to: URL(fileURLWithPath: directory.path("backup/\(name)")))
  }

  @Test("is a finding, of a folder and packed", arguments: ["Manifest.db-wal", "Manifest.db-journal"], [nil, "b.tar"])
  func found(name: String, packed: String?) throws {
    let directory = try TemporaryDirectory()
    try backup(in: directory, journal: name, byteCount: 5_000)
    if let packed {
      let root = directory.path("backup")
      let files = try FileManager.default.subpathsOfDirectory(atPath: root).sorted().compactMap { path in
        FileManager.default.contents(atPath: "\(root)/\(path)").map { (path: path, bytes: [UInt8]($0)) }
      }
      try Data(BackupArchiveTests.packed(files)).write(to: URL(fileURLWithPath: directory.path(packed)))
    }
    let archive = try BackupArchive.open(.path(directory.path(packed ?? "backup")))
    let finding = try #require(archive.findings.first)
    #expect(archive.findings == [.listJournalUnread(name: name, byteCount: 5_000)])
    #expect(finding.place == name && finding.isDamage && !finding.isLoss)
    #expect(ArchiveUse.allCases.filter(finding.forbids) == [.restoring, .rewriting])
  }

  @Test(
    "is none where it is empty, or belongs to another file", arguments: [("Manifest.db-wal", 0), ("Info.db-wal", 9)])
  func none(name: String, byteCount: Int) throws {
    let directory = try TemporaryDirectory()
    try backup(in: directory, journal: name, byteCount: byteCount)
    #expect(try BackupArchive.open(.path(directory.path("backup"))).findings.isEmpty)
  }
}
