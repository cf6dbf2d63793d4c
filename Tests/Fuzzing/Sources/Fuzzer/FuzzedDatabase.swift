import Basics
import CSQLite
import Foundation
import Keychains

/// A keychain database with its write-ahead log and journal.
///
/// The input consists of the length of the file in four bytes, the length of the log in four bytes, the file, the log
/// and the journal. The lengths are big-endian.
enum FuzzedDatabase: String, CaseIterable, FuzzedInput {
  case keychainDatabase = "keychain-database"

  func run(_ bytes: [UInt8]) {
    guard let database = Self.read(bytes) else { return }
    expect(database.image.count <= bytes.count, "a database has no more pages than its files")
    if let opened = try? database.decrypted(with: database.keys(classKeys: [:])) {
      expect(opened.count == database.rows.count, "every row has a decryption result")
    }
    // The merged image is a single file and must have the same rows.
    expect(
      try KeychainDatabase(file: database.image).rows.map(\.encryptedItem) == database.rows.map(\.encryptedItem),
      "the merged file has the same rows")
  }

  /// Returns whether the file has the three rows of the examples. If there is a log or a journal, it must also have been
  /// applied to the file.
  func accepts(_ bytes: [UInt8]) -> Bool {
    guard let files = Files(input: bytes), let database = Self.read(bytes) else { return false }
    let expectedStatus: DatabaseDetails.JournalStatus =
      if !files.log.isEmpty {
        .applied
      } else if !files.journal.isEmpty {
        .rolledBack
      } else {
        .none
      }
    return database.journalStatus == expectedStatus && database.isIntact && database.rows.count == 3
  }

  private static func read(_ bytes: [UInt8]) -> KeychainDatabase? {
    guard let files = Files(input: bytes) else { return nil }
    return try? KeychainDatabase(file: files.database, log: files.log, journal: files.journal)
  }

  /// The files in an input.
  private struct Files {
    let database: [UInt8]
    let log: [UInt8]
    let journal: [UInt8]

    /// Creates the files, or `nil` if the input is too short for their lengths.
    init?(input: [UInt8]) {
      guard input.count >= 8 else { return nil }
      let databaseLength = Self.length(in: input, at: 0)
      let logLength = Self.length(in: input, at: 4)
      let contents = input.dropFirst(8)
      database = Array(contents.prefix(databaseLength))
      log = Array(contents.dropFirst(databaseLength).prefix(logLength))
      journal = Array(contents.dropFirst(databaseLength).dropFirst(logLength))
    }

    private static func length(in input: [UInt8], at offset: Int) -> Int {
      input[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
  }

  private struct SQLiteFailure: Error { let message: String }

  /// Returns three databases with three rows: without a log, with the last row in a log, and with a change that a
  /// journal rolls back.
  func examples() throws -> [[UInt8]] {
    let firstRows = "INSERT INTO genp(data, sha1, acct) VALUES(x'0000000807', x'00', 'a'), (zeroblob(40), NULL, NULL)"
    let lastRow = "INSERT INTO inet(data, sha1, acct) VALUES(zeroblob(700), x'01', 'b')"
    // With a cache of one page, SQLite writes the change to the file before it is committed.
    let unfinishedChange = "PRAGMA cache_size = 1; BEGIN; UPDATE genp SET data = zeroblob(5000)"
    return [
      try input(creating: "\(firstRows); \(lastRow)", then: ""),
      try input(creating: "\(firstRows); PRAGMA journal_mode = WAL", then: lastRow),
      try input(creating: "\(firstRows); \(lastRow)", then: unfinishedChange),
    ]
  }

  /// Creates a database with the statements, and begins a change. Returns an input with the database's files, which are
  /// read before the change is finished.
  private func input(creating statements: String, then change: String) throws -> [UInt8] {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "k.db").path
    let tables = ["genp", "inet"].map {
      "CREATE TABLE \($0)(rowid INTEGER PRIMARY KEY, data BLOB, sha1 BLOB, acct BLOB)"
    }
    try Self.run("PRAGMA page_size = 512; \(tables.joined(separator: "; ")); \(statements)", at: path) {}
    var files: [[UInt8]] = []
    try Self.run(change, at: path) {
      files = try ["", "-wal", "-journal"].map { suffix in
        FileManager.default.fileExists(atPath: path + suffix)
          ? [UInt8](try Data(contentsOf: URL(filePath: path + suffix))) : []
      }
    }
    // The journal is the rest of the input and has no length.
    let lengths = files.prefix(2).flatMap { file in
      (0..<4).map { UInt8(truncatingIfNeeded: file.count >> (24 - 8 * $0)) }
    }
    return lengths + files.joined()
  }

  /// Runs statements, and then a closure while the database is still open.
  private static func run(_ sql: String, at path: String, _ body: () throws -> Void) throws {
    var handle: OpaquePointer?
    defer { sqlite3_close_v2(handle) }
    guard sqlite3_open(path, &handle) == SQLITE_OK, sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw SQLiteFailure(message: sqlite3_errmsg(handle).map { String(cString: $0) } ?? "")
    }
    try body()
  }
}
