import Basics

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
