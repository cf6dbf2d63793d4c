public import DataProtection
import GRDB
import KeychainFormats

/// The list of a backup's files (`Manifest.db`), opened as a private copy in memory.
///
/// Nothing in it runs: it is read-only, its schema is compared with the expected one before any other query, and it
/// must hold neither triggers nor views nor virtual tables nor computed columns.
public final class ManifestDatabase: Sendable {
  private let queue: DatabaseQueue
  /// What was unusual, and tolerated.
  public let notes: [ArchiveNote]

  /// A row of the database.
  struct Row: Equatable {
    let domain: String
    let relativePath: String
    let flags: Int64
    /// The keyed archive that describes the file; `nil` for what was never finished.
    let record: [UInt8]?
  }

  /// How many files of each kind the database lists.
  public struct Listing: Sendable, Equatable {
    public var fileCount = 0
    public var directoryCount = 0
    public var linkCount = 0
    /// Rows by their domain, such as `KeychainDomain` or `AppDomain-com.example.app`.
    public var rowCountByDomain: [String: Int] = [:]
    /// Rows whose identifier isn't the hash of their domain and path, or whose path leads out of its domain.
    public var unreadableRowCount = 0
  }

  init(_ image: DatabaseImage, notes: [ArchiveNote] = []) throws(BackupArchiveError) {
    try image.checkHeader()
    self.notes = notes + (image.leaveWriteAheadMode() ? [.databaseInWriteAheadMode] : [])
    queue = try translatingErrors { try DatabaseQueue(configuration: DefensiveConnection.configuration) }
    try access { database in
      try DefensiveConnection.open(image, in: database)
      try ManifestSchema.check(database)
      let result = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
      guard result == "ok" else {
        throw BackupArchiveError(.damaged, "the manifest database fails its check: \(quoted(result ?? "no result"))")
      }
    }
  }

  /// The row of a file. Its identifier has to be the hash of its domain and path, and stand in one row only.
  func row(domain: String, relativePath: String, fileIdentifier: String) throws(BackupArchiveError) -> Row? {
    try access { database in
      let rows = try GRDB.Row.fetchAll(
        database,
        sql: """
          SELECT fileID, domain, relativePath, flags, file FROM Files
          WHERE fileID = ? OR (domain = ? AND relativePath = ?) LIMIT 2
          """,
        arguments: [fileIdentifier, domain, relativePath])
      guard let row = rows.first else { return nil }
      guard rows.count == 1, text(row, 0) == fileIdentifier, text(row, 1) == domain, text(row, 2) == relativePath else {
        throw BackupArchiveError(
          .hostile, "the manifest database lists \(domain)-\(relativePath) under an identifier that is not its hash")
      }
      return Row(domain: domain, relativePath: relativePath, flags: number(row, 3) ?? 0, record: data(row, 4))
    }
  }

  /// Counts every row. Takes time in proportion to their number: a large backup has some 500,000.
  public func listing() throws(BackupArchiveError) -> Listing {
    try access { database in
      var listing = Listing()
      let rows = try GRDB.Row.fetchCursor(
        database, sql: "SELECT fileID, domain, relativePath, flags FROM Files")
      while let row = try rows.next() {
        guard let identifier = text(row, 0), let domain = text(row, 1), let path = text(row, 2),
          try Self.isConsistent(identifier: identifier, domain: domain, path: path)
        else {
          listing.unreadableRowCount += 1
          continue
        }
        listing.rowCountByDomain[domain, default: 0] += 1
        // Bits beside these three are left over from the transfer.
        let flags = number(row, 3) ?? 0
        if flags & 1 != 0 {
          listing.fileCount += 1
        } else if flags & 2 != 0 {
          listing.directoryCount += 1
        } else if flags & 4 != 0 {
          listing.linkCount += 1
        }
      }
      return listing
    }
  }

  /// The files that are listed but not stored. An empty file needs no payload, so that only records can tell; those of
  /// absent files are read for it.
  ///
  /// - Returns: Their identifiers, in the database's order.
  public func missingPayloads(in stored: StoredPayloads) throws(BackupArchiveError) -> [String] {
    try access { database in
      var missing: [String] = []
      let rows = try GRDB.Row.fetchCursor(database, sql: "SELECT fileID, flags, file FROM Files")
      while let row = try rows.next() {
        guard let identifier = text(row, 0), isFileIdentifier(identifier), (number(row, 1) ?? 0) & 1 != 0,
          stored.byteCount(of: identifier) == nil
        else { continue }
        let record = data(row, 2).flatMap { try? FileRecord(archive: $0) }
        if record?.size != 0 { missing.append(identifier) }
      }
      return missing
    }
  }

  private static func isConsistent(identifier: String, domain: String, path: String) throws -> Bool {
    guard isFileIdentifier(identifier), !domain.contains("/"), !domain.utf8.contains(0), !path.utf8.contains(0),
      !path.hasPrefix("/"), !path.split(separator: "/").contains("..")
    else { return false }
    return try fileIdentifier(domain: domain, relativePath: path) == identifier
  }

  /// The name under which a backup stores a file: SHA-1 of its domain, a hyphen and its path, in hexadecimal.
  public static func fileIdentifier(
    domain: String, relativePath: String
  ) throws(DataProtectionError) -> String {
    hexadecimal(try Digest.sha1(Array("\(domain)-\(relativePath)".utf8)))
  }

  private func access<Value>(_ body: (Database) throws -> Value) throws(BackupArchiveError) -> Value {
    try translatingErrors { try queue.inDatabase(body) }
  }
}

/// Values by their stored type; a column of a foreign database may hold any.
private func text(_ row: GRDB.Row, _ column: Int) -> String? {
  if case .string(let value) = (row[column] as DatabaseValue).storage { value } else { nil }
}

private func number(_ row: GRDB.Row, _ column: Int) -> Int64? {
  if case .int64(let value) = (row[column] as DatabaseValue).storage { value } else { nil }
}

private func data(_ row: GRDB.Row, _ column: Int) -> [UInt8]? {
  if case .blob(let value) = (row[column] as DatabaseValue).storage { [UInt8](value) } else { nil }
}

/// Lower-case hexadecimal digits.
func hexadecimal(_ bytes: [UInt8]) -> String {
  var text = ""
  text.reserveCapacity(bytes.count * 2)
  for byte in bytes {
    if byte < 16 { text.append("0") }
    text += String(byte, radix: 16)
  }
  return text
}

/// Runs `body` and gives what SQLite reports about a foreign database as this module's error.
func translatingErrors<Value>(_ body: () throws -> Value) throws(BackupArchiveError) -> Value {
  do {
    return try body()
  } catch let error as BackupArchiveError {
    throw error
  } catch let error as DatabaseError {
    let code: BackupArchiveError.Code =
      switch error.resultCode {
      case .SQLITE_TOOBIG: .overLimit
      case .SQLITE_NOMEM: .unreadable
      default: .damaged
      }
    throw BackupArchiveError(code, "the manifest database: \(quoted(error.message ?? "SQLite gave no reason"))")
  } catch let error as DataProtectionError {
    throw BackupArchiveError(error, in: "the manifest database")
  } catch {
    throw BackupArchiveError(.damaged, "the manifest database cannot be read")
  }
}
