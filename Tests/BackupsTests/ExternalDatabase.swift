import Backups
import Basics
import CSQLite
import TestSupport

/// Creates SQLite databases with SQLite itself, not with the builder that `Backups` uses.
enum ExternalDatabase {
  static let schema = """
    CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB);
    CREATE INDEX FilesDomainIdx ON Files(domain);
    CREATE INDEX FilesRelativePathIdx ON Files(relativePath);
    CREATE INDEX FilesFlagsIdx ON Files(flags);
    CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB);
    """

  struct Failure: Error {
    let message: String
  }

  /// Returns the file of a database that SQL statements created.
  static func bytes(_ sql: String) throws -> [UInt8] {
    var connection: OpaquePointer?
    defer { sqlite3_close(connection) }
    guard sqlite3_open(":memory:", &connection) == SQLITE_OK, sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK
    else { throw Failure(message: String(cString: sqlite3_errmsg(connection))) }
    var size: Int64 = 0
    guard let memory = sqlite3_serialize(connection, "main", &size, 0) else { throw Failure(message: "no memory") }
    defer { sqlite3_free(memory) }
    return Array(UnsafeBufferPointer(start: memory, count: Int(size)))
  }

  /// Returns the SQL that adds a row to the table `Files`.
  ///
  /// - Parameter flags: The type: 1 for a file, 2 for a directory, 4 for a link.
  static func row(
    _ identifier: String, domain: String, path: String, flags: Int = 1, record: [UInt8]? = nil
  ) -> String {
    let blob = record.map { "x'\($0.hex)'" } ?? "NULL"
    let names = [domain, path].map { name in
      let bytes = FileTreeBackup.bytes(name)
      // A name that stands for bytes other than UTF-8 is written in hexadecimal.
      return bytes == Array(name.utf8) ? "'\(name)'" : "CAST(x'\(bytes.hex)' AS TEXT)"
    }
    return "INSERT INTO Files VALUES ('\(identifier)', \(names[0]), \(names[1]), \(flags), \(blob));"
  }

  /// Returns the SQL that adds the row of the keychain file.
  static func keychainRow(flags: Int = 1, record: [UInt8]? = nil) -> String {
    row(
      KeychainPayload.fileIdentifier, domain: KeychainPayload.domain, path: KeychainPayload.relativePath, flags: flags,
      record: record)
  }
}
