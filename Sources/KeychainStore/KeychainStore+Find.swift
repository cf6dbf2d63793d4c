public import DataProtection
import KeychainFormats

extension KeychainStore {
  /// The items that a query means, opened.
  ///
  /// Rows that cannot be decoded are passed over and reported; one whose key is locked ends the search, as it does on
  /// a device. An item whose sealed access group is not among the asked-for ones does not count, whatever its column says.
  ///
  /// - Throws: `.interactionNotAllowed`, `.noSuchAttribute`, `.parameter`. Finding nothing is no error.
  public func find(_ query: ItemQuery, keys: borrowing ClassKeys) throws(KeychainStoreError) -> FoundItems {
    try read { (transaction) throws(KeychainStoreError) in
      var items: [StoredItem] = []
      var undecodable: [KeychainRow] = []
      try transaction.forEachRow(matching: query, keys: keys) { (row) throws(KeychainStoreError) in
        switch row.content {
        case .fault(let fault):
          guard fault.isPermanent else { throw KeychainStoreError(fault) }
          undecodable.append(row)
        case .item(var item):
          guard query.admits(item) else { return }
          if !query.wantsSecret { item.secrets = [:] }
          items.append(StoredItem(summary: row.summary, item: item))
        }
      }
      return FoundItems(items: items, undecodable: undecodable)
    }
  }

  /// The rows that `delete` would delete, those among them that cannot be opened. The query's limit does not count.
  ///
  /// - Throws: `.interactionNotAllowed` where the query has a condition and the key of a row is locked.
  public func rows(
    matching query: ItemQuery, keys: borrowing ClassKeys
  ) throws(KeychainStoreError) -> [KeychainRow] {
    try read { (transaction) throws(KeychainStoreError) in
      try transaction.rowsToDelete(query, keys: keys).map { row in
        guard !query.wantsSecret, var item = row.item else { return row }
        item.secrets = [:]
        return KeychainRow(summary: row.summary, content: .item(item))
      }
    }
  }
}

extension ItemQuery {
  /// The access group inside the seal decides; the column can be changed by anyone who can write the file.
  func admits(_ item: KeychainItem) -> Bool {
    if let condition, !condition(item) { return false }
    return switch accessGroups {
    case .all: true
    case .only(let groups): item.accessGroup.map(groups.contains) ?? false
    }
  }
}

extension KeychainTransaction {
  func rowsToDelete(_ query: ItemQuery, keys: borrowing ClassKeys) throws(KeychainStoreError) -> [KeychainRow] {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeychainStoreError) in
      switch row.content {
      case .item(let item):
        if query.admits(item) { rows.append(row) }
      case .fault(let fault):
        if query.condition == nil {
          rows.append(row)
        } else if !fault.isPermanent {
          throw KeychainStoreError(fault)
        }
      }
    }
    return rows
  }

  /// Opens the rows that a query means, kind by kind.
  func forEachRow(
    matching query: ItemQuery, keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Void
  ) throws(KeychainStoreError) {
    try walkRows(matching: query, keys: keys) { (row) throws(KeychainStoreError) in
      try body(row)
      return true
    }
  }

  /// The same until the closure returns false.
  func walkRows(
    matching query: ItemQuery, keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Bool
  ) throws(KeychainStoreError) {
    var remaining = query.limit
    var goesOn = true
    for kind in query.kind.map({ [$0] }) ?? ItemKind.allCases where goesOn {
      guard let condition = try RowCondition(query, kind: kind, limit: remaining) else { continue }
      try walkRows(kind, condition) { (raw) throws(KeychainStoreError) in
        if let limit = remaining { remaining = limit - 1 }
        goesOn = try body(try RowSealing.open(raw, keys: keys))
        return goesOn
      }
    }
  }
}
