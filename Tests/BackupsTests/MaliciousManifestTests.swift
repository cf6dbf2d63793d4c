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
  private static let files = "CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, "

  static let schemas = [
    MaliciousSchema(
      "a trigger", ExternalDatabase.schema + "CREATE TRIGGER t AFTER INSERT ON Files BEGIN SELECT 1; END", "\"t\""),
    MaliciousSchema("a view", ExternalDatabase.schema + "CREATE VIEW v AS SELECT load_extension('x')", "\"v\""),
    MaliciousSchema("a view in place of the table", "CREATE VIEW Files AS SELECT 1 AS fileID", "\"Files\""),
    MaliciousSchema(
      "a virtual table", ExternalDatabase.schema + "CREATE VIRTUAL TABLE f USING fts5(x)", "no device creates"),
    MaliciousSchema("another table", ExternalDatabase.schema + "CREATE TABLE Other (x)", "\"Other\""),
    MaliciousSchema("a computed column", files + "flags INTEGER, file BLOB AS (abs(flags)))", "\"Files\""),
    MaliciousSchema(
      "a generated column", files + "flags INTEGER, file BLOB GENERATED ALWAYS AS (1) STORED)", "\"Files\""),
    MaliciousSchema("a check", files + "flags INTEGER CHECK (abs(flags) >= 0), file BLOB)", "\"Files\""),
    MaliciousSchema("a computed default", files + "flags INTEGER DEFAULT (random()), file BLOB)", "\"Files\""),
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
      "a table without row numbers", files + "flags INTEGER, file BLOB) WITHOUT ROWID", "\"Files\""),
    MaliciousSchema("another collation", files + "flags INTEGER, file BLOB COLLATE NOCASE)", "\"Files\""),
    MaliciousSchema(
      "no Files table", "CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB)", .damaged, "no Files table"),
    MaliciousSchema("nothing at all", "PRAGMA user_version = 2", .damaged, "no Files table"),
    MaliciousSchema(
      "other columns", "CREATE TABLE Files (fileID TEXT, domain TEXT, path TEXT, flags INTEGER, file BLOB)", .damaged,
      "unexpected columns"),
    MaliciousSchema(
      "a column too many", files + "flags INTEGER, file BLOB, more TEXT)", .damaged, "unexpected columns"),
    MaliciousSchema("columns in another order", files + "file BLOB, flags INTEGER)", .damaged, "unexpected columns"),
    MaliciousSchema(
      "a thousand columns", "CREATE TABLE Files (\((0..<1000).map { "c\($0)" }.joined(separator: ", ")))", .damaged,
      "too many columns"),
  ]

  private func open(_ bytes: [UInt8]) throws -> ManifestDatabase {
    try ManifestDatabase(try DatabaseBytes(try SpooledData(bytes)))
  }

  @Test("SQLite's own tables are ignored, and a forged table with such a name is refused")
  func systemTables() throws {
    let sequence = "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO t DEFAULT VALUES; DROP TABLE t;"
    let row = ExternalDatabase.row("a", "HomeDomain", "a", 1, nil)
    let bytes = try ExternalDatabase.bytes(ExternalDatabase.schema + row + sequence + "ANALYZE;")
    #expect(Data(bytes).range(of: Data("sqlite_sequence".utf8)) != nil)
    #expect(Data(bytes).range(of: Data("sqlite_stat1".utf8)) != nil)
    #expect(try open(bytes).anomalies.isEmpty)
    let forged = try ExternalDatabase.bytes(
      ExternalDatabase.schema + "ANALYZE; PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = "
        + "'CREATE TABLE sqlite_stat1(tbl,idx,stat CHECK (abs(1)))' WHERE name = 'sqlite_stat1';")
    #expect(try failure(forged)?.code == .hostile)
  }

  @Test("A database whose tree refers to missing pages is damaged, without a disk error")
  func farPages() throws {
    var bytes = try ExternalDatabase.bytes(ExternalDatabase.schema)
    let pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    for count in [2, 60, 64] {
      let pages = bytes.count / pageSize * count
      func write(_ number: Int, at offset: Int) {
        for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * index)) }
      }
      write(pages, at: 28)
      bytes.replaceSubrange(92..<96, with: bytes[24..<28])
      // An inner page without cells, whose last child is near the last page.
      bytes.replaceSubrange(100..<108, with: [5, 0, 0, 0, 0, UInt8(pageSize >> 8 & 0xFF), UInt8(pageSize & 0xFF), 0])
      write(pages - 1, at: 108)
      #expect(try failure(bytes)?.category == .damaged, "\(count)")
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
    "A database can have any index of columns, in either order",
    arguments: [
      "CREATE INDEX i ON Files(domain DESC)", "CREATE INDEX i ON Files(domain, flags ASC,\n relativePath)",
      "CREATE UNIQUE INDEX i ON Files(fileID)", "CREATE INDEX \"i\" ON \"Files\" (\"domain\", [flags] desc, `file`)",
      "CREATE INDEX i ON Properties(value, key)",
    ])
  func plainIndexes(sql: String) throws {
    #expect(try failure(try ExternalDatabase.bytes(ExternalDatabase.schema + sql)) == nil)
  }

  @Test("A truncated or invalid database is damaged")
  func bytes() throws {
    let valid = try ExternalDatabase.bytes(ExternalDatabase.schema)
    #expect(try failure(valid) == nil)
    func changed(_ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
      var copy = valid
      copy.replaceSubrange(offset..<offset + bytes.count, with: bytes)
      return copy
    }
    #expect(try failure([])?.code == .damaged)
    #expect(try failure(Array("not a database".utf8))?.reason == "the manifest database is not an SQLite database")
    #expect(try failure([UInt8](repeating: 7, count: 8192))?.code == .damaged)
    #expect(try failure(Array(valid.dropLast()))?.code == .truncated)
    #expect(try failure(Array(valid.dropLast(4096)))?.code == .truncated)
    #expect(try failure(Array(valid.prefix(100)))?.code == .truncated)
    for size in [[0, 0], [3, 0xE8], [1, 0], [0xFF, 0xFF]] as [[UInt8]] {
      #expect(try failure(changed(16, size))?.reason.contains("pages of") == true, "\(size)")
    }
    // The first page is of an invalid type, the list of free pages is circular, or a root is after the end.
    #expect(try failure(changed(100, [0xFF]))?.category == .damaged)
    #expect(try failure(changed(32, [0, 0, 0, 2, 0, 0, 0, 9]))?.category == .damaged)
    #expect(try failure(changed(4096, [UInt8](repeating: 0xFF, count: 4096)))?.category == .damaged)
  }

  @Test("A database in write-ahead mode is read, with a note")
  func writeAheadMode() throws {
    var bytes = try ExternalDatabase.bytes(ExternalDatabase.schema)
    bytes[18] = 2
    bytes[19] = 2
    #expect(try open(bytes).anomalies == [.databaseInWriteAheadMode])
  }

  private let keychain = (domain: "KeychainDomain", path: "keychain-backup.plist")

  private func keychainRow(_ rows: String) throws -> ListedFile? {
    try open(try ExternalDatabase.bytes(ExternalDatabase.schema + rows)).file(
      domain: keychain.domain, relativePath: keychain.path)
  }

  @Test("The keychain file is listed under its hash or not at all")
  func keychainRows() throws {
    let identifier = KeychainPayload.fileIdentifier
    let valid = ExternalDatabase.row(identifier, keychain.domain, keychain.path, 1, [1])
    #expect(try keychainRow(valid)?.kind == .file)
    #expect(throws: KeyhaulError.self) { try keychainRow(valid)?.record() }
    #expect(try keychainRow("") == nil)
    let unfinished = try keychainRow(ExternalDatabase.row(identifier, keychain.domain, keychain.path, 33, nil))
    #expect(unfinished?.kind == .file)
    #expect(try unfinished?.record() == nil)
    let wrong = String(repeating: "ab", count: 20)
    let invalidRows = [
      ExternalDatabase.row(wrong, keychain.domain, keychain.path, 1, [1]),
      ExternalDatabase.row(identifier.uppercased(), keychain.domain, keychain.path, 1, [1]),
      ExternalDatabase.row("../../etc/passwd", keychain.domain, keychain.path, 1, [1]),
      ExternalDatabase.row(identifier, "HomeDomain", "other", 1, [1]),
      ExternalDatabase.row(identifier, keychain.domain, "../keychain-backup.plist", 1, [1]),
      valid + ExternalDatabase.row(wrong, keychain.domain, keychain.path, 1, [2]),
      "INSERT INTO Files VALUES ('\(identifier)', x'00', NULL, 'one', 7);",
    ]
    for rows in invalidRows {
      let error = #expect(throws: KeyhaulError.self) { try keychainRow(rows) }
      #expect(error?.code == .hostile)
    }
  }

  @Test("Rows are counted by type, and invalid rows are counted separately")
  func listing() throws {
    func row(_ domain: String, _ path: String, _ flags: Int) throws -> String {
      ExternalDatabase.row(SHA1.hash(Array("\(domain)-\(path)".utf8)).hex, domain, path, flags, nil)
    }
    let sql =
      try row("HomeDomain", "Library/a", 1) + row("HomeDomain", "Library", 2) + row("HomeDomain", "link", 4)
      + row("CameraRollDomain", "b", 0x29) + row("HomeDomain", "../../etc/passwd", 1)
      + row("HomeDomain", "/etc/passwd", 1) + row("Home/Domain", "x", 1)
      + ExternalDatabase.row("nothex", "HomeDomain", "x", 1, nil) + "INSERT INTO Files VALUES (NULL, 1, x'00', 'a', 3);"
    let listing = try open(try ExternalDatabase.bytes(ExternalDatabase.schema + sql)).listing(against: nil)
    #expect(listing.fileCount == 2)
    #expect(listing.directoryCount == 1)
    #expect(listing.linkCount == 1)
    #expect(listing.rowCountByDomain == ["HomeDomain": 3, "CameraRollDomain": 1])
    #expect(listing.inconsistentRowCount == 5)
  }

  @Test("A value can have the maximum size, but not more")
  func maximumValueByteCount() throws {
    // The limit includes the row's other columns and its header.
    let limit = Int(DatabaseLimits.manifest.valueByteCount)
    let identifier = KeychainPayload.fileIdentifier
    func rows(_ count: Int) -> String {
      "INSERT INTO Files VALUES ('\(identifier)', '\(keychain.domain)', '\(keychain.path)', 1, zeroblob(\(count)));"
    }
    #expect(try keychainRow(rows(limit - 200)) != nil)
    let error = #expect(throws: KeyhaulError.self) { try keychainRow(rows(limit + 1)) }
    #expect(error?.code == .overLimit)
  }
}

extension MaliciousSchema {
  fileprivate init(_ description: String, _ sql: String, _ reason: String) {
    self.init(description, sql, .hostile, reason)
  }
}
