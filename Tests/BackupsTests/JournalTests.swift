import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Logs and journals next to the manifest")
struct JournalTests {
  private static let early = ["early"]
  private static let all = ["early", "late1", "late2"]
  private static let log = "Manifest.db-wal"
  private static let journal = "Manifest.db-journal"

  /// Creates a backup without a password, whose manifest has three files.
  private func backup(in directory: TemporaryDirectory, isEncrypted: Bool = false) throws -> [UInt8] {
    try FileTreeBackup(Self.all.map { .text($0, "content of \($0)") }, isEncrypted: isEncrypted).write(to: directory)
    return try directory.read("backup/Manifest.db")
  }

  /// Creates a backup whose manifest has two rows only in the log.
  private func logged(in directory: TemporaryDirectory) throws -> JournaledManifest {
    let manifest = try JournaledManifest.moving("late1", "late2", of: try backup(in: directory))
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.log, to: "backup/\(Self.log)")
    return manifest
  }

  private func open(_ directory: TemporaryDirectory, _ name: String = "backup") throws -> BackupArchive {
    try BackupArchive.open(.path(directory.path(name)))
  }

  private func paths(_ archive: BackupArchive) throws -> [String] {
    var paths: [String] = []
    try archive.fileList().forEachFile { paths.append($0.relativePath ?? "") }
    return paths.sorted()
  }

  private func readJournals(_ archive: BackupArchive) -> [String] {
    archive.anomalies.compactMap { if case .listJournalRead(let name) = $0 { name } else { nil } }
  }

  /// Returns the only finding, which must be that of a journal.
  private func unreadJournal(of archive: BackupArchive) throws -> (name: String, byteCount: Int64, reason: String) {
    #expect(archive.findings.count == 1)
    guard case .listJournalUnread(let name, let byteCount, let reason)? = archive.findings.first else {
      throw ExternalDatabase.Failure(message: "\(archive.findings)")
    }
    return (name, byteCount, reason)
  }

  @Test(
    "Rows committed in the log are rows of the manifest, in a folder and in a container",
    arguments: [nil, "b.tar", "b.zip"])
  func merged(packed: String?) throws {
    let directory = try TemporaryDirectory()
    _ = try logged(in: directory)
    // Without the log, the database has one row.
    try directory.write(try directory.read("backup/Manifest.db"), to: "without-log/Manifest.db")
    for part in ["Manifest.plist", "Status.plist"] {
      try directory.write(try directory.read("backup/\(part)"), to: "without-log/\(part)")
    }
    #expect(try paths(try open(directory, "without-log")) == Self.early)
    if let packed {
      let copy = try BackupRewriter(system: unsynced).convert(
        try open(directory), at: directory.path("backup"), to: BackupDestination(path: directory.path(packed)))
      #expect(copy.unrelatedFiles.isEmpty)
    }
    let archive = try open(directory, packed ?? "backup")
    #expect(try paths(archive) == Self.all)
    #expect(archive.findings.isEmpty && readJournals(archive) == [Self.log])
    #expect(try archive.fileList().listing(against: archive.storedFiles()).missingCount == 0)
    #expect(try archive.digest == open(directory).digest)
    #expect(try archive.digest != open(directory, "without-log").digest)
    for use in BackupPurpose.allCases { try archive.requireUsable(for: use) }
  }

  @Test(
    "A log without frames, or with pages that the manifest already contains, has no effect", arguments: [0, 32, nil])
  func withoutEffect(byteCount: Int?) throws {
    let directory = try TemporaryDirectory()
    var manifest = try logged(in: directory)
    if byteCount == nil {
      let checkpoint = "PRAGMA journal_mode = WAL; UPDATE Files SET flags = 1; PRAGMA wal_checkpoint(FULL);"
      manifest = try JournaledManifest(try backup(in: directory), checkpoint)
      #expect(manifest.log.count > 4_096)
      try directory.write(manifest.database, to: "backup/Manifest.db")
    }
    try directory.write(Array(manifest.log.prefix(byteCount ?? .max)), to: "backup/\(Self.log)")
    let archive = try open(directory)
    #expect(archive.findings.isEmpty && readJournals(archive).isEmpty)
    #expect(try paths(archive) == (byteCount == nil ? Self.all : Self.early))
  }

  @Test("A log with frames of other salts is reported and not used")
  func otherSalts() throws {
    let directory = try TemporaryDirectory()
    var log = try logged(in: directory).log
    for frame in stride(from: 32, to: log.count, by: 24 + 4_096) { log[frame + 8] ^= 1 }
    try directory.write(log, to: "backup/\(Self.log)")
    let archive = try open(directory)
    let journal = try unreadJournal(of: archive)
    #expect(journal.name == Self.log && journal.byteCount == Int64(log.count))
    #expect(journal.reason == "the frames' salts do not match the header's")
    #expect(try paths(archive) == Self.early && readJournals(archive).isEmpty)
    #expect(BackupPurpose.allCases.filter(archive.findings[0].blocks) == [.restoring, .rewriting])
    #expect(archive.findings[0].isDamage && !archive.findings[0].isLoss)
  }

  @Test("A log of another database is reported and not used", arguments: [1_024, 4_096])
  func otherDatabase(pageByteCount: Int) throws {
    let directory = try TemporaryDirectory()
    _ = try logged(in: directory)
    let other = try JournaledManifest(
      try ExternalDatabase.bytes(
        "PRAGMA page_size = \(pageByteCount); CREATE TABLE other(x); INSERT INTO other VALUES (1)"),
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE more(x); INSERT INTO other VALUES (2);")
    try directory.write(other.log, to: "backup/\(Self.log)")
    let archive = try open(directory)
    #expect(
      try unreadJournal(of: archive).reason
        == (pageByteCount == 1_024
          ? "their pages have 1,024 bytes, but the manifest's have 4,096"
          : "if they are read, the manifest fails its check"))
    #expect(try paths(archive) == Self.early)
  }

  @Test("A truncated log is used up to its last complete commit, and the remaining bytes are reported")
  func cut() throws {
    let directory = try TemporaryDirectory()
    let log = try logged(in: directory).log
    let ends = JournaledManifest.commitEnds(log)
    #expect(ends.count == 2 && ends.last == log.count)
    for (count, expected, unusedCount) in [
      (log.count - 100, ["early", "late1"], log.count - 100 - ends[0]), (ends[0] + 10, ["early", "late1"], 10),
      (ends[0] - 10, Self.early, ends[0] - 10), (20, Self.early, 20),
    ] {
      try directory.write(Array(log.prefix(count)), to: "backup/\(Self.log)")
      let archive = try open(directory)
      #expect(try paths(archive) == expected, "\(count)")
      #expect(try unreadJournal(of: archive).byteCount == Int64(unusedCount), "\(count)")
      #expect(readJournals(archive) == (expected == Self.early ? [] : [Self.log]), "\(count)")
    }
    try directory.write(Array(log.prefix(ends[0])), to: "backup/\(Self.log)")
    let atCommit = try open(directory)
    #expect(try atCommit.findings.isEmpty && paths(atCommit) == ["early", "late1"])
  }

  @Test("A frame with a wrong checksum ends the log, as in SQLite")
  func changedFrame() throws {
    let directory = try TemporaryDirectory()
    var log = try logged(in: directory).log
    log[JournaledManifest.commitEnds(log)[0] + 24 + 50] ^= 1
    try directory.write(log, to: "backup/\(Self.log)")
    #expect(try paths(try open(directory)) == ["early", "late1"])
  }

  @Test("A journal reverts an unfinished change, in a directory and in a tar", arguments: [nil, "b.tar"])
  func rolledBack(packed: String?) throws {
    let directory = try TemporaryDirectory()
    let before = try backup(in: directory)
    let manifest = try JournaledManifest.unfinished(before)
    // The test requires that the change has reached the file.
    #expect(manifest.database != before && !manifest.journal.isEmpty)
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.journal, to: "backup/\(Self.journal)")
    if let packed {
      _ = try BackupRewriter(system: unsynced).convert(
        try open(directory), at: directory.path("backup"), to: BackupDestination(path: directory.path(packed)))
    }
    let archive = try open(directory, packed ?? "backup")
    #expect(try paths(archive) == Self.all)
    #expect(archive.findings.isEmpty && readJournals(archive) == [Self.journal])
  }

  @Test("A journal of a finished change is ignored, and an invalid one is reported")
  func otherJournals() throws {
    let directory = try TemporaryDirectory()
    _ = try backup(in: directory)
    try directory.write([UInt8](repeating: 0, count: 5_000), to: "backup/\(Self.journal)")
    #expect(try open(directory).findings.isEmpty)
    try directory.write([UInt8](repeating: 1, count: 5_000), to: "backup/\(Self.journal)")
    let journal = try unreadJournal(of: try open(directory))
    #expect(journal.name == Self.journal && journal.byteCount == 5_000)
    #expect(journal.reason == "they do not begin like an SQLite journal")
    try directory.write([1], to: "backup/Info.db-wal")
    #expect(try open(directory).findings.count == 1)
  }

  @Test("A log of an encrypted manifest is reported and not used")
  func encrypted() throws {
    let directory = try TemporaryDirectory()
    let log = try logged(in: directory).log
    _ = try backup(in: directory, isEncrypted: true)
    try directory.write(log, to: "backup/\(Self.log)")
    #expect(try unreadJournal(of: try open(directory)).reason == "Manifest.db is encrypted, or not a database")
  }

  @Test("A log that is a link or too large is reported and not used")
  func unreadable() throws {
    let directory = try TemporaryDirectory()
    let log = try logged(in: directory).log
    var limits = BackupLimits()
    limits.journalByteCount = log.count - 1
    let archive = try BackupArchive.open(.path(directory.path("backup")), limits: limits)
    #expect(try unreadJournal(of: archive).byteCount == Int64(log.count))
    #expect(try paths(archive) == Self.early)
    try FileManager.default.removeItem(atPath: directory.path("backup/\(Self.log)"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("backup/\(Self.log)"), withDestinationPath: "/etc/hostname")
    #expect(try unreadJournal(of: try open(directory)).reason == "it is not a regular file")
  }

  @Test("A rewritten manifest contains the rows of the log, which is omitted", arguments: ["backup", "b.tar"])
  func rewritten(source: String) throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    let manifest = try JournaledManifest.moving(
      "Library/fifteen", "Library/sixteen", of: try directory.read("backup/Manifest.db"))
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.log, to: "backup/\(Self.log)")
    try directory.write([1], to: "backup/Manifest.db-shm")
    let rewriter = BackupRewriter(system: unsynced)
    if source != "backup" {
      _ = try rewriter.convert(
        try open(directory), at: directory.path("backup"), to: BackupDestination(path: directory.path(source)))
    }
    let archive = try open(directory, source)
    let outcome = try rewriter.reencrypt(
      archive, at: directory.path(source), with: try fixture.keybagWithPassword("correct horse"),
      keys: archive.keybag.keys(""))
    #expect(outcome.unrelatedFiles.isEmpty)
    let copy = try open(directory, source)
    #expect(copy.findings.isEmpty && readJournals(copy).isEmpty)
    let files = try copy.plainFiles(try copy.keybag.keys("correct horse"))
    #expect(files.count == 6 && files["HomeDomain-Library/fifteen"]?.bytes == Array("plain text here".utf8))
  }

  @Test("A seal includes the log, so that a missing or different log breaks the seal")
  func sealed() throws {
    let directory = try TemporaryDirectory()
    let log = try logged(in: directory).log
    _ = try BackupRewriter(system: unsynced).seal(try open(directory), at: directory.path("backup"), keys: nil)
    #expect(try open(directory).seal?.violations == [])
    for bytes in [[], Array(log.prefix(JournaledManifest.commitEnds(log)[0]))] {
      try directory.write(bytes, to: "backup/\(Self.log)")
      #expect(try open(directory).seal?.violations.map(\.file) == [Self.log])
    }
  }
}
