package import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Updates every matching item, or none if there is an error. The query's limit is ignored.
  ///
  /// Rows that can never be decrypted are deleted, as on a device. If the query has a condition, such rows are skipped
  /// instead, because the condition cannot be checked.
  ///
  /// - Returns: The number of updated items.
  /// - Throws: `.itemNotFound` if no item matches (rows that can never be decrypted are deleted nevertheless);
  ///   `.duplicateItem` if an updated item has the primary key of another item; `.interactionNotAllowed` if the class key
  ///   of a row is not in memory; `.authFailed` if an item's class requires a passcode and no passcode is set;
  ///   `.noSuchAttribute` or `.parameter` if an item cannot have the changes; `.cancelled`.
  @discardableResult
  package func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy = .forbid, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    let count = try write { (transaction) throws(KeyhaulError) in
      try transaction.update(query, with: changes, keys: keys, now: now, tombstones: tombstones, random: random)
    }
    guard count > 0 else { throw .nothingMatches }
    return count
  }
}

extension KeyhaulError {
  static var nothingMatches: KeyhaulError { KeyhaulError(.itemNotFound, "nothing matches the search") }
}

/// A row's item before and after an update.
private struct ItemRevision {
  let old: KeychainItem
  let new: KeychainItem
  let rowID: Int64
}

extension KeychainTransaction {
  /// Updates every matching item. `KeychainStore.update` documents the treatment of rows that can never be decrypted, and
  /// the errors.
  ///
  /// - Returns: The number of updated items, which may be 0.
  func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    var query = query
    query.limit = nil
    // The scan ends before the first change, so it cannot encounter a row that was updated.
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      try checkCancellation()
      // Only the columns were compared until now, and they are not authenticated.
      if let item = row.item, !query.matches(item) { return }
      rows.append(row)
    }
    var updatedCount = 0
    for row in rows {
      try checkCancellation()
      switch row.content {
      case .fault(let fault):
        guard fault.isPermanent else { throw KeyhaulError(fault) }
        if query.condition == nil { try delete(row.summary.reference) }
      case .item(let item):
        let updated = try translatingRuleErrors(try changes.applied(to: item, now: now))
        let revision = ItemRevision(old: item, new: updated, rowID: row.summary.reference.rowID)
        try write(revision, keys: keys, now: now, tombstones: tombstones, random: random)
        updatedCount += 1
      }
    }
    return updatedCount
  }

  /// Writes an updated item to its row.
  ///
  /// If the primary key changes, the policy may require a tombstone with the old key. The item then gets a new UUID and
  /// keeps its persistent reference. The tombstone keeps the old UUID and gets a new persistent reference.
  private func write(
    _ revision: ItemRevision, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeyhaulError) {
    var new = revision.new
    let changesPrimaryKey = try translatingRuleErrors(try PrimaryKey(of: revision.old) != PrimaryKey(of: revision.new))
    let leavesTombstone = changesPrimaryKey && tombstones.leavesTombstone(of: revision.old)
    if leavesTombstone { new[.uuid] = .string(try translatingRuleErrors(try NewItemDefaults.randomUUIDText(random))) }
    let row = try WritableRow(encrypting: new, keys: keys, random: random)
    if changesPrimaryKey { try removeConflictingRow(for: row, except: revision.rowID, keys: keys) }
    try overwrite(revision.rowID, with: row)
    guard leavesTombstone else { return }
    var tombstone = Tombstone.make(for: revision.old, at: now)
    tombstone[.persistentReference] = .data(
      try translatingRuleErrors(try NewItemDefaults.randomBytes(random, count: PersistentReference.uuidByteCount)))
    // The row had the old primary key until now, so another row with this key means that the database is damaged.
    guard try insert(WritableRow(encrypting: tombstone, keys: keys, random: random)) != nil else {
      throw KeyhaulError(.storeDamaged, "cannot change the item: another item already has these attributes")
    }
  }

  /// Deletes the row that already has the new primary key of an updated item, if it is a tombstone or can never be
  /// decrypted.
  ///
  /// - Parameters:
  ///   - row: The updated item as a row.
  ///   - rowID: The number of the item's own row, which stays.
  ///   - keys: The class keys.
  /// - Throws: `.duplicateItem` if the conflicting row is an item, or cannot be decrypted now.
  private func removeConflictingRow(
    for row: WritableRow, except rowID: Int64, keys: ClassKeys
  ) throws(KeyhaulError) {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey),
      existing.summary.reference.rowID != rowID
    else { return }
    switch try ExistingRow(try RowEncryption.decrypt(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
    case .corrupt, .tombstone: try delete(existing.summary.reference)
    }
  }
}
