import Basics
import CSQLite
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Keychains

@Suite("Rollback journals beside keychain databases")
struct RollbackJournalTests {
  /// A database and its journal during a change.
  ///
  /// With a cache of two pages, SQLite writes pages to the file before the change is finished.
  private struct UnfinishedChange {
    let before: [UInt8]
    let file: [UInt8]
    let journal: [UInt8]

    /// Runs statements without a commit, and copies the files before the connection is closed.
    init(_ change: String) throws {
      before = try DatabaseFile.changed(by: "PRAGMA page_size = 1024; VACUUM")
      let directory = try TemporaryDirectory()
      let path = directory.url.appending(path: "k.db").path
      try Data(before).write(to: URL(filePath: path))
      var handle: OpaquePointer?
      defer { sqlite3_close_v2(handle) }
      let sql = "PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; \(change)"
      guard sqlite3_open(path, &handle) == SQLITE_OK, sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
        throw DatabaseFile.SQLiteFailure(message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "")
      }
      file = try [UInt8](Data(contentsOf: URL(filePath: path)))
      journal = try [UInt8](Data(contentsOf: URL(filePath: path + "-journal")))
    }

    /// Returns the rows of a query as text, after SQLite has rolled the file back with the journal.
    func rowsAfterRecovery(_ sql: String, journal: [UInt8]? = nil) throws -> String {
      let directory = try TemporaryDirectory()
      let path = directory.url.appending(path: "k.db").path
      try Data(file).write(to: URL(filePath: path))
      try Data(journal ?? self.journal).write(to: URL(filePath: path + "-journal"))
      return try Self.rows(sql, at: path)
    }

    /// Returns the rows of a query on a file without a journal, as text.
    static func rows(_ sql: String, of bytes: [UInt8]) throws -> String {
      let directory = try TemporaryDirectory()
      let path = directory.url.appending(path: "k.db").path
      try Data(bytes).write(to: URL(filePath: path))
      return try rows(sql, at: path)
    }

    private static func rows(_ sql: String, at path: String) throws -> String {
      var handle: OpaquePointer?
      defer { sqlite3_close_v2(handle) }
      var statement: OpaquePointer?
      guard sqlite3_open(path, &handle) == SQLITE_OK, sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK
      else { throw DatabaseFile.SQLiteFailure(message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "") }
      defer { sqlite3_finalize(statement) }
      var rows: [String] = []
      while sqlite3_step(statement) == SQLITE_ROW {
        let values = (0..<sqlite3_column_count(statement)).map { column in
          sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "NULL"
        }
        rows.append(values.joined(separator: "|"))
      }
      return rows.joined(separator: "\n")
    }
  }

  private static let allRowsSQL = """
    SELECT rowid, hex(data), hex(sha1), acct, agrp FROM genp
    UNION ALL SELECT rowid, hex(data), hex(sha1), acct, agrp FROM inet
    """
  private static let changes = [
    "DELETE FROM genp; DELETE FROM inet", "UPDATE genp SET data = randomblob(9000)",
    "DROP TABLE genp; CREATE TABLE other(x); INSERT INTO other SELECT randomblob(3000) FROM keys",
    "CREATE TABLE more(x); WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<300) "
      + "INSERT INTO more SELECT randomblob(900) FROM n; UPDATE inet SET data = zeroblob(20000)",
  ]

  @Test("A rollback journal undoes an unfinished change, with the same rows as in SQLite", arguments: changes)
  func rolledBack(change: String) throws {
    let unfinished = try UnfinishedChange(change)
    // If the change had not reached the file, there would be nothing to roll back.
    #expect(unfinished.file != unfinished.before)
    let database = try KeychainDatabase(file: unfinished.file, journal: unfinished.journal)
    #expect(database.journalStatus == .rolledBack && database.isIntact)
    let original = try KeychainDatabase(file: unfinished.before)
    #expect(database.rows.count == 12)
    #expect(database.rows.map(\.encryptedItem) == original.rows.map(\.encryptedItem))
    #expect(database.rows.map(\.number) == original.rows.map(\.number))
    let recovered = try UnfinishedChange.rows(Self.allRowsSQL, of: database.image)
    #expect(try recovered == unfinished.rowsAfterRecovery(Self.allRowsSQL))
    #expect(try recovered == UnfinishedChange.rows(Self.allRowsSQL, of: unfinished.before))
  }

  @Test("A truncated or changed journal has the same effect as in SQLite, or is ignored")
  func damaged() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    let journal = unfinished.journal
    var statuses = Set<DatabaseDetails.JournalStatus>()
    let stepCount = 60
    for step in 0..<stepCount {
      var damagedJournal = journal
      if step.isMultiple(of: 2) {
        damagedJournal.removeLast(journal.count * (stepCount - step) / (stepCount + 1))
      } else {
        damagedJournal[journal.count * step / stepCount] ^= 0x10
      }
      let rowsInSQLite = try? unfinished.rowsAfterRecovery(Self.allRowsSQL, journal: damagedJournal)
      guard let database = try? KeychainDatabase(file: unfinished.file, journal: damagedJournal) else { continue }
      statuses.insert(database.journalStatus)
      // If the journal was applied, the database is intact and SQLite has the same rows.
      guard database.journalStatus == .rolledBack else { continue }
      let rows = try UnfinishedChange.rows(Self.allRowsSQL, of: database.image)
      #expect(database.isIntact && rows == rowsInSQLite, "\(step)")
    }
    #expect(statuses.contains(.rolledBack))
  }

  /// The header of a journal: a magic number of 8 bytes, and five numbers of 4 bytes. The third number is the page count
  /// of the database before the change, and the fourth one is the sector size, at which the first record begins.
  ///
  /// Source: SQLite, "Database File Format", section 3.
  private enum JournalHeader {
    static let byteCount = 28
    static let pageCount = 16..<20
    static let sectorSize = 20..<24
  }

  @Test("An empty journal and a journal with a zeroed header, as after a commit, are ignored")
  func committed() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    let zeros = [UInt8](repeating: 0, count: JournalHeader.byteCount)
    let zeroedJournal = zeros + unfinished.journal.dropFirst(zeros.count)
    for journal in [[], zeroedJournal] {
      let database = try KeychainDatabase(file: unfinished.before, journal: journal)
      #expect(database.journalStatus == .none && database.rows.count == 12)
    }
  }

  @Test("A journal with a truncated or damaged header, which SQLite ignores, is reported")
  func invalidHeader() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    let validJournal = unfinished.journal
    for journal in [
      Array("no journal at all".utf8), Array(validJournal.prefix(JournalHeader.byteCount - 1)),
      [0] + validJournal.dropFirst(),
      [7] + validJournal.dropFirst(), validJournal.prefix(7) + [0] + validJournal.dropFirst(8),
    ] {
      let database = try KeychainDatabase(file: unfinished.before, journal: journal)
      #expect(database.journalStatus == .journalUnreadable && database.rows.count == 12)
      // SQLite does not roll the file back.
      #expect(
        try unfinished.rowsAfterRecovery("PRAGMA page_count", journal: journal)
          == UnfinishedChange.rows("PRAGMA page_count", of: unfinished.file))
    }
  }

  @Test("A journal beside a log with content is ignored")
  func besideLog() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    let log = Array("no log at all".utf8)
    let database = try KeychainDatabase(file: unfinished.before, log: log, journal: unfinished.journal)
    #expect(database.journalStatus == .unreadable)
    #expect(try database.image == KeychainDatabase(file: unfinished.before).image)
  }

  @Test("The journal of another database is not applied if that would damage an intact database")
  func unrelatedJournal() throws {
    let otherChange = try UnfinishedChange("DROP TABLE genp")
    let file = try DatabaseFile.changed(
      by: "DROP TABLE ckmirror; DROP TABLE outgoingqueue; PRAGMA page_size = 4096; VACUUM")
    let database = try KeychainDatabase(file: file, journal: otherChange.journal)
    #expect(database.journalStatus == .unrelated && database.rows.count == 12)
  }

  @Test("A journal that names a distant page does not allocate memory for the pages before it")
  func distantPage() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    // The header states the page count of the largest database, and the first record is for its last page.
    let lastPage: [UInt8] = [0x00, 0x03, 0xFF, 0xFF]
    var journal = unfinished.journal
    journal.replaceSubrange(JournalHeader.pageCount, with: lastPage)
    let firstRecord = Int(journal.bigEndian(at: JournalHeader.sectorSize.lowerBound))
    journal.replaceSubrange(firstRecord..<firstRecord + 4, with: lastPage)
    let image = try KeychainDatabase(file: unfinished.before, journal: journal).image
    #expect(image.count <= unfinished.before.count + journal.count)
  }

  @Test("A journal that states too many pages for the database exceeds the limit, regardless of its page size")
  func pageCountLimit() throws {
    var journal = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)").journal
    journal.replaceSubrange(JournalHeader.pageCount, with: [0xFF, 0xFF, 0xFF, 0xFF])
    let error = #expect(throws: KeyhaulError.self) {
      _ = try KeychainDatabase(file: DatabaseFile.bytes(), journal: journal)
    }
    #expect(error?.code == .databaseOverLimit)
  }

  @Test("A journal with a sector size of zero is reported, and does not cause an endless loop")
  func sectorSizeOfZero() throws {
    var journal = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)").journal
    journal.replaceSubrange(JournalHeader.sectorSize, with: [0, 0, 0, 0])
    #expect(try KeychainDatabase(file: DatabaseFile.bytes(), journal: journal).journalStatus == .journalUnreadable)
  }
}
