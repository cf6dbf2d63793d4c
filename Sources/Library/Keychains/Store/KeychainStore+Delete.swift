public import Basics
import GRDB
public import KeychainCrypto
public import KeychainFormats
public import KeychainRules

extension KeychainStore {
  /// Deletes every item that a query means. Its limit does not count. Keys are needed for tombstones alone: an item
  /// that cannot be opened is deleted all the same and leaves none.
  ///
  /// - Returns: How many items are gone.
  /// - Throws: `.itemNotFound` where there was none; `.cancelled`.
  @discardableResult
  public func delete(
    _ query: ItemQuery, keys: borrowing ClassKeys, now: KeychainDate, tombstones: TombstonePolicy = .forbid,
    random: any RandomSource
  ) throws(KeychainStoreError) -> Int {
    try write { (transaction) throws(KeychainStoreError) in
      let deletedRows = try transaction.rowsToDelete(query, keys: keys)
      guard !deletedRows.isEmpty else { throw .nothingMatches }
      for row in deletedRows {
        try transaction.requireGoingOn()
        try transaction.delete(row, keys: keys, now: now, tombstones: tombstones, random: random)
      }
      return deletedRows.count
    }
  }

  /// Deletes rows by their place, without keys and tombstones: what a search reported as undecodable, or the rows of a
  /// class whose key is gone for good.
  public func remove(_ rows: [RowReference]) throws(KeychainStoreError) {
    try write { (transaction) throws(KeychainStoreError) in
      for row in rows { try transaction.delete(row) }
    }
  }

  /// Deletes every row of a protection class, tombstones too, as destroying its key does.
  ///
  /// - Returns: How many rows are gone.
  @discardableResult
  public func removeAll(protectedBy protection: ProtectionClass) throws(KeychainStoreError) -> Int {
    try write { (transaction) throws(KeychainStoreError) in
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
    _ row: KeychainRow, keys: borrowing ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeychainStoreError) {
    let reference = row.summary.reference
    guard let item = row.item, tombstones.leavesTombstone(of: item) else {
      return try delete(reference)
    }
    let tombstone = try WritableRow(sealing: Tombstone.of(item, now: now), keys: keys, random: random)
    try overwrite(reference.rowID, with: tombstone)
  }
}
