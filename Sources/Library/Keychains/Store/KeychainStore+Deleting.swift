package import Basics
import GRDB
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Deletes every matching item. The query's limit is ignored. Keys are needed only to leave tombstones: an item that
  /// cannot be decrypted is deleted without leaving a tombstone.
  ///
  /// - Returns: The number of deleted items.
  /// - Throws: `.itemNotFound` if nothing matches; `.cancelled`.
  @discardableResult
  package func delete(
    _ query: ItemQuery, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy = .forbid,
    random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    try write { (transaction) throws(KeyhaulError) in
      let deletedRows = try transaction.rowsToDelete(query, keys: keys)
      guard !deletedRows.isEmpty else { throw .nothingMatches }
      for row in deletedRows {
        try transaction.checkCancellation()
        try transaction.delete(row, keys: keys, now: now, tombstones: tombstones, random: random)
      }
      return deletedRows.count
    }
  }

  /// Deletes rows by number, without keys and without leaving tombstones. This is for rows that a search reported as
  /// undecodable, and for rows of a class whose key no longer exists.
  package func remove(_ rows: [RowReference]) throws(KeyhaulError) {
    try write { (transaction) throws(KeyhaulError) in
      for row in rows { try transaction.delete(row) }
    }
  }

  /// Deletes every row of a protection class, including tombstones, as destroying the class key does.
  ///
  /// - Returns: The number of deleted rows.
  @discardableResult
  package func removeAll(protectedBy protection: ProtectionClass) throws(KeyhaulError) -> Int {
    try write { (transaction) throws(KeyhaulError) in
      var count = 0
      for kind in ItemKind.allCases {
        try transaction.database.run("DELETE FROM \(kind.rawValue) WHERE pdmn=?", [.text(protection.rawValue)])
        count += transaction.database.changesCount
      }
      return count
    }
  }
}

extension KeychainTransaction {
  fileprivate func delete(
    _ row: KeychainRow, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeyhaulError) {
    let reference = row.summary.reference
    guard let item = row.item, tombstones.leavesTombstone(of: item) else {
      return try delete(reference)
    }
    let tombstone = try WritableRow(encrypting: Tombstone.make(for: item, at: now), keys: keys, random: random)
    try overwrite(reference.rowID, with: tombstone)
  }
}
