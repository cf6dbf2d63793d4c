import CSQLite
import KeychainFormats
import SystemPackage

/// What may stand in a manifest database.
enum ManifestSchema {
  /// As current devices create them (iOS 10.2 and later; `Properties` is empty since 10.1).
  static let statements = [
    "CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB)",
    "CREATE INDEX FilesDomainIdx ON Files(domain)",
    "CREATE INDEX FilesRelativePathIdx ON Files(relativePath)",
    "CREATE INDEX FilesFlagsIdx ON Files(flags)",
    "CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB)",
  ]
  static let userVersion = 2
  private static let tables = ["Files", "Properties"]
  private static let columns = ["fileID", "domain", "relativePath", "flags", "file"]

  /// Compares the schema with what a device creates; reads nothing but the schema itself.
  static func check(_ connection: DefensiveConnection) throws(BackupArchiveError) {
    var hasFiles = false
    try connection.forEachRow("SELECT type, name, tbl_name, sql FROM sqlite_master") {
      (object) throws(BackupArchiveError) in
      guard let type = object.text(0), let name = object.text(1), let table = object.text(2) else {
        throw foreign("a nameless object")
      }
      let isKnownTable = tables.contains(table)
      switch (type, object.text(3)) {
      case ("table", let sql?) where name == table && SystemTables.contains(name, statement: sql): break
      case ("table", let sql?) where isKnownTable && name == table && isPlain(sql, beginningWith: "CREATE TABLE"):
        hasFiles = hasFiles || name == "Files"
      case ("index", nil) where isKnownTable: break
      case ("index", let sql?) where isKnownTable && isIndexOfColumns(sql, of: table): break
      default: throw foreign("\(quoted(type)) \(quoted(name))")
      }
    }
    guard hasFiles else { throw BackupArchiveError(.damaged, "the manifest database has no Files table") }
    try checkColumns(connection)
  }

  /// One pair of parentheses holds the columns. Every way to make SQLite compute something (checks, generated columns,
  /// defaults and indexes of expressions, partial indexes) needs another pair or one of these words. A table without row
  /// numbers, which readers go by, needs one too.
  private static func isPlain(_ sql: String, beginningWith start: String) -> Bool {
    let bytes = sql.utf8
    let words = sql.uppercased().split { !$0.isLetter }
    return sql.uppercased().hasPrefix(start)
      && bytes.count(where: { $0 == UInt8(ascii: "(") }) == 1
      && bytes.count(where: { $0 == UInt8(ascii: ")") }) == 1
      && !["CHECK", "GENERATED", "WHERE", "SELECT", "USING", "COLLATE", "WITHOUT"].contains { words.contains($0) }
  }

  /// Whether an index is of columns alone. Between its one pair of parentheses, behind which nothing follows, each part is
  /// a column's name and may be `ASC` or `DESC`: whatever else SQLite takes there is an expression, which it computes.
  ///
  /// Source: SQLite, "CREATE INDEX" and "Indexes On Expressions".
  private static func isIndexOfColumns(_ sql: String, of table: String) -> Bool {
    guard isPlain(sql, beginningWith: "CREATE INDEX") || isPlain(sql, beginningWith: "CREATE UNIQUE INDEX"),
      let start = sql.utf8.firstIndex(of: UInt8(ascii: "(")), sql.utf8.last == UInt8(ascii: ")")
    else { return false }
    let names = columns(of: table).map { $0.uppercased() }
    let parts = sql[sql.utf8.index(after: start)...].dropLast().split(separator: ",", omittingEmptySubsequences: false)
    return parts.allSatisfy { part in
      let words = part.uppercased().split { $0.isWhitespace }
      guard let first = words.first, names.contains(unquoted(first)) else { return false }
      return words.count == 1 || (words.count == 2 && ["ASC", "DESC"].contains(words[1]))
    }
  }

  /// A name without the quotation marks of SQL around it. Single ones are of texts.
  private static func unquoted(_ word: Substring) -> String {
    for (first, last) in [("\"", "\""), ("`", "`"), ("[", "]")] where word.hasPrefix(first) && word.hasSuffix(last) {
      return String(word.dropFirst().dropLast())
    }
    return String(word)
  }

  private static func columns(of table: String) -> [String] { table == "Files" ? columns : ["key", "value"] }

  private static func checkColumns(_ connection: DefensiveConnection) throws(BackupArchiveError) {
    var names: [String?] = []
    // The second column is the name.
    try connection.forEachRow("PRAGMA table_xinfo(Files)") { names.append($0.text(1)) }
    guard names == columns else {
      throw BackupArchiveError(.damaged, "the Files table of the manifest database has unexpected columns")
    }
  }

  private static func foreign(_ what: String) -> BackupArchiveError {
    BackupArchiveError(.hostile, "the manifest database holds \(what), which no device creates")
  }
}

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
    BackupArchiveError(.unreadable, "no memory for a copy of the manifest database", of: .noMemory)
  }

  /// The keyed archive that describes a stored file; `nil` if the list does not have it.
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
