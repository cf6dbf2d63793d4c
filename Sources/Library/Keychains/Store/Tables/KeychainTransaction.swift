package import Basics
import GRDB
package import KeychainCrypto
import KeychainFormats
import KeychainRules

/// What can be done to the item tables inside one transaction. Everything above writes whole rows through here.
package struct KeychainTransaction {
  let database: Database
  let shouldContinue: @Sendable () -> Bool

  /// Between two items of many: ends their change where nobody waits for it any more.
  ///
  /// - Throws: `.cancelled`; the transaction then has to be taken back, as for every error.
  func requireGoingOn() throws(KeyhaulError) {
    guard shouldContinue() else { throw KeyhaulError(.cancelled, "it was stopped; no item was changed") }
  }

  /// The row that an item with these primary-key columns would collide with.
  func row(_ kind: ItemKind, primaryKey: [ColumnValue]) throws(KeyhaulError) -> RawRow? {
    let table = KeychainTable.of(kind)
    var found: RawRow?
    try database.forEachRow(table.selectByPrimaryKeySQL, primaryKey) { row in found = table.read(row) }
    return found
  }

  /// Rows in the order of their numbers; the closure's error ends the walk.
  func forEachRow(
    _ kind: ItemKind, _ condition: RowCondition, _ body: (RawRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try walkRows(kind, condition) { (raw) throws(KeyhaulError) in
      try body(raw)
      return true
    }
  }

  /// The same until the closure returns false.
  func walkRows(
    _ kind: ItemKind, _ condition: RowCondition, _ body: (RawRow) throws(KeyhaulError) -> Bool
  ) throws(KeyhaulError) {
    let table = KeychainTable.of(kind)
    try database.walkRows(table.selectSQL + condition.clause, condition.arguments) { row in
      try body(table.read(row))
    }
  }

  func count(_ kind: ItemKind, _ condition: RowCondition) throws(KeyhaulError) -> Int {
    let rows = try database.columnValues(
      sql: "SELECT count(*) FROM \(kind.rawValue)" + condition.clause, condition.arguments)
    return rows.first?.first?.integerValue.flatMap { Int(exactly: $0) } ?? 0
  }

  /// - Returns: The new row's number, or `nil` if a row with this primary key is there.
  func insert(_ row: WritableRow) throws(KeyhaulError) -> Int64? {
    do {
      try database.run(KeychainTable.of(row.kind).insertSQL, row.columns)
    } catch {
      if error.code == .duplicateItem { return nil }
      throw error
    }
    return database.lastInsertedRowID
  }

  /// Writes all columns of a row again; its number stays.
  func overwrite(_ rowID: Int64, with row: WritableRow) throws(KeyhaulError) {
    try database.run(KeychainTable.of(row.kind).overwriteSQL, row.columns + [.integer(rowID)])
  }

  func delete(_ reference: RowReference) throws(KeyhaulError) {
    try database.run(KeychainTable.of(reference.kind).deleteSQL, [.integer(reference.rowID)])
  }
}

extension KeychainTransaction {
  /// Below so many new rows of a table its indexes cost next to nothing.
  private static let fewestRows = 2_000
  /// How much of the file a change of very many items may hold in memory. Each item changes a page of every index that stays
  /// meanwhile, in no order, and pages that are not held go to the log and come back. A restore of 100,000 items takes as long
  /// with these 5 MB as with 8.
  static let bulkCacheKilobytes = 5 << 10
  /// How much of it is held for each new row, in bytes, where that is more. Most of a million rows' pages would come and go:
  /// a restore of them took 71 s of processors with these and 81 with 5 MB, in the same minutes and beside other work.
  private static let cacheByteCount = 48

  /// Does work that adds a row of each of these kinds. A table that becomes several times as large by it is without its
  /// indexes meanwhile: made of all rows at once they take half of the time that row after row takes. Rows are found by
  /// their number and by their primary key all the same.
  func adding(
    _ kinds: some Sequence<ItemKind>, _ body: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let counts = Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +)
    let kilobytes = counts.values.reduce(0, +) * Self.cacheByteCount / 1024
    var taken: [KeychainSchema.Object] = []
    if kilobytes > Self.bulkCacheKilobytes { try database.run("PRAGMA cache_size = -\(kilobytes)") }
    for kind in ItemKind.allCases where try growsByFar(kind, by: counts[kind] ?? 0) {
      for index in KeychainSchema.indexes(of: kind) {
        try database.run("DROP INDEX \(index.name)")
        taken.append(index)
      }
    }
    try body()
    for index in taken {
      try requireGoingOn()
      try database.run(index.sql)
    }
    try requireGoingOn()
  }

  private func growsByFar(_ kind: ItemKind, by count: Int) throws(KeyhaulError) -> Bool {
    guard count >= Self.fewestRows else { return false }
    return try self.count(kind, RowCondition()) <= count / 2
  }
}

extension KeychainTransaction {
  func rowsToDelete(_ query: ItemQuery, keys: ClassKeys) throws(KeyhaulError) -> [KeychainRow] {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      switch row.content {
      case .item(let item):
        if query.admits(item) { rows.append(row) }
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

  /// Opens the rows that a query means, kind by kind.
  package func forEachRow(
    matching query: ItemQuery, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try walkRows(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      try body(row)
      return true
    }
  }

  /// The same until the closure returns false.
  package func walkRows(
    matching query: ItemQuery, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Bool
  ) throws(KeyhaulError) {
    var remaining = query.limit
    var shouldContinue = true
    for kind in query.kind.map({ [$0] }) ?? ItemKind.allCases where shouldContinue {
      guard let condition = try RowCondition(query, kind: kind, limit: remaining) else { continue }
      try walkRows(kind, condition) { (raw) throws(KeyhaulError) in
        if let limit = remaining { remaining = limit - 1 }
        shouldContinue = try body(try RowSealing.open(raw, keys: keys))
        return shouldContinue
      }
    }
  }
}

extension KeychainTransaction {
  /// The rows of certificates and private keys that belong together: each a certificate that the one query means and a
  /// key that the other does, with the same hash of the public key.
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
