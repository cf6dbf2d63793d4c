import Basics
import CSQLite
import Foundation
import KeychainFormats
import Keychains
import TestSupport
import Testing

@testable import Backups

@Suite("Databases that contain code", .serialized)
struct DatabaseCodeTests {
  private static let columns = ["fileID", "domain", "relativePath", "flags", "file"]
  private static let moments = ["BEFORE", "AFTER"].flatMap { when in
    ["INSERT", "UPDATE", "DELETE"].map { "\(when) \($0)" }
  }
  private static let row = ExternalDatabase.row(KeychainPayload.fileIdentifier, "KeychainDomain", "x", 1, [1])

  /// Returns the schema of the manifest with another column declaration.
  private static func schema(with column: String, _ declaration: String) -> String {
    let all: String = columns.map { $0 == column ? "\($0) \(declaration)" : $0 }.joined(separator: ", ")
    return "CREATE TABLE Files (\(all)); CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);"
  }

  private static func inserting(without column: String) -> String {
    let others = columns.filter { $0 != column }.joined(separator: ", ")
    return "INSERT INTO Files (\(others)) VALUES ('a', 'b', 'c', 'd');"
  }

  static let manifests: [String] = {
    let valid: String = ExternalDatabase.schema + row
    var statements: [String] = moments.map { "\(valid) CREATE TRIGGER t \($0) ON Files BEGIN SELECT canary(1); END" }
    let computed: String = columns.map { "canary('\($0)') AS \($0)" }.joined(separator: ", ")
    statements.append("CREATE VIEW Files AS SELECT \(computed)")
    statements.append("\(valid) CREATE VIEW v AS SELECT canary(fileID) FROM Files")
    let endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT canary(n) FROM r) SELECT * FROM r"
    statements.append("\(valid) CREATE VIEW v AS \(endless)")
    let insteadOfTrigger = "CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN SELECT canary(1); END"
    statements.append("\(valid) CREATE VIEW v AS SELECT 1 AS x; \(insteadOfTrigger)")
    let properties = "CREATE VIEW Properties AS SELECT canary(1) AS key, canary(2) AS value"
    statements.append("\(valid) DROP TABLE Properties; \(properties)")
    for column in columns {
      statements.append(schema(with: column, "AS (canary(1)) VIRTUAL") + inserting(without: column))
      statements.append(schema(with: column, "AS (canary(1)) STORED") + inserting(without: column))
      statements.append(schema(with: column, "CHECK (canary(\(column)))") + row)
      statements.append(schema(with: column, "DEFAULT (canary(1))") + inserting(without: column))
      statements.append("\(valid) CREATE INDEX i ON Files(canary(\(column)))")
      statements.append("\(valid) CREATE INDEX i ON Files(\(column)) WHERE canary(\(column))")
    }
    return statements
  }()

  static let keychains: [String] = {
    var statements: [String] = []
    for table in ItemKind.allCases.map(\.rawValue) {
      for moment in moments { statements.append("CREATE TRIGGER t \(moment) ON \(table) BEGIN SELECT canary(1); END") }
      let view = "CREATE VIEW \(table) AS SELECT rowid, canary(data) AS data FROM hidden"
      statements.append("ALTER TABLE \(table) RENAME TO hidden; \(view)")
      statements.append("ALTER TABLE \(table) ADD COLUMN more AS (canary(data)) VIRTUAL")
      statements.append("CREATE INDEX i ON \(table)(canary(data))")
      statements.append("CREATE INDEX i ON \(table)(data) WHERE canary(data)")
    }
    return statements
  }()

  @Test("A manifest with code in one of 41 forms executes none of it", arguments: manifests)
  func manifest(sql: String) throws {
    try #require(CanaryFunction.isSet)
    let bytes = try ExternalDatabase.bytes(sql)
    let calls = CanaryFunction.calls {
      let opened = try? ManifestDatabase(try DatabaseBytes(try SpooledData(bytes)))
      _ = try? opened?.listing(against: nil)
      _ = try? opened?.file(domain: "KeychainDomain", relativePath: "x")
    }
    #expect(calls == 0)
  }

  @Test(
    "A keychain of a Simulator, device, or Mac with code in one of 40 forms executes none of it", arguments: keychains)
  func keychain(sql: String) throws {
    try #require(CanaryFunction.isSet)
    let directory = try TemporaryDirectory()
    let file = try directory.write(try TestVectors.database()["base64"].base64Bytes, to: "keychain.db")
    try Self.run("PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE; \(sql)", on: file.path)
    let changed = try directory.read("keychain.db")
    #expect(CanaryFunction.calls { _ = try? KeychainDatabase(file: changed) } == 0)
  }

  @Test("The canary detects queries of a view and added rows")
  func control() throws {
    try #require(CanaryFunction.isSet)
    let directory = try TemporaryDirectory()
    let path = directory.path("list.db")
    let change = "INSERT INTO Files (fileID) VALUES ('z'); UPDATE Files SET flags = 2; DELETE FROM Files"
    // Six databases with triggers, and one with a view.
    for (index, sql) in Self.manifests.prefix(7).enumerated() {
      let file = "\(path)\(index)"
      try Self.run(sql, on: file)
      let calls = try CanaryFunction.calls { try Self.run(index == 6 ? "SELECT * FROM Files" : change, on: file) }
      #expect(calls > 0, "\(sql.suffix(80))")
    }
    #expect(Self.manifests.count == 41 && Self.keychains.count == 40)
  }

  private static func run(_ sql: String, on path: String) throws {
    var connection: OpaquePointer?
    defer { sqlite3_close_v2(connection) }
    guard sqlite3_open(path, &connection) == SQLITE_OK, sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
      throw ExternalDatabase.Failure(message: sqlite3_errmsg(connection).map { String(cString: $0) } ?? "")
    }
  }
}
