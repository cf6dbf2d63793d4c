package import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Updates every matching item, or none. The query's limit is ignored. Rows that cannot be decoded are deleted, as on
  /// a device.
  ///
  /// - Returns: The number of updated items.
  /// - Throws: `.itemNotFound` if no item was updated (undecodable rows are deleted nevertheless); `.duplicateItem` if
  ///   an updated item conflicts with another one; `.interactionNotAllowed`, `.authFailed`, `.noSuchAttribute`,
  ///   `.parameter`, `.cancelled`.
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

/// An item before and after an update.
private struct UpdateStep {
  let old: KeychainItem
  let new: KeychainItem
  let rowID: Int64
}

extension KeychainTransaction {
  /// Updates every matching item.
  ///
  /// - Returns: The number of updated items.
  func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy, random: any RandomSource
  ) throws(KeyhaulError) -> Int {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeyhaulError) in
      try checkCancellation()
      if let item = row.item, !query.matches(item) { return }
      rows.append(row)
    }
    var count = 0
    for row in rows {
      try checkCancellation()
      switch row.content {
      case .fault(let fault):
        guard fault.isPermanent else { throw KeyhaulError(fault) }
        if query.condition == nil { try delete(row.summary.reference) }
      case .item(let item):
        let updated = try translatingRuleErrors(try changes.applied(to: item, now: now))
        let step = UpdateStep(old: item, new: updated, rowID: row.summary.reference.rowID)
        try apply(step, keys: keys, now: now, tombstones: tombstones, random: random)
        count += 1
      }
    }
    return count
  }

  /// Writes an updated item. If its primary key changes, the item becomes a new record, and a tombstone may be added
  /// with the old key.
  fileprivate func apply(
    _ step: UpdateStep, keys: ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeyhaulError) {
    var new = step.new
    let changesPrimaryKey = try translatingRuleErrors(try PrimaryKey(of: step.old) != PrimaryKey(of: step.new))
    let leavesTombstone = changesPrimaryKey && tombstones.leavesTombstone(of: step.old)
    if leavesTombstone { new[.uuid] = .string(try translatingRuleErrors(try NewItemDefaults.randomUUIDText(random))) }
    let row = try WritableRow(encrypting: new, keys: keys, random: random)
    if changesPrimaryKey { try removeConflictingRow(for: row, except: step.rowID, keys: keys) }
    try overwrite(step.rowID, with: row)
    guard leavesTombstone else { return }
    var tombstone = Tombstone.make(for: step.old, at: now)
    tombstone[.persistentReference] = .data(
      try translatingRuleErrors(try NewItemDefaults.randomBytes(random, count: PersistentReference.uuidByteCount)))
    guard try insert(WritableRow(encrypting: tombstone, keys: keys, random: random)) != nil else {
      throw KeyhaulError(.storeDamaged, "cannot change the item: another item already has these attributes")
    }
  }

  /// Deletes a tombstone or corrupt row that has the new primary key of an updated item.
  ///
  /// - Throws: `.duplicateItem` if the row is an item.
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
