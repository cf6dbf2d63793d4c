package import Basics
import GRDB
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Restores a backup in one IMMEDIATE transaction.
  ///
  /// - Parameter body: The changes. An error rolls everything back.
  /// - Returns: The closure's result.
  /// - Throws: The closure's error. In this case, nothing was changed.
  @discardableResult
  package func restore<Value>(
    _ body: (borrowing RestoreTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try write(isBulk: true) { (transaction) throws(KeyhaulError) in try body(RestoreTransaction(transaction)) }
  }
}

/// The changes that a restore makes to a keychain. Valid only during the closure of `KeychainStore.restore`.
package struct RestoreTransaction: ~Copyable {
  private let transaction: KeychainTransaction

  init(_ transaction: KeychainTransaction) { self.transaction = transaction }

  /// Deletes the rows that iOS deletes before a restore: all rows except synchronized rows, rows of the preserved groups
  /// and shared copies, for all users and protection classes.
  ///
  /// - Returns: The number of deleted rows.
  @discardableResult
  package borrowing func deleteNonSynced() throws(KeyhaulError) -> Int {
    let placeholders = RestoreRemoval.preservedAccessGroups.map { _ in "?" }.joined(separator: ",")
    var count = 0
    for kind in ItemKind.allCases {
      // If `ggrp` is NULL, which no writer stores, the condition is NULL and the row stays, as with Apple's statement.
      try transaction.database.run(
        "DELETE FROM \(kind.rawValue) WHERE sync=0 AND NOT agrp IN (\(placeholders)) AND NOT ggrp <> ''",
        RestoreRemoval.preservedAccessGroups.map { .text($0) })
      count += transaction.database.changesCount
    }
    return count
  }

  /// Runs a closure that imports many items, faster than importing them separately.
  ///
  /// - Parameters:
  ///   - kinds: The kind of each item.
  ///   - body: The imports.
  package borrowing func importing(
    _ kinds: some Sequence<ItemKind>, _ body: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try transaction.addingInBulk(kinds, body)
  }

  /// Stores one item of the backup. If a row has the same primary key, decides which of the two to keep. If the existing
  /// row is kept, it is rewritten only to take over the backup's persistent reference.
  ///
  /// The dates, the UUID and the persistent reference come from the backup, if it has them.
  ///
  /// - Returns: The decision about the conflict.
  /// - Throws: `.interactionNotAllowed` if the class key of the item or of the conflicting row is not in memory;
  ///   `.authFailed` or `.notAvailable` if the device has no key of the item's class; `.cancelled` if the change was
  ///   stopped.
  @discardableResult
  package borrowing func importItem(
    _ incoming: IncomingItem, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) -> ImportResolution {
    try transaction.checkCancellation()
    let item = try translatingRuleErrors(try NewItemDefaults.identified(incoming.item, random: random))
    let row = try WritableRow(encrypting: item, keys: keys, random: random)
    if try transaction.insert(row) != nil {
      return try translatingRuleErrors(try ImportConflict.resolve(incoming: incoming, existing: nil))
    }
    guard let raw = try transaction.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "the item conflicts with a row that cannot be found")
    }
    let decryptedRow = try RowEncryption.decrypt(raw, keys: keys)
    let existingRow = try ExistingRow(decryptedRow)
    let resolution = try translatingRuleErrors(try ImportConflict.resolve(incoming: incoming, existing: existingRow))
    if case .blocked(let fault) = resolution.outcome { throw KeyhaulError(fault) }
    // `nil` means that the row stays as it is.
    guard
      let itemToStore = resolution.outcome.isReplacement
        ? resolution.storedItem(incoming: item, existing: decryptedRow.item)
        : resolution.keptItem(incoming: incoming, existing: decryptedRow.item)
    else { return resolution }
    try transaction.overwrite(
      raw.summary.reference.rowID, with: try WritableRow(encrypting: itemToStore, keys: keys, random: random))
    return resolution
  }
}

extension KeychainStore {
  /// Returns whether each import would leave an existing row as it is. All rows are read in one transaction.
  package func importsChangeNothing(
    _ items: [IncomingItem], keys: ClassKeys
  ) throws(KeyhaulError) -> Bool {
    try read { (transaction) throws(KeyhaulError) in
      for incoming in items {
        let key = try translatingRuleErrors(try ItemColumns.primaryKeyValues(of: incoming.item))
        guard let raw = try transaction.row(incoming.item.kind, primaryKey: key) else { return false }
        let decryptedRow = try RowEncryption.decrypt(raw, keys: keys)
        let existingRow = try ExistingRow(decryptedRow)
        let resolution = try translatingRuleErrors(
          try ImportConflict.resolve(incoming: incoming, existing: existingRow))
        guard resolution.leavesUnchanged(decryptedRow.item, whenImporting: incoming) else { return false }
      }
      return true
    }
  }
}
