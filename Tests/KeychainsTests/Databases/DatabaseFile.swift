import Basics
import CSQLite
import Foundation
import TestSupport

/// The database of the test vectors, and modified copies of it.
enum DatabaseFile {
  static func bytes() throws -> [UInt8] { try TestVectors.database()["base64"].base64Bytes }
  static func log() throws -> [UInt8] { try TestVectors.database()["wal"]["base64"].base64Bytes }

  struct SQLiteFailure: Error { let message: String }

  /// Returns a copy of the database that another program has changed, without a log.
  static func changed(by sql: String) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    let path = directory.url.appending(path: "changed.db")
    try Data(bytes()).write(to: path)
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    let all = "PRAGMA synchronous = OFF; PRAGMA journal_mode = DELETE; \(sql)"
    guard sqlite3_open(path.path, &handle) == SQLITE_OK, sqlite3_exec(handle, all, nil, nil, nil) == SQLITE_OK else {
      throw SQLiteFailure(message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "")
    }
    return try [UInt8](Data(contentsOf: path))
  }
}
