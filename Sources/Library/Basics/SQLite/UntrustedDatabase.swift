import CSQLite

/// A connection to an SQLite database that another program wrote. SQLite computes and loads nothing that the database
/// defines.
///
/// A database is read from its bytes, changed in its file, or changed in a copy in memory. Keyhaul opens its own
/// databases with GRDB instead. Only one thread at a time may use a connection.
///
/// Source: SQLite, "Defense Against The Dark Arts" (untrusted database files).
package final class UntrustedDatabase<Failure: Error> {
  /// The connection; `nil` after `close`.
  private var handle: OpaquePointer?
  /// The bytes to read, or `nil` if the database can be changed.
  private let content: (any DatabaseContent)?
  private let convert: (SQLiteFailure) -> Failure

  /// Opens a database for reading. Nothing is written, and no other file is read.
  ///
  /// - Parameters:
  ///   - content: The bytes of the database, with any log already applied.
  ///   - limits: The sizes that SQLite accepts.
  ///   - convert: Returns the error to throw for a failure.
  package init(
    reading content: some DatabaseContent, limits: DatabaseLimits, _ convert: @escaping (SQLiteFailure) -> Failure
  ) throws(Failure) {
    self.content = content
    self.convert = convert
    let opened = ReadOnlyFileSystem.open(content)
    try adopt(opened.connection, openResult: opened.code, limits: limits)
    try setPragmas(["cell_size_check = ON", "mmap_size = 0", "query_only = ON", "temp_store = MEMORY"])
  }

  /// Opens an existing file for changes and begins a transaction. No other process can use the database at the same
  /// time, and uncommitted changes stay in memory.
  ///
  /// - Parameters:
  ///   - path: The path of the database, or `:memory:`.
  ///   - limits: The sizes that SQLite accepts.
  ///   - convert: Returns the error to throw for a failure.
  package init(
    changing path: String, limits: DatabaseLimits, _ convert: @escaping (SQLiteFailure) -> Failure
  ) throws(Failure) {
    content = nil
    self.convert = convert
    // The last connection that closes a database merges its log into the file, even if nothing was changed. That would
    // write to the database. If there is no log, closing only removes the empty log that SQLite creates.
    let hasLog = Self.hasLog(beside: path)
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE, nil)
    try adopt(opened, openResult: result, limits: limits)
    guard sqlite3_db_readonly(handle, "main") == 0 else { throw convert(SQLiteFailure(.readOnly, "it is read only")) }
    try setSwitch(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, to: hasLog ? 1 : 0)
    // Exclusive locking must be set before the first read. It then conflicts with the shared lock that every other
    // connection to a database with a log holds.
    try setPragmas(["locking_mode = EXCLUSIVE", "cache_spill = OFF", "cell_size_check = ON", "temp_store = MEMORY"])
    try run("BEGIN EXCLUSIVE")
  }

  /// Opens a copy in memory for changes and begins a transaction.
  ///
  /// - Parameters:
  ///   - byteCount: The size of the database.
  ///   - limits: The sizes that SQLite accepts.
  ///   - convert: Returns the error to throw for a failure.
  ///   - fill: Writes the database's bytes to the buffer.
  package init(
    copying byteCount: Int, limits: DatabaseLimits, _ convert: @escaping (SQLiteFailure) -> Failure,
    fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    content = nil
    self.convert = convert
    guard let memory = sqlite3_malloc64(UInt64(max(byteCount, 1))) else { throw convert(.noMemoryForCopy) }
    do throws(Failure) {
      try fill(UnsafeMutableRawBufferPointer(start: memory, count: byteCount))
      var opened: OpaquePointer?
      let result = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nil)
      try adopt(opened, openResult: result, limits: limits)
    } catch {
      sqlite3_free(memory)
      throw error
    }
    // SQLite frees the bytes, even if this call fails.
    let result = sqlite3_deserialize(
      handle, "main", memory.assumingMemoryBound(to: UInt8.self), Int64(byteCount), Int64(byteCount),
      UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE))
    guard result == SQLITE_OK else { throw failure(result) }
    try setPragmas(["secure_delete = ON", "temp_store = MEMORY"])
    try run("BEGIN")
  }

  deinit { sqlite3_close_v2(handle) }

  /// Undoes uncommitted changes and releases the file. The database cannot be used afterwards.
  package func close() {
    sqlite3_close_v2(handle)
    handle = nil
  }

  /// Whether the system refused to read the content.
  package var isRefused: Bool { content?.isRefused ?? false }

  /// Stores an opened connection, and disables everything in it that computes or loads something.
  private func adopt(
    _ connection: OpaquePointer?, openResult result: Int32, limits: DatabaseLimits
  ) throws(Failure) {
    handle = connection
    guard result == SQLITE_OK, connection != nil else {
      throw convert(SQLiteFailure(result, of: connection, isOpening: true))
    }
    for (option, value) in Hardening.switches { try setSwitch(option, to: value) }
    for (limit, value) in Hardening.limits { sqlite3_limit(connection, limit, value) }
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, limits.valueByteCount)
    sqlite3_limit(connection, SQLITE_LIMIT_COLUMN, limits.columnCount)
  }

  private func setSwitch(_ option: Int32, to value: Int32) throws(Failure) {
    guard keyhaul_sqlite3_switch(handle, option, value) == SQLITE_OK else {
      throw convert(
        SQLiteFailure(.oldLibrary, "this version of SQLite is too old to read an untrusted database safely"))
    }
  }

  private func setPragmas(_ pragmas: [String]) throws(Failure) {
    for pragma in pragmas { try run("PRAGMA " + pragma) }
  }

  private static func hasLog(beside path: String) -> Bool {
    guard let system = sqlite3_vfs_find(nil) else { return true }
    var exists: Int32 = 0
    let result = system.pointee.xAccess(system, path + "-wal", SQLITE_ACCESS_EXISTS, &exists)
    return result != SQLITE_OK || exists != 0
  }

  // MARK: Statements

  /// Runs one query and calls a closure with each row. The values of a row are valid until the closure returns.
  package func forEachRow(
    _ sql: String, _ values: [ColumnValue] = [], _ body: (borrowing UntrustedRow) throws(Failure) -> Void
  ) throws(Failure) {
    try statement(sql).forEachRow(values, body)
  }

  /// Runs one statement.
  ///
  /// - Returns: The number of rows that it changed.
  @discardableResult
  package func run(_ sql: String, _ values: [ColumnValue] = []) throws(Failure) -> Int {
    try forEachRow(sql, values) { _ in }
    return Int(sqlite3_changes(handle))
  }

  /// Prepares a statement that is run several times.
  package func statement(_ sql: String) throws(Failure) -> Statement {
    var prepared: OpaquePointer?
    let result = sqlite3_prepare_v2(handle, sql, -1, &prepared, nil)
    guard result == SQLITE_OK, let prepared else { throw failure(result) }
    return Statement(self, prepared)
  }

  /// A prepared statement.
  package final class Statement {
    private let database: UntrustedDatabase
    private let handle: OpaquePointer

    fileprivate init(_ database: UntrustedDatabase, _ handle: OpaquePointer) {
      self.database = database
      self.handle = handle
    }

    deinit { sqlite3_finalize(handle) }

    /// Runs the statement and calls a closure with each row. The values of a row are valid until the closure returns.
    package func forEachRow(
      _ values: [ColumnValue], _ body: (borrowing UntrustedRow) throws(Failure) -> Void
    ) throws(Failure) {
      defer { sqlite3_reset(handle) }
      for (index, value) in values.enumerated() {
        guard value.bind(to: Int32(index + 1), of: handle) == SQLITE_OK else {
          throw database.convert(SQLiteFailure(.refusedValue, "SQLite did not accept a value"))
        }
      }
      while true {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: try body(UntrustedRow(statement: handle))
        case SQLITE_DONE:
          // An integrity check reports an unreadable page as a row of text, and continues.
          if database.isRefused { throw database.failure(SQLITE_IOERR) }
          return
        case let result: throw database.failure(result)
        }
      }
    }
  }

  private func failure(_ result: Int32) -> Failure { convert(SQLiteFailure(result, of: handle)) }

  // MARK: Checks

  /// Runs SQLite's own check of every page, row and index entry.
  ///
  /// - Returns: The first fault; `nil` if there is none.
  package func integrityFault() throws(Failure) -> String? {
    var result: String?
    try forEachRow("PRAGMA integrity_check(1)") { result = $0.text(0) }
    if let result, let failure = SQLiteFailure(checkResult: result) { throw convert(failure) }
    return result == "ok" ? nil : result ?? "no result"
  }

  /// Runs a closure with a limit of CPU time. A malicious index can make the lookup of its entries take hours.
  ///
  /// - Parameter limit: The maximum CPU time in nanoseconds. The default is 5 s, plus 1 ms for each 4 KiB. A device's
  ///   database needs only a small part of this time.
  /// - Returns: `nil` if a statement exceeded the limit.
  package func withTimeLimit<Value>(
    _ limit: Int64? = nil, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value? {
    var byteCount: Int64 = 0
    try forEachRow("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size") {
      byteCount = $0.integer(0) ?? 0
    }
    var deadline = keyhaul_sqlite3_cpu_time() + (limit ?? 5_000_000_000 + byteCount / 4096 * 1_000_000)
    return try withUnsafeMutablePointer(to: &deadline) { (deadline) throws(Failure) -> Value? in
      keyhaul_sqlite3_limit_time(handle, deadline)
      defer { keyhaul_sqlite3_limit_time(handle, nil) }
      do throws(Failure) {
        return try body()
      } catch {
        guard sqlite3_errcode(handle) != SQLITE_INTERRUPT else { return nil }
        throw error
      }
    }
  }

  // MARK: Changes

  /// Merges the log into the file, after a commit. From then on, closing the database merges the log as well.
  package func mergeLog() throws(Failure) {
    _ = keyhaul_sqlite3_switch(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    try run("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  /// Calls a closure with a copy of the database's bytes, which is overwritten afterwards.
  ///
  /// - Returns: `nil` if there is not enough memory for the copy.
  package func withImage<Result, BodyFailure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(BodyFailure) -> Result
  ) throws(BodyFailure) -> Result? {
    var size: Int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &size, 0) else { return nil }
    let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: Int(size))
    defer {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      sqlite3_free(bytes)
    }
    return try body(UnsafeRawBufferPointer(buffer))
  }
}

/// The sizes that SQLite accepts in an untrusted database.
package struct DatabaseLimits {
  package let valueByteCount: Int32
  let columnCount: Int32

  /// Creates limits.
  ///
  /// - Parameters:
  ///   - valueByteCount: The maximum number of bytes of a value, and of a row.
  ///   - columnCount: The maximum number of columns of a table.
  package init(valueByteCount: Int32, columnCount: Int32) {
    self.valueByteCount = valueByteCount
    self.columnCount = columnCount
  }
}

/// The settings for every untrusted database.
private enum Hardening {
  static let switches: [(option: Int32, value: Int32)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, 1),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
  ]

  static let limits: [(limit: Int32, value: Int32)] = [
    (SQLITE_LIMIT_ATTACHED, 0),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_EXPR_DEPTH, 100),
  ]
}

extension ColumnValue {
  fileprivate func bind(to index: Int32, of statement: OpaquePointer) -> Int32 {
    // SQLite copies the bytes (`SQLITE_TRANSIENT`).
    let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch self {
    case .null: return sqlite3_bind_null(statement, index)
    case .integer(let number): return sqlite3_bind_int64(statement, index, number)
    case .real(let number): return sqlite3_bind_double(statement, index, number)
    case .text(let bytes):
      return bytes.withUnsafeBytes { bytes in
        // For a null pointer, SQLite would store NULL.
        let start = bytes.bindMemory(to: CChar.self).baseAddress
        return start.map {
          sqlite3_bind_text64(statement, index, $0, UInt64(bytes.count), copied, UInt8(SQLITE_UTF8))
        } ?? sqlite3_bind_text(statement, index, "", 0, copied)
      }
    case .blob(let bytes):
      return bytes.withUnsafeBytes { bytes in
        bytes.baseAddress.map { sqlite3_bind_blob64(statement, index, $0, UInt64(bytes.count), copied) }
          ?? sqlite3_bind_zeroblob(statement, index, 0)
      }
    }
  }
}

/// The version of SQLite that this process uses.
package enum SQLiteLibrary {
  /// The version number, such as "3.40.1".
  package static var version: String { String(cString: sqlite3_libversion()) }
}
