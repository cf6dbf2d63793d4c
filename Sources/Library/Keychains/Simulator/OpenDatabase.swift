import Basics
import CSQLite
import KeychainFormats
import KeychainRules
import SystemPackage

/// A database file that is held alone and changed in one transaction; what is not committed is undone.
///
/// Not to be used from two threads at once.
final class OpenDatabase: DatabaseRows {
  /// The connection; `nil` after `close`.
  private(set) var handle: OpaquePointer?

  /// Opens a file that is there and begins a transaction.
  ///
  /// - Throws: `.busy` where somebody else has it open, also only to read; `.notWritable`.
  init(path: String) throws(KeychainDatabaseError) {
    // Whoever closes a database last takes its log into the file, whether or not anything was changed: not here. An empty
    // log that SQLite makes is removed by that, so that it is left on where there is none.
    let hasLog = Self.hasLog(beside: path)
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE, nil)
    guard result == SQLITE_OK, let connection = opened else {
      defer { sqlite3_close_v2(opened) }
      throw Self.error(result, of: opened)
    }
    handle = connection
    guard sqlite3_db_readonly(connection, "main") == 0 else {
      throw KeychainDatabaseError(.notWritable, "it is read only")
    }
    let closing = [(SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, Int32(hasLog ? 1 : 0))]
    for (option, value) in ForeignDatabase.switches + closing {
      guard keyhaul_sqlite3_switch(connection, option, value) == SQLITE_OK else {
        throw KeychainDatabaseError(.failed, "this version of SQLite is too old to open an untrusted database safely")
      }
    }
    for (limit, value) in ForeignDatabase.limits { sqlite3_limit(connection, limit, value) }
    // Alone before the first look: with a log beside it, whoever else has it open holds a shared lock all the time.
    // What is not committed never leaves memory.
    for setting in [
      "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA cache_spill = OFF", "PRAGMA cell_size_check = ON",
      "PRAGMA temp_store = MEMORY",
    ] {
      try run(setting)
    }
    try run("BEGIN EXCLUSIVE")
  }

  deinit { close() }

  /// Undoes uncommitted changes and releases the file. The database cannot be used afterwards.
  func close() {
    sqlite3_close_v2(handle)
    handle = nil
  }

  private static func hasLog(beside path: String) -> Bool {
    guard let system = sqlite3_vfs_find(nil) else { return true }
    var found: Int32 = 0
    let result = system.pointee.xAccess(system, path + "-wal", SQLITE_ACCESS_EXISTS, &found)
    return result != SQLITE_OK || found != 0
  }

  /// Makes the changes last, and takes what its log holds into the file.
  ///
  /// - Throws: An error of stage `afterCommit` if SQLite has committed the changes but cannot merge the log. After any
  ///   other error, only the file shows whether the changes were made, because SQLite also reports a failed sync after
  ///   it has emptied the journal.
  func commit() throws(KeychainDatabaseError) {
    try run("COMMIT")
    if let handle { _ = keyhaul_sqlite3_switch(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0) }
    do throws(KeychainDatabaseError) {
      try run("PRAGMA wal_checkpoint(TRUNCATE)")
    } catch {
      throw KeychainDatabaseError(error.code, error.reason, stage: .afterCommit)
    }
  }

  /// Whether the database has the content of an image, regardless of the log setting in the file's header.
  ///
  /// - Throws: `.failed` if there is not enough memory for a copy of the database.
  func hasContent(of image: [UInt8]) throws(KeychainDatabaseError) -> Bool {
    let isEqual = withImage { bytes in
      image.withUnsafeBytes { image in
        // A file may be longer than its header states. Bytes 18 and 19 state whether it has a log.
        bytes.count <= image.count && bytes.prefix(18).elementsEqual(image.prefix(18))
          && bytes.dropFirst(20).elementsEqual(image.prefix(bytes.count).dropFirst(20))
      }
    }
    guard let isEqual else { throw KeychainDatabaseError(.failed, "there is not enough memory to look at it") }
    return isEqual
  }

  /// Calls a closure with a copy of the file's bytes; returns `nil` if there is not enough memory for the copy.
  func withImage<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    var size: Int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &size, 0) else { return nil }
    let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: Int(size))
    defer {
      // The copy is of a keychain in clear.
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      sqlite3_free(bytes)
    }
    return try body(UnsafeRawBufferPointer(buffer))
  }

  /// Runs one statement and lends its rows.
  ///
  /// - Returns: How many rows it changed.
  @discardableResult
  func run(
    _ sql: String, _ values: [ColumnValue] = [],
    _ body: (borrowing ForeignRow) throws(KeychainDatabaseError) -> Void = { _ in }
  ) throws(KeychainDatabaseError) -> Int {
    var prepared: OpaquePointer?
    let result = sqlite3_prepare_v2(handle, sql, -1, &prepared, nil)
    guard result == SQLITE_OK, let statement = prepared else { throw Self.error(result, of: handle) }
    defer { sqlite3_finalize(statement) }
    for (index, value) in values.enumerated() {
      guard Self.bind(value, to: Int32(index + 1), of: statement) == SQLITE_OK else {
        throw KeychainDatabaseError(.failed, "SQLite did not accept a value of an item")
      }
    }
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW: try body(ForeignRow(statement: statement))
      case SQLITE_DONE: return Int(sqlite3_changes(handle))
      case let result: throw Self.error(result, of: handle)
      }
    }
  }

  func forEachRow(
    _ sql: String, _ body: (borrowing ForeignRow) throws(KeychainDatabaseError) -> Void
  ) throws(KeychainDatabaseError) {
    try run(sql, [], body)
  }

  private static func bind(_ value: ColumnValue, to index: Int32, of statement: OpaquePointer) -> Int32 {
    // SQLite copies what it is given.
    let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch value {
    case .null: return sqlite3_bind_null(statement, index)
    case .integer(let number): return sqlite3_bind_int64(statement, index, number)
    case .real(let number): return sqlite3_bind_double(statement, index, number)
    case .text(let bytes):
      return bytes.withUnsafeBytes { bytes in
        // No text is the empty one, and not NULL.
        let start = bytes.bindMemory(to: CChar.self).baseAddress
        return start.map { sqlite3_bind_text(statement, index, $0, Int32(bytes.count), copies) }
          ?? sqlite3_bind_text(statement, index, "", 0, copies)
      }
    case .blob(let bytes):
      return bytes.withUnsafeBytes { bytes in
        bytes.baseAddress.map { sqlite3_bind_blob(statement, index, $0, Int32(bytes.count), copies) }
          ?? sqlite3_bind_zeroblob(statement, index, 0)
      }
    }
  }

  private static func error(_ result: Int32, of connection: OpaquePointer?) -> KeychainDatabaseError {
    let code: KeychainDatabaseError.Code =
      switch result & 0xFF {
      case SQLITE_BUSY, SQLITE_LOCKED: .busy
      case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM: .notWritable
      case SQLITE_NOTADB: .unreadable
      case SQLITE_CORRUPT: .damaged
      case SQLITE_TOOBIG: .overLimit
      case SQLITE_IOERR, SQLITE_FULL: .disk
      default: .failed
      }
    let number = code == .disk || code == .notWritable ? sqlite3_system_errno(connection) : 0
    let reason = number == 0 ? "" : " (\(Errno(rawValue: number).reason))"
    return KeychainDatabaseError(code, ForeignDatabase.sentence(result) + reason)
  }
}
