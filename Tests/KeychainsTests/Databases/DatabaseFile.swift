import Basics
import CSQLite
import Foundation
import TestSupport

/// The database of the test vectors, and modified copies of it.
enum DatabaseFile {
  /// The database, which has 12 items.
  static func bytes() throws -> [UInt8] { try TestVectors.database()["base64"].base64Bytes }
  /// The log of the database, which adds a thirteenth item.
  static func log() throws -> [UInt8] { try TestVectors.database()["wal"]["base64"].base64Bytes }

  struct SQLiteFailure: Error { let message: String }

  /// Returns a copy of the database that another program has changed, without a log.
  static func changed(by sql: String) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    let path = directory.url.appending(path: "changed.db")
    try Data(bytes()).write(to: path)
    try execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE; \(sql)", at: path.path)
    return try [UInt8](Data(contentsOf: path))
  }

  /// Runs statements on a database file, which is created if necessary.
  static func execute(_ sql: String, at path: String) throws {
    var connection: OpaquePointer?
    defer { sqlite3_close_v2(connection) }
    guard sqlite3_open(path, &connection) == SQLITE_OK, sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
      throw SQLiteFailure(message: sqlite3_errmsg(connection).map { String(cString: $0) } ?? "")
    }
  }
}
