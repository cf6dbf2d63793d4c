import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Keychains

@Suite("Malicious keychain databases")
struct MaliciousDatabaseTests {
  /// Returns the error code of an attempt to read a database, or `nil` if the database is read.
  private func errorCode(_ file: [UInt8], limit: Int = 1000) -> KeyhaulError.Code? {
    do throws(KeyhaulError) {
      _ = try KeychainDatabase(file: file, log: [], acceptingAtMost: limit)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("Files that are not keychain databases are rejected")
  func otherFiles() throws {
    #expect(errorCode([]) == .notADatabase)
    #expect(errorCode(Array("{}".utf8)) == .notADatabase)
    #expect(errorCode(Array("SQLite format 3\0".utf8)) == .notADatabase)
    let dropTables = "DROP TABLE genp; DROP TABLE inet; DROP TABLE cert; DROP TABLE keys"
    #expect(errorCode(try DatabaseFile.changed(by: dropTables)) == .unknownDatabase)
  }

  @Test("If checking the indexes exceeds the CPU time limit, they count as damaged")
  func indexes() throws {
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
    let file = try DatabaseFile.changed(
      by: "CREATE TABLE t(a); CREATE INDEX i ON t(a); INSERT INTO t \(rows) SELECT i FROM n")
    let database = try KeychainConnection(DatabaseImage(file))
    #expect(try database.indexState() == .sound)
    #expect(try database.indexState(within: 0) == .damaged)
    #expect(try database.indexState() == .sound)
  }

  @Test(
    "Indexes with expressions are not checked, because the check would run the expressions",
    arguments: ["genp(lower(svce))", "genp(svce) WHERE length(svce) > 3"])
  func computedIndex(definition: String) throws {
    let file = try DatabaseFile.changed(by: "CREATE INDEX i ON \(definition)")
    #expect(try KeychainDatabase(file: file).indexState == .unchecked)
  }

  @Test("An additional index of a column is checked")
  func plainIndex() throws {
    let file = try DatabaseFile.changed(by: "CREATE INDEX i ON genp(svce)")
    #expect(try KeychainDatabase(file: file).indexState == .sound)
  }

  @Test("If a database lacks an item table, the other tables are read and the missing table is listed")
  func missingTable() throws {
    let database = try KeychainDatabase(file: DatabaseFile.changed(by: "DROP TABLE keys"))
    #expect(database.missingTables == [.key] && database.rows.count == 10)
  }

  @Test("A view in place of an item table is never read")
  func view() throws {
    let changedFile = try DatabaseFile.changed(
      by: """
        ALTER TABLE genp RENAME TO hidden;
        CREATE VIEW genp AS SELECT rowid, data, sha1 FROM hidden;
        """)
    let database = try KeychainDatabase(file: changedFile)
    #expect(database.missingTables == [.genericPassword] && !database.rows.contains { $0.kind == .genericPassword })
  }

  @Test("A database with a computed column is rejected")
  func computedColumn() throws {
    let file = try DatabaseFile.changed(by: "ALTER TABLE genp ADD COLUMN more AS (zeroblob(1000000)) VIRTUAL")
    #expect(errorCode(file) == .databaseDamaged)
  }

  @Test("A trigger in a database has no effect")
  func trigger() throws {
    let file = try DatabaseFile.changed(by: "CREATE TRIGGER harm AFTER INSERT ON genp BEGIN DELETE FROM genp; END")
    #expect(try KeychainDatabase(file: file).rows.count == 12)
  }

  @Test("A truncated database is rejected")
  func truncated() throws {
    let intact = try DatabaseFile.bytes()
    for count in stride(from: 512, to: intact.count, by: 5 * 512) {
      #expect(errorCode(Array(intact.prefix(count))) == .databaseDamaged, "\(count)")
    }
    #expect(errorCode(Array(intact.prefix(99))) == .notADatabase)
  }

  @Test("The number of items in a database is limited")
  func itemLimit() throws {
    #expect(errorCode(try DatabaseFile.bytes(), limit: 12) == nil)
    #expect(errorCode(try DatabaseFile.bytes(), limit: 11) == .databaseOverLimit)
  }

  @Test("A file of zeros is not a log")
  func logOfZeros() {
    #expect(WriteAheadLog([UInt8](repeating: 0, count: 4096)) == nil)
  }

  @Test("A database with a changed byte is read or rejected without ending the program")
  func changedBytes() throws {
    let intact = try DatabaseFile.bytes()
    for offset in stride(from: 16, to: intact.count, by: 1009) {
      var changedFile = intact
      changedFile[offset] ^= 0xFF
      let database = try? KeychainDatabase(file: changedFile)
      // The intact database has 12 rows. A damaged page may repeat one.
      #expect((database?.rows.count ?? 0) <= 13, "\(offset)")
    }
  }
}
