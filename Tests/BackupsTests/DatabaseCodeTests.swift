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
  /// `BEFORE INSERT`, `BEFORE UPDATE`, and so on.
  private static let triggerEvents = ["BEFORE", "AFTER"].flatMap { time in
    ["INSERT", "UPDATE", "DELETE"].map { change in "\(time) \(change)" }
  }
  private static let row = ExternalDatabase.row(
    KeychainPayload.fileIdentifier, domain: "KeychainDomain", path: "x", record: [1])

  /// Returns the SQL of the manifest's schema with a declaration for one of the columns.
  private static func schema(declaring column: String, _ declaration: String) -> String {
    let columnList: String = columns.map { $0 == column ? "\($0) \(declaration)" : $0 }.joined(separator: ", ")
    return "CREATE TABLE Files (\(columnList)); CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);"
  }

  /// Returns the SQL that adds a row, with the default value in one of the columns.
  private static func insertion(omitting column: String) -> String {
    let otherColumns = columns.filter { $0 != column }.joined(separator: ", ")
    return "INSERT INTO Files (\(otherColumns)) VALUES ('a', 'b', 'c', 'd');"
  }

  private static let valid: String = ExternalDatabase.schema + row

  private static let triggers: [String] = triggerEvents.map { event in
    "\(valid) CREATE TRIGGER t \(event) ON Files BEGIN SELECT canary(1); END"
  }

  private static let filesView: String = {
    let computed: String = columns.map { "canary('\($0)') AS \($0)" }.joined(separator: ", ")
    return "CREATE VIEW Files AS SELECT \(computed)"
  }()

  /// The SQL of each manifest database.
  static let manifests: [String] = {
    var statements: [String] = triggers + [filesView]
    statements.append("\(valid) CREATE VIEW v AS SELECT canary(fileID) FROM Files")
    let endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT canary(n) FROM r) SELECT * FROM r"
    statements.append("\(valid) CREATE VIEW v AS \(endless)")
    let insteadOfTrigger = "CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN SELECT canary(1); END"
    statements.append("\(valid) CREATE VIEW v AS SELECT 1 AS x; \(insteadOfTrigger)")
    let properties = "CREATE VIEW Properties AS SELECT canary(1) AS key, canary(2) AS value"
    statements.append("\(valid) DROP TABLE Properties; \(properties)")
    for column in columns {
      statements.append(schema(declaring: column, "AS (canary(1)) VIRTUAL") + insertion(omitting: column))
      statements.append(schema(declaring: column, "AS (canary(1)) STORED") + insertion(omitting: column))
      statements.append(schema(declaring: column, "CHECK (canary(\(column)))") + row)
      statements.append(schema(declaring: column, "DEFAULT (canary(1))") + insertion(omitting: column))
      statements.append("\(valid) CREATE INDEX i ON Files(canary(\(column)))")
      statements.append("\(valid) CREATE INDEX i ON Files(\(column)) WHERE canary(\(column))")
    }
    return statements
  }()

  /// The SQL that adds code to a keychain database.
  static let keychains: [String] = {
    var statements: [String] = []
    for table in ItemKind.allCases.map(\.rawValue) {
      for event in triggerEvents {
        statements.append("CREATE TRIGGER t \(event) ON \(table) BEGIN SELECT canary(1); END")
      }
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
    try #require(CanaryFunction.isRegistered)
    let bytes = try ExternalDatabase.bytes(sql)
    let calls = CanaryFunction.calls {
      let database = try? ManifestDatabase(try DatabaseBytes(try SpooledData(bytes)))
      _ = try? database?.listing(against: nil)
      _ = try? database?.file(domain: "KeychainDomain", relativePath: "x")
    }
    #expect(calls == 0)
  }

  @Test(
    "A keychain of a Simulator, device, or Mac with code in one of 40 forms executes none of it", arguments: keychains)
  func keychain(sql: String) throws {
    try #require(CanaryFunction.isRegistered)
    let directory = try TemporaryDirectory()
    let file = try directory.write(try TestVectors.database()["base64"].base64Bytes, to: "keychain.db")
    try Self.run("PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE; \(sql)", on: file.path)
    let bytes = try directory.read("keychain.db")
    #expect(CanaryFunction.calls { _ = try? KeychainDatabase(file: bytes) } == 0)
  }

  @Test("The numbers of tested forms are those in the titles of the tests")
  func counts() {
    #expect(Self.manifests.count == 41 && Self.keychains.count == 40)
  }

  @Test("The canary detects each kind of trigger", arguments: triggers)
  func triggerIsDetected(sql: String) throws {
    try #require(CanaryFunction.isRegistered)
    let directory = try TemporaryDirectory()
    let path = directory.path("list.db")
    try Self.run(sql, on: path)
    let changes = "INSERT INTO Files (fileID) VALUES ('z'); UPDATE Files SET flags = 2; DELETE FROM Files"
    #expect(try CanaryFunction.calls { try Self.run(changes, on: path) } > 0)
  }

  @Test("The canary detects a query of a view")
  func viewIsDetected() throws {
    try #require(CanaryFunction.isRegistered)
    let directory = try TemporaryDirectory()
    let path = directory.path("list.db")
    try Self.run(Self.filesView, on: path)
    #expect(try CanaryFunction.calls { try Self.run("SELECT * FROM Files", on: path) } > 0)
  }

  private static func run(_ sql: String, on path: String) throws {
    var connection: OpaquePointer?
    defer { sqlite3_close_v2(connection) }
    guard sqlite3_open(path, &connection) == SQLITE_OK, sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
      throw ExternalDatabase.Failure(message: sqlite3_errmsg(connection).map { String(cString: $0) } ?? "")
    }
  }
}
