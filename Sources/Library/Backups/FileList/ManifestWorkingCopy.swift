import CSQLite

/// A manifest database in memory whose rows can be changed. The list that it is a copy of has been checked before.
///
/// Not to be used from two threads at once.
package final class ManifestWorkingCopy {
  private let handle: OpaquePointer

  /// Opens a copy of the whole database; SQLite owns its bytes from then on.
  package init(_ bytes: DatabaseBytes) throws(BackupArchiveError) {
    guard let memory = sqlite3_malloc64(UInt64(max(bytes.byteCount, 1))) else { throw Self.outOfMemory }
    let buffer = UnsafeMutableRawBufferPointer(start: memory, count: bytes.byteCount)
    do throws(BackupArchiveError) {
      try bytes.reader().read(at: 0, into: buffer)
    } catch {
      sqlite3_free(memory)
      throw error
    }
    var opened: OpaquePointer?
    guard sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nil) == SQLITE_OK,
      let connection = opened
    else {
      sqlite3_close_v2(opened)
      sqlite3_free(memory)
      throw Self.outOfMemory
    }
    handle = connection
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE)
    let size = Int64(bytes.byteCount)
    // It frees the bytes also where it fails.
    guard
      sqlite3_deserialize(connection, "main", memory.assumingMemoryBound(to: UInt8.self), size, size, flags)
        == SQLITE_OK
    else { throw failure() }
    try DefensiveConnection.forbidComputation(of: connection)
    for setting in ["PRAGMA secure_delete = ON", "PRAGMA temp_store = MEMORY", "BEGIN"] { try run(setting) }
  }

  deinit { sqlite3_close_v2(handle) }

  private static var outOfMemory: BackupArchiveError {
    BackupArchiveError(.unreadable, "no memory for a copy of the manifest database")
  }

  /// The keyed archive that describes a stored file; `nil` where the list does not have it.
  package func archive(of fileIdentifier: String) throws(BackupArchiveError) -> [UInt8]? {
    try statement("SELECT file FROM Files WHERE fileID = ?1", fileIdentifier) {
      (statement) throws(BackupArchiveError) in
      switch sqlite3_step(statement) {
      case SQLITE_DONE: return nil
      case SQLITE_ROW:
        guard let start = sqlite3_column_blob(statement, 0) else { return nil }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, 0))))
      default: throw failure()
      }
    }
  }

  package func replaceArchive(of fileIdentifier: String, by archive: [UInt8]) throws(BackupArchiveError) {
    try statement("UPDATE Files SET file = ?2 WHERE fileID = ?1", fileIdentifier) {
      (statement) throws(BackupArchiveError) in
      let bound = archive.withUnsafeBytes {
        sqlite3_bind_blob64(statement, 2, $0.baseAddress, UInt64($0.count), copied)
      }
      guard bound == SQLITE_OK, sqlite3_step(statement) == SQLITE_DONE, sqlite3_changes(handle) == 1 else {
        throw failure()
      }
    }
  }

  /// The database as it is to be stored. Nothing may be changed afterwards.
  package func serialized() throws(BackupArchiveError) -> [UInt8] {
    try run("COMMIT")
    var size: Int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &size, 0) else { throw Self.outOfMemory }
    defer { sqlite3_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(size)))
  }

  private func run(_ sql: String) throws(BackupArchiveError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
  }

  private func statement<Value>(
    _ sql: String, _ identifier: String, _ body: (OpaquePointer) throws(BackupArchiveError) -> Value
  ) throws(BackupArchiveError) -> Value {
    var prepared: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &prepared, nil) == SQLITE_OK, let statement = prepared else {
      throw failure()
    }
    defer { sqlite3_finalize(statement) }
    guard sqlite3_bind_text(statement, 1, identifier, -1, copied) == SQLITE_OK else { throw failure() }
    return try body(statement)
  }

  private func failure() -> BackupArchiveError {
    let message = sqlite3_errmsg(handle).map { String(cString: $0) } ?? "SQLite gave no reason"
    return BackupArchiveError(
      sqlite3_errcode(handle) == SQLITE_NOMEM ? .unreadable : .damaged, "the manifest database: \(quoted(message))")
  }
}

/// Tells SQLite to copy what is bound (`SQLITE_TRANSIENT`).
private let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
