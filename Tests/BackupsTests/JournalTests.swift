import Backups
import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Logs and journals next to the manifest")
struct JournalTests {
  /// The path of the row that is in the database. The paths `late1` and `late2` are only in the log.
  private static let databasePaths = ["early"]
  private static let allPaths = ["early", "late1", "late2"]
  private static let logName = "Manifest.db-wal"
  private static let journalName = "Manifest.db-journal"

  /// Creates a backup of three files without journals, and returns its manifest.
  private func makeBackup(in directory: TemporaryDirectory, isEncrypted: Bool = false) throws -> [UInt8] {
    let files = Self.allPaths.map { FileTreeBackup.File.text($0, "content of \($0)") }
    try FileTreeBackup(files, isEncrypted: isEncrypted).write(to: directory)
    return try directory.read("backup/Manifest.db")
  }

  /// Creates a backup of three files. Two of their rows are only in the log, each in its own commit.
  private func makeBackupWithLog(in directory: TemporaryDirectory) throws -> JournaledManifest {
    let manifest = try JournaledManifest.moving("late1", "late2", of: try makeBackup(in: directory))
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.log, to: "backup/\(Self.logName)")
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

  /// Returns the names of the logs and journals from which rows were read.
  private func readJournals(of archive: BackupArchive) -> [String] {
    archive.anomalies.compactMap { if case .listJournalRead(let name) = $0 { name } else { nil } }
  }

  private func convert(to container: String, in directory: TemporaryDirectory) throws -> RewrittenBackup {
    try BackupRewriter(system: unsynced).convert(
      try open(directory), at: directory.path("backup"), to: BackupDestination(path: directory.path(container)))
  }

  /// Returns the only finding, which must be about a journal.
  private func ignoredJournal(of archive: BackupArchive) throws -> (name: String, byteCount: Int64, reason: String) {
    #expect(archive.findings.count == 1)
    guard case .listJournalUnread(let name, let byteCount, let reason)? = archive.findings.first else {
      throw ExternalDatabase.Failure(message: "\(archive.findings)")
    }
    return (name, byteCount, reason)
  }

  @Test(
    "Rows committed in the log are rows of the manifest, in a folder and in a container",
    arguments: [nil, "b.tar", "b.zip"])
  func merged(container: String?) throws {
    let directory = try TemporaryDirectory()
    _ = try makeBackupWithLog(in: directory)
    for name in ["Manifest.db", "Manifest.plist", "Status.plist"] {
      try directory.write(try directory.read("backup/\(name)"), to: "without-log/\(name)")
    }
    #expect(try paths(try open(directory, "without-log")) == Self.databasePaths)
    if let container { #expect(try convert(to: container, in: directory).unrelatedFiles.isEmpty) }
    let archive = try open(directory, container ?? "backup")
    #expect(try paths(archive) == Self.allPaths)
    #expect(archive.findings.isEmpty && readJournals(of: archive) == [Self.logName])
    #expect(try archive.fileList().listing(against: archive.storedFiles()).missingCount == 0)
    #expect(try archive.digest == open(directory).digest)
    #expect(try archive.digest != open(directory, "without-log").digest)
    for use in BackupPurpose.allCases { try archive.requireUsable(for: use) }
  }

  @Test(
    "A log without frames has no effect", arguments: [0, JournaledManifest.logHeaderByteCount])
  func logWithoutFrames(byteCount: Int) throws {
    let directory = try TemporaryDirectory()
    let log = try makeBackupWithLog(in: directory).log
    try directory.write(Array(log.prefix(byteCount)), to: "backup/\(Self.logName)")
    let archive = try open(directory)
    #expect(archive.findings.isEmpty && readJournals(of: archive).isEmpty)
    #expect(try paths(archive) == Self.databasePaths)
  }

  @Test("A log with pages that the manifest already contains has no effect")
  func checkpointedLog() throws {
    let directory = try TemporaryDirectory()
    let manifest = try JournaledManifest(
      try makeBackup(in: directory),
      running: "PRAGMA journal_mode = WAL; UPDATE Files SET flags = 1; PRAGMA wal_checkpoint(FULL);")
    #expect(manifest.log.count > 4_096)
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.log, to: "backup/\(Self.logName)")
    let archive = try open(directory)
    #expect(archive.findings.isEmpty && readJournals(of: archive).isEmpty)
    #expect(try paths(archive) == Self.allPaths)
  }

  @Test("A log with frames of other salts is reported and ignored")
  func otherSalts() throws {
    let directory = try TemporaryDirectory()
    var log = try makeBackupWithLog(in: directory).log
    let frames = stride(
      from: JournaledManifest.logHeaderByteCount, to: log.count, by: JournaledManifest.frameHeaderByteCount + 4_096)
    // A frame header has the salts at offset 8.
    for frame in frames { log[frame + 8] ^= 1 }
    try directory.write(log, to: "backup/\(Self.logName)")
    let archive = try open(directory)
    let journal = try ignoredJournal(of: archive)
    #expect(journal.name == Self.logName && journal.byteCount == Int64(log.count))
    #expect(journal.reason == "the frames' salts do not match the header's")
    #expect(try paths(archive) == Self.databasePaths && readJournals(of: archive).isEmpty)
    #expect(BackupPurpose.allCases.filter(archive.findings[0].blocks) == [.restoring, .rewriting])
    #expect(archive.findings[0].isDamage && !archive.findings[0].isLoss)
  }

  @Test(
    "A log of another database is reported and ignored",
    arguments: [
      (1_024, "their pages have 1,024 bytes, but the manifest's have 4,096"),
      (4_096, "if they are read, the manifest fails its check"),
    ])
  func otherDatabase(pageByteCount: Int, reason: String) throws {
    let directory = try TemporaryDirectory()
    _ = try makeBackupWithLog(in: directory)
    let otherManifest = try JournaledManifest(
      try ExternalDatabase.bytes(
        "PRAGMA page_size = \(pageByteCount); CREATE TABLE other(x); INSERT INTO other VALUES (1)"),
      running: """
        PRAGMA journal_mode = WAL;
        PRAGMA wal_autocheckpoint = 0;
        CREATE TABLE more(x);
        INSERT INTO other VALUES (2);
        """)
    try directory.write(otherManifest.log, to: "backup/\(Self.logName)")
    let archive = try open(directory)
    #expect(try ignoredJournal(of: archive).reason == reason)
    #expect(try paths(archive) == Self.databasePaths)
  }

  @Test("A truncated log is used up to its last complete commit, and the remaining bytes are reported")
  func truncatedLog() throws {
    let directory = try TemporaryDirectory()
    let log = try makeBackupWithLog(in: directory).log
    let commitEnds = JournaledManifest.commitEnds(in: log)
    #expect(commitEnds.count == 2 && commitEnds.last == log.count)
    let firstCommitEnd = commitEnds[0]
    let cases = [
      (byteCount: log.count - 100, usesFirstCommit: true, ignoredCount: log.count - 100 - firstCommitEnd),
      (byteCount: firstCommitEnd + 10, usesFirstCommit: true, ignoredCount: 10),
      (byteCount: firstCommitEnd - 10, usesFirstCommit: false, ignoredCount: firstCommitEnd - 10),
      (byteCount: 20, usesFirstCommit: false, ignoredCount: 20),
    ]
    for (byteCount, usesFirstCommit, ignoredCount) in cases {
      try directory.write(Array(log.prefix(byteCount)), to: "backup/\(Self.logName)")
      let archive = try open(directory)
      #expect(try paths(archive) == (usesFirstCommit ? ["early", "late1"] : Self.databasePaths), "\(byteCount)")
      #expect(try ignoredJournal(of: archive).byteCount == Int64(ignoredCount), "\(byteCount)")
      #expect(readJournals(of: archive) == (usesFirstCommit ? [Self.logName] : []), "\(byteCount)")
    }
  }

  @Test("A log that ends after its first commit is used without a finding")
  func logEndsAfterCommit() throws {
    let directory = try TemporaryDirectory()
    let log = try makeBackupWithLog(in: directory).log
    let firstCommitEnd = JournaledManifest.commitEnds(in: log)[0]
    try directory.write(Array(log.prefix(firstCommitEnd)), to: "backup/\(Self.logName)")
    let archive = try open(directory)
    #expect(try archive.findings.isEmpty && paths(archive) == ["early", "late1"])
  }

  @Test("A frame with a wrong checksum ends the log, as in SQLite")
  func changedFrame() throws {
    let directory = try TemporaryDirectory()
    var log = try makeBackupWithLog(in: directory).log
    let secondFrame = JournaledManifest.commitEnds(in: log)[0]
    log[secondFrame + JournaledManifest.frameHeaderByteCount + 50] ^= 1
    try directory.write(log, to: "backup/\(Self.logName)")
    #expect(try paths(try open(directory)) == ["early", "late1"])
  }

  @Test("A journal reverts an unfinished change, in a directory and in a tar", arguments: [nil, "b.tar"])
  func rolledBack(container: String?) throws {
    let directory = try TemporaryDirectory()
    let before = try makeBackup(in: directory)
    let manifest = try JournaledManifest.withUncommittedChange(before)
    // The test requires that the change has reached the file.
    #expect(manifest.database != before && !manifest.journal.isEmpty)
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.journal, to: "backup/\(Self.journalName)")
    if let container { _ = try convert(to: container, in: directory) }
    let archive = try open(directory, container ?? "backup")
    #expect(try paths(archive) == Self.allPaths)
    #expect(archive.findings.isEmpty && readJournals(of: archive) == [Self.journalName])
  }

  @Test("A journal of a finished change is ignored, and an invalid one is reported")
  func otherJournals() throws {
    let directory = try TemporaryDirectory()
    _ = try makeBackup(in: directory)
    try directory.write([UInt8](repeating: 0, count: 5_000), to: "backup/\(Self.journalName)")
    #expect(try open(directory).findings.isEmpty)
    try directory.write([UInt8](repeating: 1, count: 5_000), to: "backup/\(Self.journalName)")
    let journal = try ignoredJournal(of: try open(directory))
    #expect(journal.name == Self.journalName && journal.byteCount == 5_000)
    #expect(journal.reason == "they do not begin like an SQLite journal")
  }

  @Test("A log of a file other than the manifest is ignored")
  func logOfOtherFile() throws {
    let directory = try TemporaryDirectory()
    _ = try makeBackup(in: directory)
    try directory.write([1], to: "backup/Info.db-wal")
    #expect(try open(directory).findings.isEmpty)
  }

  @Test("A log of an encrypted manifest is reported and ignored")
  func encrypted() throws {
    let directory = try TemporaryDirectory()
    let log = try makeBackupWithLog(in: directory).log
    _ = try makeBackup(in: directory, isEncrypted: true)
    try directory.write(log, to: "backup/\(Self.logName)")
    #expect(try ignoredJournal(of: try open(directory)).reason == "Manifest.db is encrypted, or not a database")
  }

  @Test("A log that is a link or too large is reported and ignored")
  func unreadable() throws {
    let directory = try TemporaryDirectory()
    let log = try makeBackupWithLog(in: directory).log
    var limits = BackupLimits()
    limits.journalByteCount = log.count - 1
    let archive = try BackupArchive.open(.path(directory.path("backup")), limits: limits)
    #expect(try ignoredJournal(of: archive).byteCount == Int64(log.count))
    #expect(try paths(archive) == Self.databasePaths)
    try FileManager.default.removeItem(atPath: directory.path("backup/\(Self.logName)"))
    try FileManager.default.createSymbolicLink(
      atPath: directory.path("backup/\(Self.logName)"), withDestinationPath: "/etc/hostname")
    #expect(try ignoredJournal(of: try open(directory)).reason == "it is not a regular file")
  }

  @Test("A rewritten manifest contains the rows of the log, which is omitted", arguments: ["backup", "b.tar"])
  func rewritten(source: String) throws {
    let directory = try TemporaryDirectory()
    let fixture = try UnencryptedBackupFixture()
    try fixture.write(to: directory)
    let manifest = try JournaledManifest.moving(
      "Library/fifteen", "Library/sixteen", of: try directory.read("backup/Manifest.db"))
    try directory.write(manifest.database, to: "backup/Manifest.db")
    try directory.write(manifest.log, to: "backup/\(Self.logName)")
    try directory.write([1], to: "backup/Manifest.db-shm")
    if source != "backup" { _ = try convert(to: source, in: directory) }
    let archive = try open(directory, source)
    let outcome = try BackupRewriter(system: unsynced).reencrypt(
      archive, at: directory.path(source), with: try fixture.keybagWithPassword("correct horse"),
      keys: archive.keybag.keys(""))
    #expect(outcome.unrelatedFiles.isEmpty)
    let copy = try open(directory, source)
    #expect(copy.findings.isEmpty && readJournals(of: copy).isEmpty)
    let files = try copy.plainFiles(try copy.keybag.keys("correct horse"))
    #expect(files.count == 6 && files["HomeDomain-Library/fifteen"]?.bytes == Array("plain text here".utf8))
  }

  @Test("A seal includes the log, so that a missing or different log breaks the seal")
  func sealed() throws {
    let directory = try TemporaryDirectory()
    let log = try makeBackupWithLog(in: directory).log
    _ = try BackupRewriter(system: unsynced).seal(try open(directory), at: directory.path("backup"), keys: nil)
    #expect(try open(directory).seal?.violations == [])
    let logWithOneCommit = Array(log.prefix(JournaledManifest.commitEnds(in: log)[0]))
    for bytes in [[], logWithOneCommit] {
      try directory.write(bytes, to: "backup/\(Self.logName)")
      #expect(try open(directory).seal?.violations.map(\.file) == [Self.logName])
    }
  }
}
