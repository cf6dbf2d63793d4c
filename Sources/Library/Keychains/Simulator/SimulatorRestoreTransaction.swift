package import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// The changes that a restore makes to a Simulator's keychain, within the transaction of a `SimulatorKeychain`.
///
/// `RestoreTransaction` is its counterpart for a device's keychain.
package final class SimulatorRestoreTransaction {
  private let keychain: SimulatorKeychain
  private let random: any RandomSource
  private let rows: [KeychainRow]
  private var currentRows: [PrimaryKey: CurrentRow] = [:]

  /// A row of the keychain, including the changes of this restore.
  private struct CurrentRow {
    /// The row, or `nil` if this restore has added the item.
    let row: RowReference?
    let existing: ExistingRow
    let item: KeychainItem?
  }

  /// Creates a transaction for a restore.
  ///
  /// - Parameters:
  ///   - keychain: The keychain, not yet changed.
  ///   - rows: All rows of the keychain.
  ///   - random: The source of new UUIDs and references.
  /// - Throws: `.malformed` if the digest of an item cannot be computed.
  package init(
    _ keychain: SimulatorKeychain, rows: [KeychainRow], random: any RandomSource = SystemRandomSource()
  ) throws(KeyhaulError) {
    self.keychain = keychain
    self.random = random
    self.rows = rows
    try record(rows)
  }

  private func record(_ rows: [KeychainRow]) throws(KeyhaulError) {
    for row in rows {
      let existing: ExistingRow
      do throws(KeyhaulError) {
        existing = try ExistingRow(row)
      } catch {
        throw .unstorableItem(error.reason)
      }
      currentRows[row.summary.primaryKey] = CurrentRow(
        row: row.summary.reference, existing: existing, item: row.item)
    }
  }

  /// Deletes the rows that iOS deletes before a restore, as `RestoreTransaction.deleteNonSynced` does.
  ///
  /// - Returns: The number of deleted rows.
  package func deleteNonSynced() throws(KeyhaulError) -> Int {
    // Rows are deleted by number, because two rows of a database that another program made may have the same primary
    // key.
    let removed = rows.filter(\.summary.isRemovedByRestore)
    for row in removed { try keychain.remove(row: row.summary.reference.rowID, of: row.summary.reference.kind) }
    currentRows = [:]
    try record(rows.filter { !$0.summary.isRemovedByRestore })
    return removed.count
  }

  /// Stores one item of the backup. If a row has the same primary key, decides which of the two to keep.
  ///
  /// - Returns: The decision about the conflict.
  /// - Throws: `.malformed` if the item cannot be stored.
  package func importItem(_ incoming: IncomingItem) throws(KeyhaulError) -> ImportResolution {
    let key = try Self.translatingRuleErrors { () throws(KeychainRuleError) in try PrimaryKey(of: incoming.item) }
    let item = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
      try NewItemDefaults.identified(incoming.item, random: random)
    }
    let current = currentRows[key]
    let resolution = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
      try ImportConflict.resolve(incoming: incoming, existing: current?.existing)
    }
    let storesIncomingItem = resolution.outcome == .insertsNew || resolution.outcome.isReplacement
    guard
      let itemToStore = storesIncomingItem
        ? resolution.storedItem(incoming: item, existing: current?.item)
        : resolution.keptItem(incoming: incoming, existing: current?.item)
    else { return resolution }
    if let row = current?.row {
      try keychain.replace(row: row.rowID, with: itemToStore)
    } else {
      _ = try keychain.insert(itemToStore, replacingExisting: true)
    }
    let existing = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
      try ExistingRow(storing: itemToStore)
    }
    currentRows[key] = CurrentRow(row: current?.row, existing: existing, item: itemToStore)
    return resolution
  }

  private static func translatingRuleErrors<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ KeyhaulError.unstorableItem($0.reason) }, body)
  }
}

extension KeychainRow {
  /// Creates a restore's view of a row of a Simulator's database. The keys are in the database, so a row that cannot be
  /// decrypted is damaged.
  package init(_ decrypted: KeychainDatabase.DecryptedRow) {
    let kind = decrypted.row.kind
    var columns = decrypted.row.columns
    // If the schema lacks the column, the keychain has no shared copies.
    if columns[.sharingGroup] == nil { columns[.sharingGroup] = .text([]) }
    var item = decrypted.result.isOpen ? decrypted.result.item : nil
    if let constraints = decrypted.result.accessControl?.constraints {
      item?[.accessControl] = .dictionary(constraints)
    }
    let primaryKeyColumns = ColumnDefinitions.primaryKey(of: kind).map { columns[$0.code] ?? .null }
    let summary = RowSummary(
      reference: RowReference(kind: kind, rowID: decrypted.row.number),
      primaryKey: item.flatMap { try? PrimaryKey(of: $0) } ?? PrimaryKey(kind: kind, columns: primaryKeyColumns),
      digest: decrypted.row.digest,
      columns: columns)
    let fault = RowFault.undecodable(reason: "the row cannot be decrypted")
    self.init(summary: summary, content: item.map { .item($0) } ?? .fault(fault))
  }
}
