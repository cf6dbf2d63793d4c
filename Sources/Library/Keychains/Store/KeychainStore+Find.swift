import Basics
public import KeychainCrypto
import KeychainFormats
import KeychainRules

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
