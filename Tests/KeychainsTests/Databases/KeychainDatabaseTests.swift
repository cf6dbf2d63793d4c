import Basics
import KeychainCrypto
import KeychainFormats
import Keychains
import TestSupport
import Testing

@Suite("Reading keychain databases")
struct KeychainDatabaseTests {
  @Test("A database without its log has 12 items, all decrypted as in the test vectors")
  func withoutLog() throws {
    let database = try KeychainDatabase(file: DatabaseFile.bytes())
    #expect(database.schema?.major == 12 && database.schema?.minor == 11)
    #expect(database.journalStatus == .none)
    #expect(database.rows.map(\.version).filter { $0 == 8 }.count == 10)
    #expect(Set(database.wrappedMetadataKeys.keys.map(\.rawValue)) == Set(6...12))
    let expected = try TestVectors.database()["items"].elements
    #expect(expected.count == 12)
    try expect(database, toContain: expected)
  }

  @Test("A database may have as many rows as the limit and no more")
  func rowLimit() throws {
    let bytes = try DatabaseFile.bytes()
    #expect(try KeychainDatabase(file: bytes, log: [], acceptingAtMost: 12).rows.count == 12)
    let error = #expect(throws: KeyhaulError.self) {
      _ = try KeychainDatabase(file: bytes, log: [], acceptingAtMost: 11)
    }
    #expect(error?.code == .databaseOverLimit && KeychainDatabase.maximumItemCount == 200_000)
  }

  @Test("A database may have as many metadata keys as the limit and no more")
  func keyLimit() throws {
    func bytes(adding count: Int) throws -> [UInt8] {
      try DatabaseFile.changed(
        by: """
          WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < \(999 + count))
          INSERT INTO metadatakeys(keyclass, data) SELECT i, x'00' FROM n
          """)
    }
    // The database of the vectors has seven.
    #expect(try KeychainDatabase(file: bytes(adding: 993)).wrappedMetadataKeys.count == 1000)
    let error = try #require(throws: KeyhaulError.self) { _ = try KeychainDatabase(file: bytes(adding: 994)) }
    #expect(error.code == .databaseOverLimit && error.reason == "metadatakeys has more than 1000 rows")
  }

  @Test("A log that ends with an incomplete frame is applied, and its status says so")
  func truncatedLog() throws {
    let database = try KeychainDatabase(file: DatabaseFile.bytes(), log: DatabaseFile.log() + Array("more".utf8))
    #expect(database.journalStatus == .partiallyApplied && database.rows.count == 13)
  }

  @Test("A database with its log has 13 items, the last of them only in the log")
  func withLog() throws {
    let database = try KeychainDatabase(file: DatabaseFile.bytes(), log: DatabaseFile.log())
    #expect(database.journalStatus == .applied)
    let vectors = try TestVectors.database()
    try expect(database, toContain: vectors["items"].elements + vectors["wal"]["more_items"].elements)
  }

  @Test("A log that is truncated within its only transaction is ignored")
  func unfinishedTransaction() throws {
    let log = try DatabaseFile.log()
    for count in [1, 31, 32, 56, 500, log.count - 1] {
      let database = try KeychainDatabase(file: DatabaseFile.bytes(), log: Array(log.prefix(count)))
      #expect(database.journalStatus == .unreadable, "\(count)")
      #expect(database.rows.count == 12, "\(count)")
    }
  }

  @Test("A log with any changed byte is ignored")
  func damagedLog() throws {
    let log = try DatabaseFile.log()
    for offset in stride(from: 0, to: log.count, by: 97) {
      var changed = log
      changed[offset] ^= 0x40
      let database = try KeychainDatabase(file: DatabaseFile.bytes(), log: changed)
      #expect(database.journalStatus == .unreadable, "\(offset)")
      #expect(database.rows.count == 12, "\(offset)")
    }
  }

  @Test("A log with another page size belongs to another database and is not applied")
  func logOfOtherPages() throws {
    let other = try DatabaseFile.changed(by: "PRAGMA page_size = 4096; VACUUM")
    let database = try KeychainDatabase(file: other, log: DatabaseFile.log())
    #expect(database.journalStatus == .unrelated)
    #expect(database.rows.count == 12)
  }

  @Test("A log that would damage an intact database belongs to another one and is not applied")
  func logOfOtherDatabase() throws {
    let other = try DatabaseFile.changed(by: "DROP TABLE ckmirror; DROP TABLE outgoingqueue; VACUUM")
    let database = try KeychainDatabase(file: other, log: DatabaseFile.log())
    #expect(database.journalStatus == .unrelated)
    #expect(database.rows.count == 12)
  }

  @Test(
    "SQLite's check of all pages detects a log of another database with the same page size",
    arguments: [
      "DELETE FROM cert", "UPDATE genp SET data = zeroblob(9000) WHERE rowid = 1",
      "DELETE FROM ckmirror; DELETE FROM genp WHERE rowid > 3; PRAGMA incremental_vacuum",
    ])
  func logOfOtherContent(sql: String) throws {
    let database = try KeychainDatabase(file: DatabaseFile.changed(by: sql), log: DatabaseFile.log())
    #expect(database.journalStatus == .unrelated)
  }

  @Test("A digest column that differs from the item's digest is reported, and the item is kept")
  func otherDigest() throws {
    let changed = try DatabaseFile.changed(by: "UPDATE genp SET sha1 = x'00' WHERE rowid = 2")
    let database = try KeychainDatabase(file: changed)
    let opened = try database.decrypted(with: database.keys())
    #expect(opened.map(\.hasMatchingDigest) == opened.map { $0.row.kind != .genericPassword || $0.row.number != 2 })
  }

  @Test("Rows that cannot be decrypted are kept, each with its reason")
  func undecryptableRows() throws {
    let changed = try DatabaseFile.changed(
      by: """
        UPDATE genp SET data = x'0900000000' WHERE rowid = 1;
        UPDATE genp SET data = '' WHERE rowid = 2;
        DELETE FROM metadatakeys WHERE keyclass = '8';
        """)
    let database = try KeychainDatabase(file: changed)
    #expect(database.rows.count == 12)
    let verdicts = try database.decrypted(with: database.keys()).map(\.opened.verdict)
    #expect(verdicts.prefix(3) == [.unsupportedVersion, .malformed, .noClassKey])
    #expect(verdicts.filter { $0 == .open }.count == 8)
  }

  private func expect(_ database: KeychainDatabase, toContain expected: [TestVectors]) throws {
    let opened = try database.decrypted(with: database.keys())
    #expect(opened.count == expected.count)
    for vector in expected {
      let (table, number) = (try vector["table"].string, try vector["rowid"].integer)
      let found = try #require(opened.first { $0.row.kind.rawValue == table && $0.row.number == number })
      let location = Comment(rawValue: "\(table):\(number)")
      #expect(found.opened.verdict.rawValue == (try vector["verdict"].string), location)
      #expect(found.opened.findings.isEmpty, location)
      #expect(found.hasMatchingDigest == true, location)
      #expect(try found.row.version.map(Int.init) == vector["version"].integer, location)
      #expect(try found.row.digest == vector["sha1"].bytes, location)
      let item = try #require(found.opened.item, location)
      let attributes = try vector["attributes"].members.mapValues { try $0.property }
      #expect(Dictionary(uniqueKeysWithValues: item.attributes.map { ($0.rawValue, $1) }) == attributes, location)
      let secrets = try vector["secret"].members.mapValues { try $0["hex"].bytes }
      let foundSecrets = Dictionary(
        uniqueKeysWithValues: item.secrets.map { ($0.rawValue, $1.withBytes { Array($0) }) })
      #expect(foundSecrets == secrets, location)
    }
  }
}
