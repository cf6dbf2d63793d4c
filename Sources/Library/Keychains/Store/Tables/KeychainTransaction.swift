package import Basics
import GRDB
package import KeychainCrypto
import KeychainFormats
import KeychainRules

/// Operations on the item tables within a transaction. All changes write complete rows through this type.
package struct KeychainTransaction {
  let database: Database
  let shouldContinue: @Sendable () -> Bool

  /// Checks whether the change was stopped. Called between the items of a large change.
  ///
  /// - Throws: `.cancelled`. The transaction must then be rolled back, as after every error.
  func checkCancellation() throws(KeyhaulError) {
    guard shouldContinue() else { throw KeyhaulError(.cancelled, "it was stopped; no item was changed") }
  }

  /// Returns the row with these primary-key columns, or `nil` if there is none.
  func row(_ kind: ItemKind, primaryKey: [ColumnValue]) throws(KeyhaulError) -> RawRow? {
    let table = KeychainTable.table(of: kind)
    var rawRow: RawRow?
    try database.forEachRow(table.selectByPrimaryKeySQL, primaryKey) { row in rawRow = table.read(row) }
    return rawRow
  }

  /// Calls the closure with each row in the order of row numbers. An error of the closure ends the iteration.
  func forEachRow(
    _ kind: ItemKind, _ condition: RowCondition, _ body: (RawRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try scanRows(kind, condition) { (raw) throws(KeyhaulError) in
      try body(raw)
      return true
    }
  }

  /// Calls the closure with each row until it returns `false`.
  func scanRows(
    _ kind: ItemKind, _ condition: RowCondition, _ body: (RawRow) throws(KeyhaulError) -> Bool
  ) throws(KeyhaulError) {
    let table = KeychainTable.table(of: kind)
    try database.scanRows(table.selectSQL + condition.clause, condition.arguments) { row in
      try body(table.read(row))
    }
  }

  func count(_ kind: ItemKind, _ condition: RowCondition) throws(KeyhaulError) -> Int {
    let rows = try database.columnValues(
      sql: "SELECT count(*) FROM \(kind.rawValue)" + condition.clause, condition.arguments)
    return rows.first?.first?.integerValue.flatMap { Int(exactly: $0) } ?? 0
  }

  /// Inserts a row.
  ///
  /// - Returns: The new row's number, or `nil` if there is a row with this primary key.
  func insert(_ row: WritableRow) throws(KeyhaulError) -> Int64? {
    do {
      try database.run(KeychainTable.table(of: row.kind).insertSQL, row.columns)
    } catch {
      if error.code == .duplicateItem { return nil }
      throw error
    }
    return database.lastInsertedRowID
  }

  /// Writes all columns of a row again. The row's number stays the same.
  func overwrite(_ rowID: Int64, with row: WritableRow) throws(KeyhaulError) {
    try database.run(KeychainTable.table(of: row.kind).overwriteSQL, row.columns + [.integer(rowID)])
  }

  func delete(_ reference: RowReference) throws(KeyhaulError) {
    try database.run(KeychainTable.table(of: reference.kind).deleteSQL, [.integer(reference.rowID)])
  }
}

extension KeychainTransaction {
  /// The number of new rows in a table below which its indexes cost next to nothing.
  private static let bulkThreshold = 2_000
  /// The page cache for a change of very many items, in KiB. Each item changes a random page of every index, and pages
  /// that are not in the cache go to the log and are read again. A restore of 100,000 items takes as long with 5 MiB as
  /// with 8.
  static let bulkCacheKilobytes = 5 << 10
  /// The page cache for each new row, in bytes, if that results in a cache larger than `bulkCacheKilobytes`. Without
  /// it, most pages of a million rows would be read repeatedly: a restore of a million rows took 71 s of CPU time with
  /// this size and 81 s with 5 MiB.
  private static let cacheByteCountPerRow = 48

  /// Runs a closure that adds one row for each element of `kinds`. If a table gets thousands of rows and grows to at
  /// least three times its size, its indexes are dropped and created again afterwards. That takes half the time of
  /// updating the indexes for every row. The closure can still find rows by number or primary key.
  func addingInBulk(
    _ kinds: some Sequence<ItemKind>, _ body: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let counts = Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +)
    let kilobytes = counts.values.reduce(0, +) * Self.cacheByteCountPerRow / 1024
    var droppedIndexes: [KeychainSchema.Object] = []
    if kilobytes > Self.bulkCacheKilobytes { try database.run("PRAGMA cache_size = -\(kilobytes)") }
    for kind in ItemKind.allCases where try exceedsBulkThreshold(kind, adding: counts[kind] ?? 0) {
      for index in KeychainSchema.indexes(of: kind) {
        try database.run("DROP INDEX \(index.name)")
        droppedIndexes.append(index)
      }
    }
    try body()
    for index in droppedIndexes {
      try checkCancellation()
      try database.run(index.sql)
    }
    try checkCancellation()
  }

  private func exceedsBulkThreshold(_ kind: ItemKind, adding count: Int) throws(KeyhaulError) -> Bool {
    guard count >= Self.bulkThreshold else { return false }
    return try self.count(kind, RowCondition()) <= count / 2
  }
}

extension KeychainTransaction {
  /// Returns the rows that a deletion deletes, ignoring the query's limit.
  func rowsToDelete(_ query: ItemQuery, keys: ClassKeys) throws(KeyhaulError) -> [KeychainRow] {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      switch row.content {
      case .item(let item):
        if query.matches(item) { rows.append(row) }
      case .fault(let fault):
        if query.condition == nil {
          rows.append(row)
        } else if !fault.isPermanent {
          throw KeyhaulError(fault)
        }
      }
    }
    return rows
  }

  /// Calls the closure with each matching row, decrypted, one kind after the other.
  package func forEachRow(
    matching query: ItemQuery, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try scanRows(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      try body(row)
      return true
    }
  }

  /// Calls the closure with each matching row, decrypted, until it returns `false`.
  package func scanRows(
    matching query: ItemQuery, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Bool
  ) throws(KeyhaulError) {
    var remaining = query.limit
    var wantsMoreRows = true
    for kind in query.kind.map({ [$0] }) ?? ItemKind.allCases where wantsMoreRows {
      guard let condition = try RowCondition(query, kind: kind, limit: remaining) else { continue }
      try scanRows(kind, condition) { (raw) throws(KeyhaulError) in
        if let limit = remaining { remaining = limit - 1 }
        wantsMoreRows = try body(try RowEncryption.decrypt(raw, keys: keys))
        return wantsMoreRows
      }
    }
  }
}

extension KeychainTransaction {
  /// Returns pairs of a certificate and a private key that match the two queries and have the same public-key hash.
  package func identities(
    certificates: ItemQuery, keys: ItemQuery, limit: Int?
  ) throws(KeyhaulError) -> [(certificate: RowReference, key: RowReference)] {
    guard let key = try RowCondition(keys, kind: .key),
      let certificate = try RowCondition(certificates, kind: .certificate)
    else { return [] }
    let rows = try database.columnValues(
      sql: """
        SELECT c.rowid, k.rowid FROM (SELECT rowid, klbl FROM keys\(key.clause)) k
        JOIN (SELECT rowid, pkhh FROM cert\(certificate.clause)) c ON c.pkhh = k.klbl
        ORDER BY k.rowid, c.rowid LIMIT \(limit ?? -1)
        """, key.arguments + certificate.arguments)
    return rows.compactMap { row in
      guard let certificate = row[0].integerValue, let key = row[1].integerValue else { return nil }
      return (RowReference(kind: .certificate, rowID: certificate), RowReference(kind: .key, rowID: key))
    }
  }
}
