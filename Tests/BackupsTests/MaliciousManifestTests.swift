import Basics
import CSQLite
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

/// A schema that a manifest must not have, with the expected error.
struct MaliciousSchema: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let sql: String
  let code: KeyhaulError.Code
  let reason: String

  init(_ description: String, _ sql: String, _ code: KeyhaulError.Code, _ reason: String) {
    testDescription = description
    self.sql = sql
    self.code = code
    self.reason = reason
  }
}

@Suite("Manifest databases that no device creates")
struct MaliciousManifestTests {
  /// The beginning of a statement that creates the table `Files`. Its last two columns follow.
  private static let filesTable = "CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, "

  static let schemas = [
    MaliciousSchema(
      "a trigger", ExternalDatabase.schema + "CREATE TRIGGER t AFTER INSERT ON Files BEGIN SELECT 1; END", "\"t\""),
    MaliciousSchema("a view", ExternalDatabase.schema + "CREATE VIEW v AS SELECT load_extension('x')", "\"v\""),
    MaliciousSchema("a view in place of the table", "CREATE VIEW Files AS SELECT 1 AS fileID", "\"Files\""),
    MaliciousSchema(
      "a virtual table", ExternalDatabase.schema + "CREATE VIRTUAL TABLE f USING fts5(x)", "no device creates"),
    MaliciousSchema("another table", ExternalDatabase.schema + "CREATE TABLE Other (x)", "\"Other\""),
    MaliciousSchema("a computed column", filesTable + "flags INTEGER, file BLOB AS (abs(flags)))", "\"Files\""),
    MaliciousSchema(
      "a generated column", filesTable + "flags INTEGER, file BLOB GENERATED ALWAYS AS (1) STORED)", "\"Files\""),
    MaliciousSchema("a check", filesTable + "flags INTEGER CHECK (abs(flags) >= 0), file BLOB)", "\"Files\""),
    MaliciousSchema("a computed default", filesTable + "flags INTEGER DEFAULT (random()), file BLOB)", "\"Files\""),
    MaliciousSchema(
      "an index of an expression", ExternalDatabase.schema + "CREATE INDEX i ON Files(lower(domain))", "\"i\""),
    MaliciousSchema(
      "a partial index", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain) WHERE flags = 1", "\"i\""),
    MaliciousSchema("an index of a text", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain || 'x')", "\"i\""),
    MaliciousSchema(
      "an index of a sum", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain, flags + 1)", "\"i\""),
    MaliciousSchema("an index of a sign", ExternalDatabase.schema + "CREATE INDEX i ON Files(-flags)", "\"i\""),
    MaliciousSchema("an index of a number", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain, 1.5)", "\"i\""),
    MaliciousSchema(
      "an index of a pattern", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain LIKE 'x')", "\"i\""),
    MaliciousSchema(
      "an index of a null test", ExternalDatabase.schema + "CREATE INDEX i ON Files(flags IS NULL)", "\"i\""),
    MaliciousSchema(
      "an index of a case", ExternalDatabase.schema + "CREATE INDEX i ON Files(CASE flags WHEN 1 THEN 2 END)", "\"i\""),
    MaliciousSchema(
      "a unique index of an expression", ExternalDatabase.schema + "CREATE UNIQUE INDEX i ON Files(fileID || domain)",
      "\"i\""),
    MaliciousSchema(
      "an index of an expression over the other table",
      ExternalDatabase.schema + "CREATE INDEX i ON Properties(key || value)", "\"i\""),
    MaliciousSchema(
      "an index with another collation", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain COLLATE NOCASE)",
      "\"i\""),
    MaliciousSchema(
      "a comment in an index", ExternalDatabase.schema + "CREATE INDEX i ON Files(domain /* x */)", "\"i\""),
    MaliciousSchema(
      "a table without row numbers", filesTable + "flags INTEGER, file BLOB) WITHOUT ROWID", "\"Files\""),
    MaliciousSchema("another collation", filesTable + "flags INTEGER, file BLOB COLLATE NOCASE)", "\"Files\""),
    MaliciousSchema(
      "no Files table", "CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB)", .damaged, "no Files table"),
    MaliciousSchema("nothing at all", "PRAGMA user_version = 2", .damaged, "no Files table"),
    MaliciousSchema(
      "other columns", "CREATE TABLE Files (fileID TEXT, domain TEXT, path TEXT, flags INTEGER, file BLOB)", .damaged,
      "unexpected columns"),
    MaliciousSchema(
      "a column too many", filesTable + "flags INTEGER, file BLOB, more TEXT)", .damaged, "unexpected columns"),
    MaliciousSchema(
      "columns in another order", filesTable + "file BLOB, flags INTEGER)", .damaged, "unexpected columns"),
    MaliciousSchema(
      "a thousand columns", "CREATE TABLE Files (\((0..<1000).map { "c\($0)" }.joined(separator: ", ")))", .damaged,
      "too many columns"),
  ]

  private func open(_ bytes: [UInt8]) throws -> ManifestDatabase {
    try ManifestDatabase(try DatabaseBytes(try SpooledData(bytes)))
  }

  @Test("SQLite's own tables are ignored")
  func systemTables() throws {
    let sequence = "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t DEFAULT VALUES; DROP TABLE t;"
    let row = ExternalDatabase.row("a", domain: "HomeDomain", path: "a")
    let bytes = try ExternalDatabase.bytes(ExternalDatabase.schema + row + sequence + "ANALYZE;")
    #expect(Data(bytes).range(of: Data("sqlite_sequence".utf8)) != nil)
    #expect(Data(bytes).range(of: Data("sqlite_stat1".utf8)) != nil)
    #expect(try open(bytes).anomalies.isEmpty)
  }

  @Test("A forged table with the name of one of SQLite's own tables is refused")
  func forgedSystemTable() throws {
    let forged = try ExternalDatabase.bytes(
      ExternalDatabase.schema + "ANALYZE; PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
        + "'CREATE TABLE sqlite_stat1(tbl,idx,stat CHECK (abs(1)))' WHERE name = 'sqlite_stat1';")
    #expect(try failure(forged)?.code == .hostile)
  }

  @Test("A database whose tree refers to missing pages is reported as damaged, not as a disk error")
  func missingPages() throws {
    let database = try ExternalDatabase.bytes(ExternalDatabase.schema)
    let pageSizeBytes = database[16..<18]
    let pageCount = database.count / (Int(pageSizeBytes[16]) << 8 | Int(pageSizeBytes[17]))
    for factor in [2, 60, 64] {
      let claimedPageCount = pageCount * factor
      var bytes = database
      func write(_ number: Int, at offset: Int) {
        bytes.replaceSubrange(offset..<offset + 4, with: [UInt8](bigEndian: number, count: 4))
      }
      // The number of pages in the header is valid if the counters at 24 and 92 are equal.
      write(claimedPageCount, at: 28)
      bytes.replaceSubrange(92..<96, with: bytes[24..<28])
      // The first page becomes an inner page without cells, whose cell area begins at the end of the page. Its only
      // child is near the last of the claimed pages.
      let innerPage: [UInt8] = [5, 0, 0, 0, 0] + pageSizeBytes + [0]
      bytes.replaceSubrange(100..<108, with: innerPage)
      write(claimedPageCount - 1, at: 108)
      #expect(try failure(bytes)?.category == .damaged, "\(factor)")
    }
  }

  private func failure(_ bytes: [UInt8]) throws -> KeyhaulError? {
    do {
      _ = try open(bytes)
      return nil
    } catch let error as KeyhaulError {
      return error
    }
  }

  @Test("A database with an unexpected schema is refused before other content is read", arguments: schemas)
  func schema(_ malicious: MaliciousSchema) throws {
    let error = try #require(try failure(try ExternalDatabase.bytes(malicious.sql)))
    #expect(error.code == malicious.code, "\(error)")
    #expect(error.reason.contains(malicious.reason), "\(error)")
  }

  @Test(
    "A database can have any index of columns, in ascending or descending order",
    arguments: [
      "CREATE INDEX i ON Files(domain DESC)", "CREATE INDEX i ON Files(domain, flags ASC,\n relativePath)",
      "CREATE UNIQUE INDEX i ON Files(fileID)", "CREATE INDEX \"i\" ON \"Files\" (\"domain\", [flags] desc, `file`)",
      "CREATE INDEX i ON Properties(value, key)",
    ])
  func plainIndexes(sql: String) throws {
    #expect(try failure(try ExternalDatabase.bytes(ExternalDatabase.schema + sql)) == nil)
  }

  @Test("A file that is not a database is damaged")
  func notADatabase() throws {
    #expect(try failure([])?.code == .damaged)
    #expect(try failure(Array("not a database".utf8))?.reason == "the manifest database is not an SQLite database")
    #expect(try failure([UInt8](repeating: 7, count: 8192))?.code == .damaged)
  }

  @Test("A truncated database is reported as truncated")
  func truncated() throws {
    let database = try ExternalDatabase.bytes(ExternalDatabase.schema)
    #expect(try failure(database) == nil)
    #expect(try failure(Array(database.dropLast()))?.code == .truncated)
    #expect(try failure(Array(database.dropLast(4096)))?.code == .truncated)
    #expect(try failure(Array(database.prefix(100)))?.code == .truncated)
  }

  private func emptyManifest(changedTo bytes: [UInt8], at offset: Int) throws -> [UInt8] {
    var database = try ExternalDatabase.bytes(ExternalDatabase.schema)
    database.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    return database
  }

  @Test(
    "A database with an invalid page size is refused",
    arguments: [[0, 0], [3, 0xE8], [1, 0], [0xFF, 0xFF]] as [[UInt8]])
  func invalidPageSize(size: [UInt8]) throws {
    let error = try failure(try emptyManifest(changedTo: size, at: 16))
    #expect(error?.reason.contains("pages of") == true)
  }

  @Test("A database with invalid pages is damaged")
  func invalidPages() throws {
    let invalidFirstPageType = try emptyManifest(changedTo: [0xFF], at: 100)
    let circularFreePageList = try emptyManifest(changedTo: [0, 0, 0, 2, 0, 0, 0, 9], at: 32)
    let invalidSecondPage = try emptyManifest(changedTo: [UInt8](repeating: 0xFF, count: 4096), at: 4096)
    for bytes in [invalidFirstPageType, circularFreePageList, invalidSecondPage] {
      #expect(try failure(bytes)?.category == .damaged)
    }
  }

  @Test("A database in write-ahead mode is read, with a note")
  func writeAheadMode() throws {
    // The versions that are required for writing and reading. Version 2 is the write-ahead mode.
    let bytes = try emptyManifest(changedTo: [2, 2], at: 18)
    #expect(try open(bytes).anomalies == [.databaseInWriteAheadMode])
  }

  private let keychain = (domain: "KeychainDomain", path: "keychain-backup.plist")

  /// Looks up the keychain file in a manifest with the given rows.
  private func keychainFile(inRows rows: String) throws -> ListedFile? {
    try open(try ExternalDatabase.bytes(ExternalDatabase.schema + rows)).file(
      domain: keychain.domain, relativePath: keychain.path)
  }

  /// A row with the identifier and the name of the keychain file. Only its record is invalid.
  private let matchingRow = ExternalDatabase.keychainRow(record: [1])

  @Test("The keychain file is found by its name and identifier")
  func keychainRow() throws {
    #expect(try keychainFile(inRows: matchingRow)?.kind == .file)
    #expect(throws: KeyhaulError.self) { try keychainFile(inRows: matchingRow)?.record() }
    #expect(try keychainFile(inRows: "") == nil)
    let withoutRecord = try keychainFile(inRows: ExternalDatabase.keychainRow(flags: 33))
    #expect(withoutRecord?.kind == .file)
    #expect(try withoutRecord?.record() == nil)
  }

  @Test("A row of the keychain file with an identifier that does not match its name is refused")
  func invalidKeychainRows() throws {
    let identifier = KeychainPayload.fileIdentifier
    let otherIdentifier = String(repeating: "ab", count: 20)
    let invalidRows = [
      ExternalDatabase.row(otherIdentifier, domain: keychain.domain, path: keychain.path, record: [1]),
      ExternalDatabase.row(identifier.uppercased(), domain: keychain.domain, path: keychain.path, record: [1]),
      ExternalDatabase.row("../../etc/passwd", domain: keychain.domain, path: keychain.path, record: [1]),
      ExternalDatabase.row(identifier, domain: "HomeDomain", path: "other", record: [1]),
      ExternalDatabase.row(identifier, domain: keychain.domain, path: "../keychain-backup.plist", record: [1]),
      matchingRow + ExternalDatabase.row(otherIdentifier, domain: keychain.domain, path: keychain.path, record: [2]),
      "INSERT INTO Files VALUES ('\(identifier)', x'00', NULL, 'one', 7);",
    ]
    for rows in invalidRows {
      let error = #expect(throws: KeyhaulError.self) { try keychainFile(inRows: rows) }
      #expect(error?.code == .hostile)
    }
  }

  @Test("Rows are counted by type, and invalid rows are counted separately")
  func listing() throws {
    func row(_ path: String, domain: String = "HomeDomain", flags: Int = 1) -> String {
      ExternalDatabase.row(SHA1.hash(Array("\(domain)-\(path)".utf8)).hex, domain: domain, path: path, flags: flags)
    }
    let validRows = [
      row("Library/a"), row("Library", flags: 2), row("link", flags: 4),
      // Only the lower three bits state the type.
      row("b", domain: "CameraRollDomain", flags: 0x29),
    ]
    let invalidRows = [
      row("../../etc/passwd"), row("/etc/passwd"), row("x", domain: "Home/Domain"),
      ExternalDatabase.row("nothex", domain: "HomeDomain", path: "x"),
      "INSERT INTO Files VALUES (NULL, 1, x'00', 'a', 3);",
    ]
    let sql = ExternalDatabase.schema + (validRows + invalidRows).joined()
    let listing = try open(try ExternalDatabase.bytes(sql)).listing(against: nil)
    #expect(listing.fileCount == 2)
    #expect(listing.directoryCount == 1)
    #expect(listing.linkCount == 1)
    #expect(listing.rowCountByDomain == ["HomeDomain": 3, "CameraRollDomain": 1])
    #expect(listing.inconsistentRowCount == invalidRows.count)
  }

  @Test("A value can have the maximum size, but not more")
  func maximumValueByteCount() throws {
    // The limit includes the row's other columns and its header.
    let limit = Int(DatabaseLimits.manifest.valueByteCount)
    let identifier = KeychainPayload.fileIdentifier
    func row(recordByteCount: Int) -> String {
      "INSERT INTO Files VALUES "
        + "('\(identifier)', '\(keychain.domain)', '\(keychain.path)', 1, zeroblob(\(recordByteCount)));"
    }
    #expect(try keychainFile(inRows: row(recordByteCount: limit - 200)) != nil)
    let error = #expect(throws: KeyhaulError.self) { try keychainFile(inRows: row(recordByteCount: limit + 1)) }
    #expect(error?.code == .overLimit)
  }
}

extension MaliciousSchema {
  fileprivate init(_ description: String, _ sql: String, _ reason: String) {
    self.init(description, sql, .hostile, reason)
  }
}
