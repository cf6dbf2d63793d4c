import Basics
import KeychainCrypto
import KeychainFormats

/// The readable rows of a damaged `Files` table, each tried separately.
struct SalvagedRows: Sendable {
  /// The numbers of the readable rows, ascending.
  let rowNumbers: [Int64]
  /// The number of unreadable rows in the table or an index, or `nil` if neither can be read completely.
  let lostCount: Int?
  /// The first fault of the integrity check.
  let reason: String

  var finding: BackupFinding { .listDamaged(readable: rowNumbers.count, lost: lostCount, reason: reason) }

  /// The sources of row numbers: the table and its indexes. The first readable one is used.
  private static let indexClauses = [
    "NOT INDEXED", "INDEXED BY sqlite_autoindex_Files_1", "INDEXED BY FilesDomainIdx",
    "INDEXED BY FilesRelativePathIdx", "INDEXED BY FilesFlagsIdx",
  ]
  /// The minimum size of a row in bytes: an identifier of 40 digits.
  private static let minimumRowByteCount = 40

  /// Tries each row.
  ///
  /// - Parameters:
  ///   - columns: The columns to read.
  ///   - reason: The first fault of the integrity check.
  init(
    of connection: ManifestConnection, byteCount: Int, columns: String, reason: String
  ) throws(KeyhaulError) {
    var listedNumbers: Set<Int64>?
    for indexClause in Self.indexClauses where listedNumbers == nil {
      listedNumbers = try Self.rowNumbers(of: connection, indexClause)
    }
    // Without row numbers, each number that the database could contain is tried.
    let maximumNumber = Int64(min(BackupLimits.rowCount, byteCount / Self.minimumRowByteCount))
    let candidates = listedNumbers?.sorted() ?? Array(1...max(1, maximumNumber))
    var readableNumbers: [Int64] = []
    for number in candidates {
      if try Self.isReadable("SELECT \(columns) FROM Files WHERE rowid = \(number)", connection) {
        readableNumbers.append(number)
      }
    }
    rowNumbers = readableNumbers
    self.reason = reason
    lostCount = listedNumbers.map { $0.count - readableNumbers.count }
  }

  /// Returns whether a row is readable.
  ///
  /// - Throws: A system error, which does not concern the row.
  private static func isReadable(
    _ query: String, _ connection: ManifestConnection
  ) throws(KeyhaulError) -> Bool {
    var isRead = false
    do throws(KeyhaulError) {
      try connection.forEachRow(query) { _ in isRead = true }
    } catch {
      if connection.isRefused { throw error }
    }
    return isRead
  }

  /// Returns the row numbers from a source, or `nil` if it cannot be read completely or contains too many.
  ///
  /// - Throws: The errors of `isReadable`.
  private static func rowNumbers(
    of connection: ManifestConnection, _ indexClause: String
  ) throws(KeyhaulError) -> Set<Int64>? {
    var numbers: Set<Int64> = []
    var quota = FileList.RowQuota()
    do throws(KeyhaulError) {
      try connection.forEachRow("SELECT rowid FROM Files \(indexClause)") { (row) throws(KeyhaulError) in
        try quota.add()
        if let number = row.integer(0) { numbers.insert(number) }
      }
      return numbers
    } catch {
      if connection.isRefused { throw error }
      return nil
    }
  }
}

/// The salt of the encrypted records of iOS 10.0, from the `Properties` table.
enum RecordSalt: Sendable, Equatable {
  case bytes([UInt8])
  /// There is no salt, or one that no device writes.
  case unusable(reason: String)

  /// The maximum size of a salt in bytes. Devices write a few.
  static let maximumByteCount = 1024

  /// Creates the salt from the values of all `salt` rows. A value is `nil` if it is neither data nor text.
  init(_ values: [[UInt8]?]) {
    let start = "\(MetadataFile.database.path) encrypts its records and has"
    switch values.count {
    case 0: self = .unusable(reason: "\(start) no salt for them")
    case 1:
      guard let salt = values[0] else {
        self = .unusable(reason: "\(start) a salt for them that is neither data nor text")
        return
      }
      self =
        (1...Self.maximumByteCount).contains(salt.count)
        ? .bytes(salt) : .unusable(reason: "\(start) a salt of \(HumanReadable.count(salt.count, "byte")) for them")
    default: self = .unusable(reason: "\(start) several salts for them")
    }
  }
}

/// A reader of row records: keyed archives, which iOS 10.0 encrypted.
struct RecordReader: Sendable {
  /// The key, or `nil` if records cannot be decrypted.
  let key: ManifestRecordKey?

  /// The record in a row's last column.
  enum Record: Sendable, Hashable {
    case none
    case archive([UInt8])
    /// A record that cannot be decrypted.
    case undecryptable(reason: String)
  }

  static let plistMagic = Array("bplist00".utf8)

  /// Returns the record in a column. An unencrypted record is recognized by its first bytes.
  func record(in row: borrowing UntrustedRow, _ column: Int32) -> Record {
    guard let stored = row.bytes(column) else { return .none }
    guard let key, !stored.starts(with: Self.plistMagic), !stored.isEmpty else {
      // Text is a record only if it encodes encrypted bytes.
      return row.data(column) == nil ? .none : .archive(stored)
    }
    do throws(DataProtectionError) {
      return .archive(try key.open(Self.encryptedBytes(stored)))
    } catch {
      return .undecryptable(reason: error.reason)
    }
  }

  /// Returns the decoded record in a column, or `nil` if it is missing or unreadable.
  func file(in row: borrowing UntrustedRow, _ column: Int32) -> FileRecord? {
    guard case .archive(let bytes) = record(in: row, column) else { return nil }
    return try? FileRecord(archive: bytes)
  }

  /// Returns the encrypted bytes. Devices encoded them with Base64, but some copies do not.
  private static func encryptedBytes(_ stored: [UInt8]) -> [UInt8] { Base64Digits.bytes(of: stored) ?? stored }
}
