package import Basics
import GRDB
package import KeychainCrypto
import KeychainFormats
import KeychainRules

extension KeychainStore {
  /// Returns the matching items, decrypted.
  ///
  /// Rows that can never be decrypted are skipped and reported. A row whose class key is not in memory ends the search,
  /// as on a device. An item matches an access group only if both its column and the encrypted item name the group.
  ///
  /// - Throws: `.interactionNotAllowed` if the class key of a row is not in memory, `.notAvailable` if there is no such
  ///   key, `.noSuchAttribute`, `.parameter`. An empty result is not an error.
  package func find(_ query: ItemQuery, keys: ClassKeys) throws(KeyhaulError) -> QueryResult {
    try read { (transaction) throws(KeyhaulError) in
      var items: [StoredItem] = []
      var undecodableRows: [KeychainRow] = []
      try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
        switch row.content {
        case .fault(let fault):
          guard fault.isPermanent else { throw KeyhaulError(fault) }
          undecodableRows.append(row)
        case .item(var item):
          guard query.matches(item) else { return }
          if !query.wantsSecret { item.secrets = [:] }
          items.append(StoredItem(summary: row.summary, item: item))
        }
      }
      return QueryResult(items: items, undecodableRows: undecodableRows)
    }
  }

  /// Returns the rows that `delete` would delete, including those that cannot be decrypted. The query's limit is
  /// ignored.
  ///
  /// - Throws: `.interactionNotAllowed` or `.notAvailable` if the query has a condition and the class key of a row is
  ///   missing.
  package func rows(
    matching query: ItemQuery, keys: ClassKeys
  ) throws(KeyhaulError) -> [KeychainRow] {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.rowsToDelete(query, keys: keys).map { row in
        guard !query.wantsSecret, var item = row.item else { return row }
        item.secrets = [:]
        return KeychainRow(summary: row.summary, content: .item(item))
      }
    }
  }
}

extension KeychainStore {
  /// Calls the closure with every row of the single user, decrypted. The order is generic passwords, internet passwords,
  /// certificates, keys, and by row number within each kind. A row that cannot be decrypted is passed with its fault.
  package func forEachRow(
    includingTombstones: Bool, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.forEachDecryptedRow(.singleUser(includingTombstones: includingTombstones), keys: keys, body)
    }
  }

  /// Calls the closure with every row of every user, including tombstones: all rows that a restore may remove or
  /// replace.
  package func forEachRowOfEveryUser(
    keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try read { (transaction) throws(KeyhaulError) in
      try transaction.forEachDecryptedRow(RowCondition(), keys: keys, body)
    }
  }

  /// Returns every row of the single user. The secrets of the rows stay in memory as long as the array does.
  package func rows(includingTombstones: Bool, keys: ClassKeys) throws(KeyhaulError) -> [KeychainRow] {
    var rows: [KeychainRow] = []
    try forEachRow(includingTombstones: includingTombstones, keys: keys) { rows.append($0) }
    return rows
  }

  /// Returns the column values of every row of the single user, without any key.
  package func rowSummaries(includingTombstones: Bool) throws(KeyhaulError) -> [RowSummary] {
    try read { (transaction) throws(KeyhaulError) in
      var summaries: [RowSummary] = []
      for kind in ItemKind.allCases {
        try transaction.forEachRow(kind, .singleUser(includingTombstones: includingTombstones)) {
          summaries.append($0.summary)
        }
      }
      return summaries
    }
  }
}

extension KeychainStore {
  /// Returns the indexes of rows among all items without tombstones, in the order in which a backup numbers them.
  /// Rows that do not exist are omitted. Memory use depends only on the number of requested rows.
  package func indexes(of rows: Set<RowReference>) throws(KeyhaulError) -> [RowReference: Int] {
    guard !rows.isEmpty else { return [:] }
    return try read { (transaction) throws(KeyhaulError) in
      var indexes: [RowReference: Int] = [:]
      var index = 0
      for kind in ItemKind.allCases {
        let condition = RowCondition.singleUser(includingTombstones: false)
        try transaction.database.forEachRow(
          "SELECT rowid FROM \(kind.rawValue)" + condition.clause, condition.arguments
        ) { row in
          let reference = RowReference(kind: kind, rowID: row.columnValue(0).integerValue ?? 0)
          if rows.contains(reference) { indexes[reference] = index }
          index += 1
        }
      }
      return indexes
    }
  }
}

extension KeychainTransaction {
  func forEachDecryptedRow(
    _ condition: RowCondition, keys: ClassKeys, _ body: (KeychainRow) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    for kind in ItemKind.allCases {
      try forEachRow(kind, condition) { (raw) throws(KeyhaulError) in
        try body(try RowEncryption.decrypt(raw, keys: keys))
      }
    }
  }
}
