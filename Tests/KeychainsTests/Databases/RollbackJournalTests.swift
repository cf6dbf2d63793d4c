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

    init(_ change: String) throws {
      before = try DatabaseFile.changed(by: "PRAGMA page_size = 1024; VACUUM")
      let directory = try TemporaryDirectory()
      let path = directory.url.appending(path: "k.db").path
      try Data(before).write(to: URL(filePath: path))
      var handle: OpaquePointer?
      defer { sqlite3_close_v2(handle) }
      let all = "PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; \(change)"
      guard sqlite3_open(path, &handle) == SQLITE_OK, sqlite3_exec(handle, all, nil, nil, nil) == SQLITE_OK else {
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
        rows.append(
          (0..<sqlite3_column_count(statement)).map { column in
            sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "NULL"
          }.joined(separator: "|"))
      }
      return rows.joined(separator: "\n")
    }
  }

  private static let allRowsSQL =
    "SELECT rowid, hex(data), hex(sha1), acct, agrp FROM genp UNION ALL SELECT rowid, hex(data), hex(sha1), acct, agrp FROM inet"
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
    #expect(database.rows.map(\.sealed) == original.rows.map(\.sealed))
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
    for step in 0..<60 {
      var other = journal
      if step % 2 == 0 {
        other.removeLast(journal.count * (60 - step) / 61)
      } else {
        other[journal.count * step / 60] ^= 0x10
      }
      let rowsInSQLite = try? unfinished.rowsAfterRecovery(Self.allRowsSQL, journal: other)
      guard let database = try? KeychainDatabase(file: unfinished.file, journal: other) else { continue }
      statuses.insert(database.journalStatus)
      // If the journal was applied, the database is intact and SQLite has the same rows.
      guard database.journalStatus == .rolledBack else { continue }
      let rows = try UnfinishedChange.rows(Self.allRowsSQL, of: database.image)
      #expect(database.isIntact && rows == rowsInSQLite, "\(step)")
    }
    #expect(statuses.contains(.rolledBack))
  }

  @Test("Empty and zeroed journals are ignored, and a journal that does not begin like one is reported")
  func finished() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    let zeroed = [UInt8](repeating: 0, count: 28) + unfinished.journal.dropFirst(28)
    for journal in [[], zeroed] {
      let database = try KeychainDatabase(file: unfinished.before, journal: journal)
      #expect(database.journalStatus == .none && database.rows.count == 12)
    }
    // SQLite ignores and removes these files, although they may be damaged journals.
    let damaged = unfinished.journal
    for journal in [
      Array("no journal at all".utf8), Array(damaged.prefix(27)), [0] + damaged.dropFirst(), [7] + damaged.dropFirst(),
      damaged.prefix(7) + [0] + damaged.dropFirst(8),
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
    let other = try UnfinishedChange("DROP TABLE genp")
    let file = try DatabaseFile.changed(
      by: "DROP TABLE ckmirror; DROP TABLE outgoingqueue; PRAGMA page_size = 4096; VACUUM")
    let database = try KeychainDatabase(file: file, journal: other.journal)
    #expect(database.journalStatus == .unrelated && database.rows.count == 12)
  }

  @Test("A journal that names a distant page does not allocate memory for the pages before it")
  func farPage() throws {
    let unfinished = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)")
    // The header states the page count of the largest database, and the first record is for its last page.
    let last: [UInt8] = [0x00, 0x03, 0xFF, 0xFF]
    var journal = unfinished.journal
    journal.replaceSubrange(16..<20, with: last)
    let first = Int(journal.bigEndian(at: 20))
    journal.replaceSubrange(first..<first + 4, with: last)
    let image = try KeychainDatabase(file: unfinished.before, journal: journal).image
    #expect(image.count <= unfinished.before.count + journal.count)
  }

  @Test("A journal that states too many pages for the database exceeds the limit, regardless of its page size")
  func pageCountLimit() throws {
    var journal = try UnfinishedChange("UPDATE genp SET data = randomblob(9000)").journal
    journal.replaceSubrange(16..<20, with: [0xFF, 0xFF, 0xFF, 0xFF])
    let error = #expect(throws: KeyhaulError.self) {
      _ = try KeychainDatabase(file: DatabaseFile.bytes(), journal: journal)
    }
    #expect(error?.code == .databaseOverLimit)
    // A sector size of zero could cause an endless loop.
    journal.replaceSubrange(20..<24, with: [0, 0, 0, 0])
    #expect(try KeychainDatabase(file: DatabaseFile.bytes(), journal: journal).journalStatus == .journalUnreadable)
  }
}
