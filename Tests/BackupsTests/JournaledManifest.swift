import CSQLite
import Foundation
import TestSupport

/// A `Manifest.db` with the journals that SQLite writes while the database is open.
struct JournaledManifest {
  let database: [UInt8]
  /// The log, empty if the change left none.
  let log: [UInt8]
  let journal: [UInt8]

  /// Runs statements on a manifest, and copies its files before the connection is closed.
  init(_ manifest: [UInt8], _ sql: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("Manifest.db")
    try directory.write(manifest, to: "Manifest.db")
    var connection: OpaquePointer?
    defer { sqlite3_close(connection) }
    guard sqlite3_open(path, &connection) == SQLITE_OK, sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
      throw ExternalDatabase.Failure(message: String(cString: sqlite3_errmsg(connection)))
    }
    database = try directory.read("Manifest.db")
    log = (try? directory.read("Manifest.db-wal")) ?? []
    journal = (try? directory.read("Manifest.db-journal")) ?? []
  }

  /// Moves the rows of two paths to the log, with a commit for each.
  static func moving(_ first: String, _ second: String, of manifest: [UInt8]) throws -> JournaledManifest {
    let late = "relativePath IN ('\(first)', '\(second)')"
    let insert = ["\(first)", "\(second)"].map { "INSERT INTO Files SELECT * FROM late WHERE relativePath = '\($0)';" }
    return try JournaledManifest(
      manifest,
      """
      CREATE TEMP TABLE late AS SELECT * FROM Files WHERE \(late); DELETE FROM Files WHERE \(late); VACUUM;
      PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; \(insert.joined())
      """)
  }

  /// Leaves a change that exceeded SQLite's cache unfinished, so that a part of it is in the file.
  static func unfinished(_ manifest: [UInt8]) throws -> JournaledManifest {
    try JournaledManifest(
      manifest,
      """
      PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; DELETE FROM Files;
      WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      INSERT INTO Files SELECT i, 'HomeDomain', 'new' || i, 1, zeroblob(900) FROM n;
      """)
  }

  /// Returns the ends of the commits in a log. Source: SQLite, "Database File Format", section 4.1.
  static func commitEnds(_ log: [UInt8]) -> [Int] {
    let page = Int(log[8]) << 24 | Int(log[9]) << 16 | Int(log[10]) << 8 | Int(log[11])
    return stride(from: 32, to: log.count, by: 24 + page).compactMap { frame in
      log[frame + 4..<frame + 8].contains { $0 != 0 } ? frame + 24 + page : nil
    }
  }
}
