import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// What a restore can do to a Simulator's keychain, within the transaction of a `SimulatorKeychain`.
///
/// The counterpart of `RestoreTransaction`, which does the same to a device's keychain.
package final class SimulatorRestoreTransaction {
  private let keychain: SimulatorKeychain
  private let random: any RandomSource
  private var present: [PrimaryKey: Present] = [:]

  private struct Present {
    /// `nil` for an item that this restore has added.
    let row: RowReference?
    let existing: ExistingRow
    let item: KeychainItem?
    let isRemovedByRestore: Bool
  }

  /// Begins a restore.
  ///
  /// - Parameters:
  ///   - keychain: The keychain, in which nothing was changed yet.
  ///   - rows: All of its rows.
  ///   - random: The source of new UUIDs and references.
  /// - Throws: `.malformed` if the digest of an item cannot be computed.
  package init(
    _ keychain: SimulatorKeychain, rows: [KeychainRow], random: any RandomSource = SystemRandomSource()
  ) throws(KeychainDatabaseError) {
    self.keychain = keychain
    self.random = random
    for row in rows {
      let existing: ExistingRow
      do throws(KeychainStoreError) {
        existing = try ExistingRow(row)
      } catch {
        throw KeychainDatabaseError(.malformed, error.reason)
      }
      present[row.summary.primaryKey] = Present(
        row: row.summary.reference, existing: existing, item: row.item,
        isRemovedByRestore: row.summary.isRemovedByRestore)
    }
  }

  /// Deletes what iOS deletes before it restores, as `RestoreTransaction.deleteNonSynced` does.
  ///
  /// - Returns: The number of deleted rows.
  package func deleteNonSynced() throws(KeychainDatabaseError) -> Int {
    var count = 0
    for (key, row) in present where row.isRemovedByRestore {
      guard let reference = row.row else { continue }
      try keychain.remove(row: reference.rowID, of: reference.kind)
      present[key] = nil
      count += 1
    }
    return count
  }

  /// Stores one item of the backup, or decides between it and the row with its primary key.
  ///
  /// - Returns: How the conflict was decided.
  /// - Throws: `.malformed` if the item cannot be stored.
  package func importItem(_ incoming: IncomingItem) throws(KeychainDatabaseError) -> ImportResolution {
    let key = try Self.byRule { () throws(KeychainRuleError) in try PrimaryKey(of: incoming.item) }
    let item = try Self.byRule { () throws(KeychainRuleError) in
      try NewItem.identified(incoming.item, random: random)
    }
    let met = present[key]
    let resolution = try Self.byRule { () throws(KeychainRuleError) in
      try ImportConflict.resolve(incoming: incoming, existing: met?.existing)
    }
    let isTaken = resolution.outcome == .insertsNew || resolution.outcome.isReplacement
    guard
      let winner = isTaken
        ? resolution.storedItem(incoming: item, existing: met?.item)
        : resolution.keptItem(incoming: incoming, existing: met?.item)
    else { return resolution }
    if let row = met?.row {
      try keychain.replace(row: row.rowID, with: winner)
    } else {
      _ = try keychain.put(winner, replacing: true)
    }
    let existing = try Self.byRule { () throws(KeychainRuleError) in try ExistingRow(storing: winner) }
    present[key] = Present(row: met?.row, existing: existing, item: winner, isRemovedByRestore: false)
    return resolution
  }

  private static func byRule<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeychainDatabaseError) -> Value {
    do throws(KeychainRuleError) { return try body() } catch { throw KeychainDatabaseError(.malformed, error.reason) }
  }
}

extension KeychainRow {
  /// Creates the form in which a restore sees a row of a Simulator's database. The keys are in the database, so a row that
  /// cannot be decrypted is damaged.
  package init(_ row: KeychainDatabase.OpenedRow) {
    let kind = row.row.kind
    var columns = row.row.columns
    // A schema without the column has no shared copies.
    if columns[.sharingGroup] == nil { columns[.sharingGroup] = .text([]) }
    var item = row.opened.isOpen ? row.opened.item : nil
    if let constraints = row.opened.accessControl?.constraints { item?[.accessControl] = .dictionary(constraints) }
    let sharingGroup = columns[.sharingGroup]?.textValue ?? ""
    let summary = RowSummary(
      reference: RowReference(kind: kind, rowID: row.row.number),
      primaryKey: item.flatMap { try? PrimaryKey(of: $0) }
        ?? PrimaryKey(kind: kind, columns: ColumnDefinitions.primaryKey(of: kind).map { columns[$0.code] ?? .null }),
      accessGroup: columns[.accessGroup]?.textValue ?? "", protectionCode: columns[.protection]?.textValue,
      isSynchronizable: columns[.synchronizable]?.integerValue == 1,
      isTombstone: (columns[.tombstone]?.integerValue ?? 0) != 0,
      isAppClip: (columns[.appClip]?.integerValue ?? 0) != 0,
      hasTokenID: !(columns[.tokenID]?.textValue ?? "").isEmpty,
      sharingGroup: sharingGroup.isEmpty ? nil : sharingGroup, multiUser: columns[.multiUser]?.blobValue ?? [],
      modificationDate: columns[.modificationDate]?.realValue.map { KeychainDate(secondsSinceReferenceDate: $0) },
      digest: row.row.digest, uuid: columns[.uuid]?.textValue,
      persistentReference: columns[.persistentReference]?.blobValue ?? [],
      isRemovedByRestore: RestoreRemoval.removes(columns))
    let fault = RowFault.undecodable(reason: "the row cannot be decrypted")
    self.init(summary: summary, content: item.map { .item($0) } ?? .fault(fault))
  }
}
