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
    let existingCount = 7
    func bytes(keyCount: Int) throws -> [UInt8] {
      try DatabaseFile.changed(
        by: """
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(keyCount - existingCount))
          INSERT INTO metadatakeys(keyclass, data) SELECT 1000 + i, x'00' FROM n
          """)
    }
    #expect(try KeychainDatabase(file: bytes(keyCount: 1000)).wrappedMetadataKeys.count == 1000)
    let error = try #require(throws: KeyhaulError.self) { _ = try KeychainDatabase(file: bytes(keyCount: 1001)) }
    #expect(error.code == .databaseOverLimit && error.reason == "metadatakeys has more than 1000 rows")
  }

  @Test("A log that ends with an incomplete frame counts as partially applied")
  func truncatedLog() throws {
    let database = try KeychainDatabase(file: DatabaseFile.bytes(), log: DatabaseFile.log() + Array("more".utf8))
    #expect(database.journalStatus == .partiallyApplied && database.rows.count == 13)
  }

  @Test("A database with its log has 13 items, and the last one is only in the log")
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
      var changedLog = log
      changedLog[offset] ^= 0x40
      let database = try KeychainDatabase(file: DatabaseFile.bytes(), log: changedLog)
      #expect(database.journalStatus == .unreadable, "\(offset)")
      #expect(database.rows.count == 12, "\(offset)")
    }
  }

  @Test("A log with a different page size belongs to another database and is not applied")
  func logOfOtherPages() throws {
    let otherFile = try DatabaseFile.changed(by: "PRAGMA page_size = 4096; VACUUM")
    let database = try KeychainDatabase(file: otherFile, log: DatabaseFile.log())
    #expect(database.journalStatus == .unrelated)
    #expect(database.rows.count == 12)
  }

  @Test("A log that would damage an intact database belongs to another database and is not applied")
  func logOfOtherDatabase() throws {
    let otherFile = try DatabaseFile.changed(by: "DROP TABLE ckmirror; DROP TABLE outgoingqueue; VACUUM")
    let database = try KeychainDatabase(file: otherFile, log: DatabaseFile.log())
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
    let changedFile = try DatabaseFile.changed(by: "UPDATE genp SET sha1 = x'00' WHERE rowid = 2")
    let database = try KeychainDatabase(file: changedFile)
    for decrypted in try database.decrypted(with: database.keys()) {
      let isChanged = decrypted.row.kind == .genericPassword && decrypted.row.number == 2
      #expect(decrypted.hasMatchingDigest == !isChanged, "\(decrypted.row.kind) \(decrypted.row.number)")
    }
  }

  @Test("Rows that cannot be decrypted are kept, each with its reason")
  func undecryptableRows() throws {
    let changedFile = try DatabaseFile.changed(
      by: """
        UPDATE genp SET data = x'0900000000' WHERE rowid = 1;
        UPDATE genp SET data = '' WHERE rowid = 2;
        DELETE FROM metadatakeys WHERE keyclass = '8';
        """)
    let database = try KeychainDatabase(file: changedFile)
    #expect(database.rows.count == 12)
    let verdicts = try database.decrypted(with: database.keys()).map(\.result.verdict)
    #expect(verdicts.prefix(3) == [.unsupportedVersion, .malformed, .noClassKey])
    #expect(verdicts.filter { $0 == .open }.count == 8)
  }

  /// Checks that a database has exactly the rows of test vectors.
  private func expect(_ database: KeychainDatabase, toContain vectors: [TestVectors]) throws {
    let rows = try database.decrypted(with: database.keys())
    #expect(rows.count == vectors.count)
    for vector in vectors {
      let (table, number) = (try vector["table"].string, try vector["rowid"].integer)
      let decrypted = try #require(rows.first { $0.row.kind.rawValue == table && $0.row.number == number })
      let location = Comment(rawValue: "\(table):\(number)")
      #expect(decrypted.result.verdict.rawValue == (try vector["verdict"].string), location)
      #expect(decrypted.result.findings.isEmpty, location)
      #expect(decrypted.hasMatchingDigest == true, location)
      #expect(try decrypted.row.version.map(Int.init) == vector["version"].integer, location)
      #expect(try decrypted.row.digest == vector["sha1"].bytes, location)
      let item = try #require(decrypted.result.item, location)
      try expect(item, toEqual: vector, at: location)
    }
  }

  private func expect(_ item: KeychainItem, toEqual vector: TestVectors, at location: Comment) throws {
    let attributes = Dictionary(uniqueKeysWithValues: item.attributes.map { ($0.rawValue, $1) })
    let expectedAttributes = try vector["attributes"].members.mapValues { try $0.property }
    #expect(attributes == expectedAttributes, location)
    let secrets = Dictionary(uniqueKeysWithValues: item.secrets.map { ($0.rawValue, $1.withBytes { Array($0) }) })
    let expectedSecrets = try vector["secret"].members.mapValues { try $0["hex"].bytes }
    #expect(secrets == expectedSecrets, location)
  }
}
