package import Basics
import GRDB
package import KeychainCrypto
package import KeychainFormats
package import KeychainRules

extension KeychainStore {
  /// Puts a backup in place in one IMMEDIATE transaction.
  ///
  /// - Parameter body: Takes the transaction for the length of the closure. An error that it throws undoes everything.
  /// - Throws: What the closure throws; then nothing was changed.
  @discardableResult
  package func restore<Value>(
    _ body: (borrowing RestoreTransaction) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try write(isBulk: true) { (transaction) throws(KeyhaulError) in try body(RestoreTransaction(transaction)) }
  }
}

/// What a restore can do to a keychain. Lent for the length of the closure of `KeychainStore.restore`.
package struct RestoreTransaction: ~Copyable {
  private let transaction: KeychainTransaction

  init(_ transaction: KeychainTransaction) { self.transaction = transaction }

  /// Deletes what iOS deletes before it restores: every row that is not synchronized, not in one of the kept groups and
  /// not a shared copy; of every view and every protection class.
  ///
  /// - Returns: How many rows are gone.
  @discardableResult
  package borrowing func deleteNonSynced() throws(KeyhaulError) -> Int {
    let places = RestoreRemoval.keptAccessGroups.map { _ in "?" }.joined(separator: ",")
    var count = 0
    for kind in ItemKind.allCases {
      // A ggrp that is NULL, which no writer leaves, makes the condition NULL and keeps the row, as in Apple's statement.
      try transaction.database.run(
        "DELETE FROM \(kind.rawValue) WHERE sync=0 AND NOT agrp IN (\(places)) AND NOT ggrp <> ''",
        RestoreRemoval.keptAccessGroups.map { .text($0) })
      count += transaction.database.changesCount
    }
    return count
  }

  /// Does imports of an item of each of these kinds, which take less time together than each by itself.
  package borrowing func importing(
    _ kinds: some Sequence<ItemKind>, _ body: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    try transaction.adding(kinds, body)
  }

  /// Stores one item of the backup, or decides between it and the row with its primary key, and says how. A row that stays
  /// is written only where it takes over the backup's persistent reference.
  ///
  /// Creation and modification date, UUID and persistent reference are the backup's where it has them.
  /// - Throws: `.interactionNotAllowed` where the item's class or the row in its way is locked; `.authFailed` and
  ///   `.notAvailable` where the device has no key of the item's class; `.cancelled` where the keychain was told to stop.
  @discardableResult
  package borrowing func importItem(
    _ incoming: IncomingItem, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) -> ImportResolution {
    try transaction.requireGoingOn()
    let item = try byRule(try NewItemDefaults.identified(incoming.item, random: random))
    let row = try WritableRow(sealing: item, keys: keys, random: random)
    if try transaction.insert(row) != nil {
      return try byRule(try ImportConflict.resolve(incoming: incoming, existing: nil))
    }
    guard let raw = try transaction.row(row.kind, primaryKey: row.primaryKey) else {
      throw KeyhaulError(.storeDamaged, "the item conflicts with a row that cannot be found")
    }
    let existing = try RowSealing.open(raw, keys: keys)
    let met = try ExistingRow(existing)
    let resolution = try byRule(try ImportConflict.resolve(incoming: incoming, existing: met))
    if case .blocked(let fault) = resolution.outcome { throw KeyhaulError(fault) }
    guard
      let winner = resolution.outcome.isReplacement
        ? resolution.storedItem(incoming: item, existing: existing.item)
        : resolution.keptItem(incoming: incoming, existing: existing.item)
    else { return resolution }
    try transaction.overwrite(
      raw.summary.reference.rowID, with: try WritableRow(sealing: winner, keys: keys, random: random))
    return resolution
  }
}

extension KeychainStore {
  /// How imports would end that each meet a row that stays as it is. One read, which sees one state.
  ///
  /// - Returns: `false` with the first that would store or change something.
  package func wouldChangeNothing(
    importing items: [IncomingItem], keys: ClassKeys
  ) throws(KeyhaulError) -> Bool {
    try read { (transaction) throws(KeyhaulError) in
      for incoming in items {
        let key = try byRule(try ItemColumns.primaryKeyValues(of: incoming.item))
        guard let raw = try transaction.row(incoming.item.kind, primaryKey: key) else { return false }
        let existing = try RowSealing.open(raw, keys: keys)
        let met = try ExistingRow(existing)
        let resolution = try byRule(try ImportConflict.resolve(incoming: incoming, existing: met))
        guard resolution.leavesUnchanged(existing.item, whenImporting: incoming) else { return false }
      }
      return true
    }
  }
}
