import Basics
import KeychainCrypto
import KeychainFormats

/// The rows of a damaged table `Files` that can be read, each tried for itself.
struct ReadableRows: Sendable {
  /// The numbers of the rows that can be read, ascending.
  let numbers: [Int64]
  /// The number of rows that the table or one of its indexes lists but that cannot be read; `nil` if neither the table
  /// nor any index can be read to its end.
  let lostCount: Int?
  /// What the database's own check found first.
  let reason: String

  var finding: ArchiveFinding { .listDamaged(readable: numbers.count, lost: lostCount, reason: reason) }

  /// Where the numbers of all rows are taken from: the table, or one of its indexes, whichever can be read to its end.
  private static let orders = [
    "NOT INDEXED", "INDEXED BY sqlite_autoindex_Files_1", "INDEXED BY FilesDomainIdx",
    "INDEXED BY FilesRelativePathIdx", "INDEXED BY FilesFlagsIdx",
  ]
  /// The least bytes that a row takes: an identifier of forty digits alone.
  private static let minimumRowByteCount = 40

  /// Tries every row.
  ///
  /// - Parameters:
  ///   - columns: Those that a row is read for.
  ///   - reason: What the database's own check found first.
  init(
    of connection: ManifestConnection, byteCount: Int, columns: String, reason: String
  ) throws(KeyhaulError) {
    var named: Set<Int64>?
    for order in Self.orders where named == nil { named = try Self.numbers(of: connection, order) }
    let last = Int64(min(FileList.maximumRowCount, byteCount / Self.minimumRowByteCount))
    let candidates = named?.sorted() ?? Array(1...max(1, last))
    var numbers: [Int64] = []
    for number in candidates {
      if try Self.isReadable("SELECT \(columns) FROM Files WHERE rowid = \(number)", connection) {
        numbers.append(number)
      }
    }
    self.numbers = numbers
    self.reason = reason
    lostCount = named.map { $0.count - numbers.count }
  }

  /// - Throws: What the system says that refuses to read, which says nothing of the row.
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

  /// - Throws: As `isReadable` does.
  /// - Returns: `nil` if they cannot be read to their end, or are more than a list may have.
  private static func numbers(
    of connection: ManifestConnection, _ order: String
  ) throws(KeyhaulError) -> Set<Int64>? {
    var numbers: Set<Int64> = []
    var meter = FileList.RowMeter()
    do throws(KeyhaulError) {
      try connection.forEachRow("SELECT rowid FROM Files \(order)") { (row) throws(KeyhaulError) in
        try meter.add()
        if let number = row.number(0) { numbers.insert(number) }
      }
      return numbers
    } catch {
      if connection.isRefused { throw error }
      return nil
    }
  }
}

/// The salt of the records that iOS 10.0 sealed one by one, as the table `Properties` of the list has it.
enum RecordSalt: Sendable, Equatable {
  case bytes([UInt8])
  /// There is none, or none that a device writes.
  case unusable(reason: String)

  /// Bytes of the longest salt that is taken. Devices write a few.
  static let maximumByteCount = 1024

  init(_ values: [[UInt8]?]) {
    let name = "\(StoredPart.database.path) encrypts its records and has"
    switch values.count {
    case 0: self = .unusable(reason: "\(name) no salt for them")
    case 1:
      guard let salt = values[0] else {
        self = .unusable(reason: "\(name) a salt for them that is neither data nor text")
        return
      }
      self =
        (1...Self.maximumByteCount).contains(salt.count)
        ? .bytes(salt) : .unusable(reason: "\(name) a salt of \(HumanReadable.count(salt.count, "byte")) for them")
    default: self = .unusable(reason: "\(name) several salts for them")
    }
  }
}

/// Reads what a row says of its file: a keyed archive in clear, or one that iOS 10.0 sealed.
struct RecordReader: Sendable {
  /// `nil` if no record can be opened.
  let key: ManifestRecordKey?

  /// What stands in a row's last column.
  enum Record: Sendable, Hashable {
    case none
    case archive([UInt8])
    /// One that is there and cannot be had.
    case closed(reason: String)
  }

  static let plistMagic = Array("bplist00".utf8)

  /// The record in a column. Each row decides for itself whether it is sealed.
  func record(in row: borrowing UntrustedRow, _ column: Int32) -> Record {
    guard let stored = row.bytes(column) else { return .none }
    guard let key, !stored.starts(with: Self.plistMagic), !stored.isEmpty else {
      // A text is a record only where it stands for sealed bytes.
      return row.data(column) == nil ? .none : .archive(stored)
    }
    do throws(DataProtectionError) {
      return .archive(try key.open(Self.sealedBytes(stored)))
    } catch {
      return .closed(reason: error.reason)
    }
  }

  /// Returns the file record in a column of a row; `nil` if there is none, or if it cannot be read.
  func file(in row: borrowing UntrustedRow, _ column: Int32) -> FileRecord? {
    guard case .archive(let bytes) = record(in: row, column) else { return nil }
    return try? FileRecord(archive: bytes)
  }

  /// Devices wrote sealed records in base64; some copies hold the bytes themselves.
  private static func sealedBytes(_ stored: [UInt8]) -> [UInt8] { Base64Digits.bytes(of: stored) ?? stored }
}
