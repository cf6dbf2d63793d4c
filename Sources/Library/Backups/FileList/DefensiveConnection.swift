import Basics
import CSQLite
import KeychainFormats
import SystemPackage

/// A read-only connection to a database from outside, with every door of SQL shut.
///
/// Not to be used from two threads at once. Source: SQLite, "Defense Against The Dark Arts" (untrusted database files).
package final class DefensiveConnection {
  private let handle: OpaquePointer
  private let reader: DatabaseBytes.Reader

  package init(_ bytes: DatabaseBytes) throws(BackupArchiveError) {
    reader = try bytes.reader()
    let opened = DatabaseFileSystem.open(reader)
    guard opened.code == SQLITE_OK, let connection = opened.connection else {
      sqlite3_close_v2(opened.connection)
      if let refusal = reader.refusal { throw refusal }
      if opened.code == SQLITE_NOMEM {
        throw BackupArchiveError(.unreadable, "the manifest database: out of memory", of: .noMemory)
      }
      throw BackupArchiveError(.damaged, "the manifest database cannot be opened")
    }
    handle = connection
    try Self.forbidComputation(of: connection)
    for setting in Self.settings { try forEachRow(setting) { _ in } }
  }

  /// Why the system refused to read the database, if it did.
  package var refusal: BackupArchiveError? { reader.refusal }

  /// Takes away every way in which a foreign database could have something computed or loaded.
  package static func forbidComputation(of connection: OpaquePointer) throws(BackupArchiveError) {
    for (option, value) in Self.switches {
      guard keyhaul_sqlite3_switch(connection, option, value) == SQLITE_OK else {
        throw BackupArchiveError(.unreadable, "this version of SQLite is too old to read an untrusted database safely")
      }
    }
    for (limit, value) in Self.limits { sqlite3_limit(connection, limit, value) }
  }

  deinit { sqlite3_close_v2(handle) }

  /// Runs one query and lends its rows. The values of a row are valid until the closure returns.
  package func forEachRow(
    _ sql: String, _ arguments: [String] = [], _ body: (borrowing ForeignRow) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    let statement = try prepared(sql)
    defer { sqlite3_finalize(statement) }
    for (index, argument) in arguments.enumerated() {
      let bound = sqlite3_bind_text(
        statement, Int32(index) + 1, argument, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
      guard bound == SQLITE_OK else { throw failure() }
    }
    try step(statement, body)
  }

  /// Runs SQLite's own check of every page, row and index entry, and returns the first fault; `nil` if there is none.
  ///
  /// A malicious index can make the lookup of its entries take hours. The limit is long enough for every database that
  /// a device writes.
  ///
  /// - Parameter limit: The most CPU time, in nanoseconds; by default many times what a device's database needs.
  package func firstFault(within limit: Int64? = nil) throws(BackupArchiveError) -> String? {
    var deadline = keyhaul_sqlite3_cpu_time() + (limit ?? Self.checkTime(ofByteCount: reader.byteCount))
    return try withUnsafeMutablePointer(to: &deadline) { (deadline) throws(BackupArchiveError) -> String? in
      keyhaul_sqlite3_limit_time(handle, deadline)
      defer { keyhaul_sqlite3_limit_time(handle, nil) }
      var result: String?
      do throws(BackupArchiveError) {
        try forEachRow("PRAGMA integrity_check(1)") { result = $0.text(0) }
      } catch {
        guard sqlite3_errcode(handle) != SQLITE_INTERRUPT else { return "its indexes take too long to check" }
        guard error.code == .damaged else { throw error }
        return error.reason
      }
      return result == "ok" ? nil : result ?? "no result"
    }
  }

  /// Returns the limit in nanoseconds of CPU time: 5 s, and 1 ms for each page of 4 KiB. 300,000 rows with their
  /// indexes took 1.2 s of 50 s.
  private static func checkTime(ofByteCount byteCount: Int) -> Int64 {
    5_000_000_000 + Int64(byteCount / 4096) * 1_000_000
  }

  /// A query that is asked again and again, each time with another number.
  package final class NumberQuery {
    private let connection: DefensiveConnection
    private let statement: OpaquePointer

    /// - Parameter sql: With `?1` for the number.
    package init(_ connection: DefensiveConnection, _ sql: String) throws(BackupArchiveError) {
      self.connection = connection
      statement = try connection.prepared(sql)
    }

    deinit { sqlite3_finalize(statement) }

    /// Lends the rows for a number, as `DefensiveConnection.forEachRow` does.
    package func forEachRow(
      _ number: Int64, _ body: (borrowing ForeignRow) throws(BackupArchiveError) -> Void
    ) throws(BackupArchiveError) {
      defer { sqlite3_reset(statement) }
      guard sqlite3_bind_int64(statement, 1, number) == SQLITE_OK else { throw connection.failure() }
      try connection.step(statement, body)
    }
  }

  private func prepared(_ sql: String) throws(BackupArchiveError) -> OpaquePointer {
    var statement: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK, let statement else { throw failure() }
    return statement
  }

  private func step(
    _ statement: OpaquePointer, _ body: (borrowing ForeignRow) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: try body(ForeignRow(statement: statement))
      case SQLITE_DONE:
        // Its own check tells in a row of text what it could not read, and goes on.
        if let refusal { throw refusal }
        return
      default: throw failure()
      }
    }
  }

  private func failure() -> BackupArchiveError {
    if let refusal { return refusal }
    let code: BackupArchiveError.Code =
      switch sqlite3_errcode(handle) {
      case SQLITE_TOOBIG: .overLimit
      case SQLITE_NOMEM: .unreadable
      default: .damaged
      }
    let message = sqlite3_errmsg(handle).map { String(cString: $0) } ?? "SQLite gave no reason"
    return BackupArchiveError(code, "the manifest database: \(quoted(message))")
  }

  private static let settings = [
    "PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0", "PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY",
  ]

  private static let switches: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, 1),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
  ]

  /// A row's description is a few hundred bytes; 16 MiB leaves room for the largest extended attributes.
  package static let maximumValueByteCount: Int32 = 16 << 20
  /// Columns of any table. The expected ones have five and two.
  package static let maximumColumnCount: Int32 = 32

  private static let limits: [(Int32, Int32)] = [
    (SQLITE_LIMIT_LENGTH, maximumValueByteCount),
    (SQLITE_LIMIT_COLUMN, maximumColumnCount),
    (SQLITE_LIMIT_ATTACHED, 0),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_EXPR_DEPTH, 100),
  ]
}

/// A row of a foreign database. Values by their stored type; a column may hold any.
package struct ForeignRow: ~Copyable {
  fileprivate let statement: OpaquePointer

  package func text(_ column: Int32) -> String? {
    withText(column) { String(utf8: $0) }.flatMap(\.self)
  }

  /// A name, which need not be UTF-8.
  func name(_ column: Int32) -> DecodedName? { withText(column) { DecodedName($0) } }

  /// The bytes of a text, which need not be UTF-8.
  package func withText<Value>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
    textBytes(column).map(body)
  }

  /// The same, valid until the row is left.
  fileprivate func textBytes(_ column: Int32) -> UnsafeRawBufferPointer? {
    guard sqlite3_column_type(statement, column) == SQLITE_TEXT else { return nil }
    let start = UnsafeRawPointer(sqlite3_column_text(statement, column))
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
  }

  /// Lends two texts at once.
  package func withTexts<Value>(
    _ first: Int32, _ second: Int32,
    _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(BackupArchiveError) -> Value
  ) throws(BackupArchiveError) -> Value? {
    guard let first = textBytes(first), let second = textBytes(second) else { return nil }
    return try body(first, second)
  }

  package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

  package func number(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : nil
  }

  /// The bytes of data or of a text.
  package func bytes(_ column: Int32) -> [UInt8]? { data(column) ?? textBytes(column).map(Array.init) }

  package func data(_ column: Int32) -> [UInt8]? {
    guard sqlite3_column_type(statement, column) == SQLITE_BLOB else { return nil }
    let start = sqlite3_column_blob(statement, column)
    return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
  }
}

extension DefensiveConnection {
  /// The version of SQLite that this process runs with.
  package static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}
