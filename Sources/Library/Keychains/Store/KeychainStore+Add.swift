public import Basics
public import KeychainCrypto
public import KeychainFormats
import KeychainRules

extension KeychainStore {
  /// Adds an item as `SecItemAdd` does: both dates become `now`, what may not be absent gets its default, UUID and
  /// persistent reference are drawn. A tombstone or a corrupt row with the same primary key is replaced.
  ///
  /// - Throws: `.duplicateItem`; `.interactionNotAllowed` where the class is locked; `.authFailed` for the class that
  ///   needs a passcode on a device without one; `.parameter`.
  @discardableResult
  public func add(
    _ item: KeychainItem, keys: borrowing ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeychainStoreError) -> StoredItem {
    try write { (transaction) throws(KeychainStoreError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Adds all of the items or, where one cannot be added, none.
  public func add(
    contentsOf items: [KeychainItem], keys: borrowing ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeychainStoreError) {
    try write(isBulk: true) { (transaction) throws(KeychainStoreError) in
      for item in items { _ = try transaction.addRow(item, keys: keys, now: now, random: random) }
    }
  }
}

extension KeychainTransaction {
  func add(
    _ item: KeychainItem, keys: borrowing ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeychainStoreError) -> StoredItem {
    let row = try addRow(item, keys: keys, now: now, random: random)
    guard let raw = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeychainStoreError(.damaged, "a row that was just written is missing")
    }
    return StoredItem(summary: raw.summary, item: row.item)
  }

  fileprivate func addRow(
    _ item: KeychainItem, keys: borrowing ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeychainStoreError) -> WritableRow {
    let prepared = try byRule(try NewItem.prepared(item, now: now, random: random))
    let row = try WritableRow(sealing: prepared, keys: keys, random: random)
    if try insert(row) != nil { return row }
    return try replaceDeadRow(with: row, keys: keys, random: random)
  }

  /// The row in the way has to be a tombstone or corrupt, else the item is a duplicate.
  private func replaceDeadRow(
    with row: WritableRow, keys: borrowing ClassKeys, random: any RandomSource
  ) throws(KeychainStoreError) -> WritableRow {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeychainStoreError(.damaged, "a row is in the way that cannot be found")
    }
    switch try ExistingRow(try RowSealing.open(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeychainStoreError(.duplicateItem, "a \(row.kind.reportName) with the same primary key exists")
    case .corrupt:
      try overwrite(existing.summary.reference.rowID, with: row)
      return row
    case .tombstone(let uuid, let reference):
      var item = row.item
      if let uuid { item[.uuid] = .string(uuid) }
      if let reference { item[.persistentReference] = .data(reference) }
      let revived = try WritableRow(sealing: item, keys: keys, random: random)
      try overwrite(existing.summary.reference.rowID, with: revived)
      return revived
    }
  }
}
