import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules

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
  package func forEachRow(
    matching query: ItemQuery, keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Void
  ) throws(KeychainStoreError) {
    try walkRows(matching: query, keys: keys) { (row) throws(KeychainStoreError) in
      try body(row)
      return true
    }
  }

  /// The same until the closure returns false.
  package func walkRows(
    matching query: ItemQuery, keys: borrowing ClassKeys, _ body: (KeychainRow) throws(KeychainStoreError) -> Bool
  ) throws(KeychainStoreError) {
    var remaining = query.limit
    var shouldContinue = true
    for kind in query.kind.map({ [$0] }) ?? ItemKind.allCases where shouldContinue {
      guard let condition = try RowCondition(query, kind: kind, limit: remaining) else { continue }
      try walkRows(kind, condition) { (raw) throws(KeychainStoreError) in
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
  ) throws(KeychainStoreError) -> [(certificate: RowReference, key: RowReference)] {
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
