import Basics
public import KeychainCrypto
import KeychainFormats
import KeychainRules

extension KeychainStore {
  /// Walks through all rows of the single user, opened: generic passwords, internet passwords, certificates, keys, each
  /// in the order of its row numbers. A row that does not open is handed over with its fault.
  public func forEachRow(
    includingTombstones: Bool, keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Void
  ) throws(KeychainStoreError) {
    try read { (transaction) throws(KeychainStoreError) in
      try transaction.forEachOpenedRow(.singleUser(includingTombstones: includingTombstones), keys: keys, body)
    }
  }

  /// The same of every user, tombstones included: all rows that a restore can remove or meet.
  public func forEachRowOfEveryUser(
    keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Void
  ) throws(KeychainStoreError) {
    try read { (transaction) throws(KeychainStoreError) in
      try transaction.forEachOpenedRow(RowCondition(), keys: keys, body)
    }
  }

  /// The same rows at once. Their secrets stay in memory as long as the array does.
  public func rows(includingTombstones: Bool, keys: borrowing ClassKeys) throws(KeychainStoreError) -> [KeychainRow] {
    var rows: [KeychainRow] = []
    try forEachRow(includingTombstones: includingTombstones, keys: keys) { rows.append($0) }
    return rows
  }

  /// What the columns of the same rows say; needs no key.
  public func rowSummaries(includingTombstones: Bool) throws(KeychainStoreError) -> [RowSummary] {
    try read { (transaction) throws(KeychainStoreError) in
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
  /// The place of each of these rows among all items, tombstones apart, in the order in which a backup numbers them; a
  /// row that is not there has none. Needs no key, and memory for the wanted rows alone.
  public func places(of rows: Set<RowReference>) throws(KeychainStoreError) -> [RowReference: Int] {
    guard !rows.isEmpty else { return [:] }
    return try read { (transaction) throws(KeychainStoreError) in
      var places: [RowReference: Int] = [:]
      var place = 0
      for kind in ItemKind.allCases {
        let condition = RowCondition.singleUser(includingTombstones: false)
        try transaction.database.forEachRow(
          "SELECT rowid FROM \(kind.rawValue)" + condition.clause, condition.arguments
        ) { row in
          let reference = RowReference(kind: kind, rowID: row.columnValue(0).integerValue ?? 0)
          if rows.contains(reference) { places[reference] = place }
          place += 1
        }
      }
      return places
    }
  }
}

extension KeychainTransaction {
  func forEachOpenedRow(
    _ condition: RowCondition, keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Void
  ) throws(KeychainStoreError) {
    for kind in ItemKind.allCases {
      try forEachRow(kind, condition) { (raw) throws(KeychainStoreError) in
        try body(try RowSealing.open(raw, keys: keys))
      }
    }
  }
}
