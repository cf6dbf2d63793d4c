package import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules

extension KeychainStore {
  /// Adds an item as `SecItemAdd` does: both dates become `now`, missing attributes get their defaults, and the UUID
  /// and persistent reference are random. A tombstone or corrupt row with the same primary key is replaced; the item
  /// takes over the UUID and the persistent reference of a tombstone.
  ///
  /// - Throws: `.duplicateItem`; `.interactionNotAllowed` if the class key is not in memory; `.authFailed` for the class
  ///   that requires a passcode, if the device has no passcode; `.parameter`.
  @discardableResult
  package func add(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    try write { (transaction) throws(KeyhaulError) in
      try transaction.add(item, keys: keys, now: now, random: random)
    }
  }

  /// Adds either all items or, if one cannot be added, none.
  package func add(
    contentsOf items: [KeychainItem], keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) {
    try write(isBulk: true) { (transaction) throws(KeyhaulError) in
      for item in items { _ = try transaction.addRow(item, keys: keys, now: now, random: random) }
    }
  }
}

extension KeychainTransaction {
  func add(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> StoredItem {
    let row = try addRow(item, keys: keys, now: now, random: random)
    guard let raw = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "a row that was just written is missing")
    }
    return StoredItem(summary: raw.summary, item: row.item)
  }

  fileprivate func addRow(
    _ item: KeychainItem, keys: ClassKeys, now: KeychainDate, random: any RandomSource
  ) throws(KeyhaulError) -> WritableRow {
    let prepared = try translatingRuleErrors(try NewItemDefaults.prepared(item, now: now, random: random))
    let row = try WritableRow(encrypting: prepared, keys: keys, random: random)
    if try insert(row) != nil { return row }
    return try replaceTombstoneOrCorruptRow(with: row, keys: keys, random: random)
  }

  /// Replaces the tombstone or corrupt row with the same primary key.
  ///
  /// - Throws: `.duplicateItem` if the row is an item.
  private func replaceTombstoneOrCorruptRow(
    with row: WritableRow, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) -> WritableRow {
    guard let existing = try self.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "the item conflicts with a row that cannot be found")
    }
    switch try ExistingRow(try RowEncryption.decrypt(existing, keys: keys)).state {
    case .item, .unreadable:
      throw KeyhaulError(.duplicateItem, "another \(row.kind.reportName) has the same primary key")
    case .corrupt:
      try overwrite(existing.summary.reference.rowID, with: row)
      return row
    case .tombstone(let uuid, let reference):
      var item = row.item
      if let uuid { item[.uuid] = .string(uuid) }
      if let reference { item[.persistentReference] = .data(reference) }
      let revived = try WritableRow(encrypting: item, keys: keys, random: random)
      try overwrite(existing.summary.reference.rowID, with: revived)
      return revived
    }
  }
}
