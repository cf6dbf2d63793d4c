public import Basics
public import KeychainCrypto
import KeychainFormats
public import KeychainRules

extension KeychainStore {
  /// Changes every item that a query means, all or none. Its limit does not count. A row that cannot be decoded is
  /// deleted on the way, as on a device.
  ///
  /// - Returns: How many items were changed.
  /// - Throws: `.itemNotFound` where nothing was (undecodable rows are gone all the same); `.duplicateItem` where a
  ///   changed item meets another; `.interactionNotAllowed`, `.authFailed`, `.noSuchAttribute`, `.parameter`, `.cancelled`.
  @discardableResult
  public func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: borrowing ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy = .forbid, random: any RandomSource
  ) throws(KeychainStoreError) -> Int {
    let count = try write { (transaction) throws(KeychainStoreError) in
      try transaction.update(query, with: changes, keys: keys, now: now, tombstones: tombstones, random: random)
    }
    guard count > 0 else { throw .nothingMatches }
    return count
  }
}

extension KeychainStoreError {
  static var nothingMatches: KeychainStoreError { KeychainStoreError(.itemNotFound, "nothing matches the search") }
}

/// One item before and after.
private struct UpdateStep {
  let old: KeychainItem
  let new: KeychainItem
  let rowID: Int64
}

extension KeychainTransaction {
  /// - Returns: How many items were changed.
  func update(
    _ query: ItemQuery, with changes: ItemChanges, keys: borrowing ClassKeys, now: KeychainDate,
    tombstones: TombstonePolicy, random: any RandomSource
  ) throws(KeychainStoreError) -> Int {
    var query = query
    query.limit = nil
    var rows: [KeychainRow] = []
    try forEachRow(matching: query, keys: keys) { (row) throws(KeychainStoreError) in
      try requireGoingOn()
      if let item = row.item, !query.admits(item) { return }
      rows.append(row)
    }
    var count = 0
    for row in rows {
      try requireGoingOn()
      switch row.content {
      case .fault(let fault):
        guard fault.isPermanent else { throw KeychainStoreError(fault) }
        if query.condition == nil { try delete(row.summary.reference) }
      case .item(let item):
        let changed = try byRule(try changes.applied(to: item, now: now))
        let step = UpdateStep(old: item, new: changed, rowID: row.summary.reference.rowID)
        try carryOut(step, keys: keys, now: now, tombstones: tombstones, random: random)
        count += 1
      }
    }
    return count
  }

  /// An item that gets another primary key may leave a tombstone under the old one, and then becomes a new record.
  fileprivate func carryOut(
    _ step: UpdateStep, keys: borrowing ClassKeys, now: KeychainDate, tombstones: TombstonePolicy,
    random: any RandomSource
  ) throws(KeychainStoreError) {
    var new = step.new
    let moves = try byRule(try PrimaryKey(of: step.old) != PrimaryKey(of: step.new))
    let leavesTombstone = moves && tombstones.leavesTombstone(of: step.old)
    if leavesTombstone { new[.uuid] = .string(try byRule(try NewItem.randomUUIDText(random))) }
    let row = try WritableRow(sealing: new, keys: keys, random: random)
    if moves { try removeConflictingRow(for: row, except: step.rowID, keys: keys) }
    try overwrite(step.rowID, with: row)
    guard leavesTombstone else { return }
    var tombstone = Tombstone.of(step.old, now: now)
    tombstone[.persistentReference] = .data(try byRule(try NewItem.randomBytes(random, count: 16)))
    guard try insert(WritableRow(sealing: tombstone, keys: keys, random: random)) != nil else {
      throw KeychainStoreError(.damaged, "the new position of a moved item is taken")
    }
  }

  /// A tombstone or corrupt row that an update runs into goes; a living item is a duplicate.
  private func removeConflictingRow(
    for row: WritableRow, except rowID: Int64, keys: borrowing ClassKeys
  ) throws(KeychainStoreError) {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey),
      existing.summary.reference.rowID != rowID
    else { return }
    switch try ExistingRow(try RowSealing.open(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeychainStoreError(.duplicateItem, "a \(row.kind.reportName) with the same primary key exists")
    case .corrupt, .tombstone: try delete(existing.summary.reference)
    }
  }
}
