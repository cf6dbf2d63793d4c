import CSQLite
import Foundation
import TestSupport

/// A `Manifest.db` with the journals that SQLite writes while the database is open.
struct JournaledManifest {
  let database: [UInt8]
  /// `Manifest.db-wal`, empty if there is none.
  let log: [UInt8]
  /// `Manifest.db-journal`, empty if there is none.
  let journal: [UInt8]

  /// Runs statements on a manifest, and copies its files before the connection is closed.
  init(_ manifest: [UInt8], running sql: String) throws {
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
    let isMoved = "relativePath IN ('\(first)', '\(second)')"
    return try JournaledManifest(
      manifest,
      running: """
        CREATE TEMP TABLE moved AS SELECT * FROM Files WHERE \(isMoved);
        DELETE FROM Files WHERE \(isMoved);
        VACUUM;
        PRAGMA journal_mode = WAL;
        PRAGMA wal_autocheckpoint = 0;
        INSERT INTO Files SELECT * FROM moved WHERE relativePath = '\(first)';
        INSERT INTO Files SELECT * FROM moved WHERE relativePath = '\(second)';
        """)
  }

  /// Makes a change without a commit. The change exceeds SQLite's cache, so that a part of it is in the file.
  static func withUncommittedChange(_ manifest: [UInt8]) throws -> JournaledManifest {
    try JournaledManifest(
      manifest,
      running: """
        PRAGMA cache_size = 2;
        PRAGMA cache_spill = 1;
        BEGIN IMMEDIATE;
        DELETE FROM Files;
        WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO Files SELECT i, 'HomeDomain', 'new' || i, 1, zeroblob(900) FROM n;
        """)
  }

  static let logHeaderByteCount = 32
  static let frameHeaderByteCount = 24

  /// Returns the offsets at which the commits of a log end.
  ///
  /// A log is a header with the page size at offset 8, and frames: a header and a page. The frame header has at offset
  /// 4 the size of the database after a commit, or zero in a frame without a commit.
  ///
  /// Source: SQLite, "Database File Format", section 4.1.
  static func commitEnds(in log: [UInt8]) -> [Int] {
    let pageByteCount = log[8..<12].reduce(0) { $0 << 8 | Int($1) }
    let frameByteCount = frameHeaderByteCount + pageByteCount
    let frames = stride(from: logHeaderByteCount, to: log.count, by: frameByteCount)
    let commits = frames.filter { frame in log[frame + 4..<frame + 8].contains { $0 != 0 } }
    return commits.map { $0 + frameByteCount }
  }
}
