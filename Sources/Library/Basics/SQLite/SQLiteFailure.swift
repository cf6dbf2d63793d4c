import CSQLite
package import SystemPackage

/// A failure of SQLite. The code that opened the database converts it to its target's error.
package struct SQLiteFailure: Error {
  /// The kind of a failure.
  package enum Kind: Sendable {
    case cannotOpen, oldLibrary, refusedValue, noMemory, tooBig, notADatabase, corrupt, busy, readOnly, disk, other
  }

  /// The kind of the failure.
  package let kind: Kind
  /// SQLite's message about this database. It may contain names from the database.
  package let message: String
  /// The reason, with nothing from the database.
  package let reason: String
  /// The system's error; `nil` if the system reported none.
  package let systemError: Errno?

  /// The system's error, or the lack of memory; `nil` if it was neither.
  package var errno: Errno? { kind == .noMemory ? .noMemory : systemError }

  /// Creates a failure from a result of `integrity_check` that reports a lack of memory.
  ///
  /// Rows about an index are ignored, because they end in the index's name, which may be any text.
  ///
  /// - Parameter checkResult: A row of the check. It ends in SQLite's result code, such as "unable to get the page.
  ///   error code=7" (`SQLITE_NOMEM`).
  /// - Returns: `nil` if the row reports anything else. Source: SQLite, `btree.c` (`checkTreePage`).
  package init?(checkResult: String) {
    guard !checkResult.contains("index"), checkResult.hasSuffix("error code=7") || checkResult.hasSuffix("error code 7")
    else { return nil }
    self.init(.noMemory, "SQLite says: out of memory")
  }

  static var noMemoryForCopy: Self { Self(.noMemory, "not enough memory for a copy of the database") }

  init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    message = reason
    self.reason = reason
    systemError = nil
  }

  init(_ result: Int32, of connection: OpaquePointer?, isOpening: Bool = false) {
    // The higher bits contain details.
    let result = result & 0xFF
    let kind: Kind =
      switch result {
      case SQLITE_NOMEM: .noMemory
      case SQLITE_TOOBIG: .tooBig
      case SQLITE_NOTADB: .notADatabase
      case SQLITE_CORRUPT: .corrupt
      case SQLITE_BUSY, SQLITE_LOCKED: .busy
      case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM: .readOnly
      case SQLITE_IOERR, SQLITE_FULL: .disk
      default: isOpening ? .cannotOpen : .other
      }
    self.kind = kind
    message = connection.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? "SQLite gave no reason"
    reason = sqlite3_errstr(result).map { "SQLite says: \(String(cString: $0))" } ?? "SQLite gave no reason"
    let errorNumber = kind == .readOnly || kind == .disk ? sqlite3_system_errno(connection) : 0
    systemError = errorNumber == 0 ? nil : Errno(rawValue: errorNumber)
  }
}
