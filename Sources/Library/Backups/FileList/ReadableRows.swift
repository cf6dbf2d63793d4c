import Basics
import KeychainFormats

/// The rows of a damaged table `Files` that can be read, each tried for itself.
struct ReadableRows: Sendable {
  /// The numbers of the rows that can be read, ascending.
  let numbers: [Int64]
  /// Rows that an index names, or the table itself, and that cannot be read; `nil` where neither can be gone through.
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
    of connection: DefensiveConnection, byteCount: Int, columns: String, reason: String
  ) throws(BackupArchiveError) {
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
    _ query: String, _ connection: DefensiveConnection
  ) throws(BackupArchiveError) -> Bool {
    var isRead = false
    do throws(BackupArchiveError) {
      try connection.forEachRow(query) { _ in isRead = true }
    } catch {
      if let refusal = connection.refusal { throw refusal }
    }
    return isRead
  }

  /// - Throws: As `isReadable` does.
  /// - Returns: `nil` where they cannot be read to their end, or are more than a list may have.
  private static func numbers(
    of connection: DefensiveConnection, _ order: String
  ) throws(BackupArchiveError) -> Set<Int64>? {
    var numbers: Set<Int64> = []
    var meter = FileList.RowMeter()
    do throws(BackupArchiveError) {
      try connection.forEachRow("SELECT rowid FROM Files \(order)") { (row) throws(BackupArchiveError) in
        try meter.add()
        if let number = row.number(0) { numbers.insert(number) }
      }
      return numbers
    } catch {
      if let refusal = connection.refusal { throw refusal }
      return nil
    }
  }
}
