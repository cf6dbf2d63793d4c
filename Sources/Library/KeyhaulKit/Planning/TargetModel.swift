import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// A model of the target's keychain, which the planner updates with each import.
///
/// Conflicts are resolved with the same function as in the store. Beside the target's rows, the model keeps the current
/// owner of each primary key, in one of three places:
///
/// - `keyOwners` has rows of the target that stayed, preserved items, and the items that own a key after a conflict.
/// - `OriginalRow.importedPosition` has items whose key belonged to a removed row.
/// - `importedPositions` has items whose key is new on the target.
///
/// The last two store only the item's position, to save memory. A position is an index into the planned items, which may
/// be a part of the backup's items.
struct TargetModel {
  /// The effect of one import on the target.
  struct Step {
    let planned: MigrationPlan.PlannedImport
    /// The effect of the item. `.new` and `.replaces` compare the item with the target before the restore, not with earlier
    /// items of the backup. `.identical` and `.keepsExisting` may also be about an earlier item of the backup.
    let change: MigrationPlan.Change
    let detail: String?
    /// The relation of this import to the target's item that it replaces; `nil` if it replaces none.
    let overwrites: MigrationPlan.OverwrittenItem?
    /// Whether the item is a tombstone.
    let isDeletion: Bool
    /// The positions of earlier planned items that this import replaces.
    let superseded: [Int]
  }

  /// The owner of a primary key. A class, so that the dictionary's spare capacity consists of pointers, not of items.
  private final class KeyOwner: Sendable {
    /// The decrypted item, if it is known.
    let item: KeychainItem?
    private let source: Source

    private enum Source {
      /// A row of the target, with its digest.
      indirect case targetRow(ExistingRow)
      /// The planned items at these positions; empty for a preserved item of the target. The digest is only computed if
      /// another item has the same key.
      case imported(positions: [Int])
    }

    init(targetRow: ExistingRow, item: KeychainItem?) {
      self.item = item
      source = .targetRow(targetRow)
    }

    init(item: KeychainItem, positions: [Int]) {
      self.item = item
      source = .imported(positions: positions)
    }

    private var targetRow: ExistingRow? { if case .targetRow(let row) = source { row } else { nil } }

    /// The positions of the planned items that this owner represents; empty for a row or preserved item of the target.
    var positions: [Int] { if case .imported(let positions) = source { positions } else { [] } }

    /// Returns the row with which an imported item with the same key conflicts; `nil` if the owner has no item.
    ///
    /// - Throws: `.notAvailable` if a digest cannot be computed.
    func existing() throws(KeychainRuleError) -> ExistingRow? {
      if let targetRow { return targetRow }
      guard let item else { return nil }
      return try ExistingRow(storing: item)
    }
  }

  /// A row of the target before the restore.
  private struct OriginalRow {
    let row: TargetRow
    /// The position of the planned item that was imported without a conflict after the row had been removed.
    var importedPosition: UInt32?
  }

  private let rows: [TargetRow]
  private var originalRows: [PrimaryKey: OriginalRow]

  /// The keys of the rows that the policy removes before the import.
  private let removedKeys: Set<PrimaryKey>
  private var keyOwners: [PrimaryKey: KeyOwner] = [:]
  /// The positions of the planned items that were imported without a conflict, by keys that no row of the target had.
  /// After a conflict, the entry in `keyOwners` counts instead.
  private var importedPositions: [ItemFingerprint: UInt32] = [:]

  /// Creates a model of the target before the import, without the rows that the policy removes.
  ///
  /// - Parameter incomingCount: The number of planned items, to reserve memory.
  init(_ rows: [TargetRow], policy: ExistingItemPolicy, expecting incomingCount: Int) {
    self.rows = rows
    importedPositions.reserveCapacity(max(0, incomingCount - rows.count))
    keyOwners.reserveCapacity(rows.count)
    var originalRows: [PrimaryKey: OriginalRow] = [:]
    var removedKeys: Set<PrimaryKey> = []
    for row in rows {
      originalRows[row.primaryKey] = OriginalRow(row: row)
      if policy == .replace && row.isRemovedByReplace {
        removedKeys.insert(row.primaryKey)
      } else {
        keyOwners[row.primaryKey] = KeyOwner(targetRow: row.existing, item: row.item)
      }
    }
    self.originalRows = originalRows
    self.removedKeys = removedKeys
  }

  var removedRowCount: Int { removedKeys.count }

  /// The items that are gone after the restore: removed rows whose key has no owner. Tombstones are not items, and a
  /// locked row of the system returns once it can be read.
  var removedIdentities: [ItemDescriptor] {
    rows.filter { row in
      removedKeys.contains(row.primaryKey) && keyOwners[row.primaryKey] == nil
        && originalRows[row.primaryKey]?.importedPosition == nil
        && !row.isTombstone && !(row.isSystemBound && row.item == nil)
    }.map(\.identity)
  }

  /// Imports an item.
  ///
  /// - Parameters:
  ///   - keyed: The item with its primary key.
  ///   - origin: The origin of the item.
  ///   - plannedItems: The items into which positions are indexes.
  /// - Returns: The effect of the import.
  /// - Throws: `.notAvailable` if a digest cannot be computed or an earlier item with the same key can no longer be
  ///   decrypted; `.decode` if that item cannot be stored.
  mutating func importItem(
    _ keyed: IncomingItem.Keyed, from origin: MigrationPlan.PlannedImport.Origin,
    of plannedItems: [BackupItem]
  ) throws(KeychainRuleError) -> Step {
    let (incoming, key) = (keyed.incoming, keyed.primaryKey)
    let originalRow = originalRows[key]
    // A fingerprint takes less memory than a key.
    let fingerprint = originalRow == nil ? try Self.fingerprint(of: key) : nil
    var owner = keyOwners[key]
    let importedPosition = originalRow?.importedPosition ?? fingerprint.flatMap { importedPositions[$0] }
    if owner == nil, let importedPosition {
      let position = Int(importedPosition)
      owner = KeyOwner(item: try Self.incoming(plannedItems[position]).item, positions: [position])
    }
    let resolution = try ImportConflict.resolve(incoming: incoming, existing: try owner?.existing())
    let sameKeyRow = try originalRow.map { (originalRow) throws(KeychainRuleError) in
      try SameKeyRow(originalRow.row, of: incoming)
    }
    if owner == nil, case .archive(let position) = origin {
      if let fingerprint {
        importedPositions[fingerprint] = position
      } else {
        originalRows[key]?.importedPosition = position
      }
    } else if let newOwner = Self.owner(after: resolution, of: incoming, from: origin, previous: owner) {
      keyOwners[key] = newOwner
    }
    return Self.step(
      resolution, of: incoming, from: origin, previous: owner, sameKeyRow,
      conflictingItemIndex: owner?.positions.first.map { plannedItems[$0].index })
  }

  /// Returns the owner of a key after an import; `nil` if the stored item is unknown.
  private static func owner(
    after resolution: ImportResolution, of incoming: IncomingItem, from origin: MigrationPlan.PlannedImport.Origin,
    previous: KeyOwner?
  ) -> KeyOwner? {
    guard let stored = resolution.storedItem(incoming: incoming.item, existing: previous?.item) else { return nil }
    let positions =
      switch resolution.outcome {
      case .insertsNew, .replaces: origin.positions
      case .identical: (previous?.positions ?? []) + origin.positions
      case .keepsExisting, .blocked: previous?.positions ?? []
      }
    return KeyOwner(item: stored, positions: positions)
  }

  private static func step(
    _ resolution: ImportResolution, of incoming: IncomingItem, from origin: MigrationPlan.PlannedImport.Origin,
    previous: KeyOwner?, _ sameKeyRow: SameKeyRow?, conflictingItemIndex: Int?
  ) -> Step {
    let change = change(resolution.outcome, sameKeyRow)
    return Step(
      planned: MigrationPlan.PlannedImport(
        origin: origin, outcome: resolution.outcome,
        writes: !resolution.leavesUnchanged(previous?.item, whenImporting: incoming)),
      change: change,
      detail: detail(resolution.outcome, incoming, conflictingItemIndex, sameKeyRow),
      overwrites: change == .replaces ? sameKeyRow.flatMap { overwritten($0, by: incoming) } : nil,
      isDeletion: incoming.item.isTombstone,
      superseded: resolution.outcome.isReplacement ? previous?.positions ?? [] : [])
  }

  private static func fingerprint(of key: PrimaryKey) throws(KeychainRuleError) -> ItemFingerprint {
    do throws(DataProtectionError) {
      return try ItemFingerprint(of: key)
    } catch {
      throw KeychainRuleError(.notAvailable, error.reason)
    }
  }

  private static func incoming(_ backupItem: BackupItem) throws(KeychainRuleError) -> IncomingItem {
    try IncomingItem.Keyed(backupItem.requireItem(), persistentReference: backupItem.persistentReference).incoming
  }

  /// Imports the system-bound rows again that the policy has removed, except rows that cannot be decrypted or stored.
  ///
  /// - Parameters:
  ///   - includingTombstones: Whether tombstones are imported too. They have an effect only if the target syncs.
  ///   - plannedItems: The items into which positions are indexes.
  /// - Returns: The effects of the imports. A step blocks the restore if its import failed.
  mutating func reimportPreserved(
    includingTombstones: Bool, alongside plannedItems: [BackupItem]
  ) -> [Step] {
    var steps: [Step] = []
    for row in rows where removedKeys.contains(row.primaryKey) && row.isSystemBound {
      if row.isTombstone, !includingTombstones { continue }
      guard let item = row.item, let incoming = try? IncomingItem.Keyed(preserved: item) else { continue }
      let origin = MigrationPlan.PlannedImport.Origin.preserved(incoming.incoming)
      do throws(KeychainRuleError) {
        steps.append(try importItem(incoming, from: origin, of: plannedItems))
      } catch {
        // A conflicting item of the backup can no longer be decrypted. The step blocks a restore of this plan: without
        // the step, a restore that can decrypt the item would lose the row.
        steps.append(Step(blocking: origin, error))
      }
    }
    return steps
  }

  /// The target's row with an imported item's key, before the restore. If the policy has removed the row, there is no
  /// conflict.
  private struct SameKeyRow {
    let row: TargetRow
    /// Whether the row's digest equals the digest of the imported item.
    let isEqual: Bool

    init(_ row: TargetRow, of incoming: IncomingItem) throws(KeychainRuleError) {
      self.row = row
      guard case .item(_, let digest) = row.existing.state else {
        isEqual = false
        return
      }
      isEqual = try incoming.digest() == digest
    }
  }

  private static func change(
    _ outcome: ImportResolution.Effect, _ sameKeyRow: SameKeyRow?
  ) -> MigrationPlan.Change {
    switch outcome {
    case .identical: return .identical
    case .keepsExisting, .blocked: return .keepsExisting
    case .insertsNew, .replaces:
      guard let sameKeyRow, !sameKeyRow.row.isTombstone else { return .new }
      return sameKeyRow.isEqual ? .identical : .replaces
    }
  }

  /// Returns the relation of the target's item to the item that replaces it; `nil` if the row is a tombstone.
  private static func overwritten(
    _ sameKeyRow: SameKeyRow, by incoming: IncomingItem
  ) -> MigrationPlan.OverwrittenItem? {
    switch sameKeyRow.row.existing.state {
    case .tombstone: return nil
    case .corrupt, .unreadable: return .damaged
    case .item(let targetDate, _):
      guard let targetDate, let backupDate = incoming.item.modificationDate else { return .undated }
      return targetDate > backupDate ? .newer : .olderOrEqual
    }
  }

  /// Returns a text that explains an import's result. It names the conflicting item of the backup, or describes the
  /// target's item, usually with both dates. `nil` if there was no conflict, or nothing to explain.
  private static func detail(
    _ outcome: ImportResolution.Effect, _ incoming: IncomingItem, _ conflictingItemIndex: Int?,
    _ sameKeyRow: SameKeyRow?
  ) -> String? {
    if let index = conflictingItemIndex {
      switch outcome {
      case .keepsExisting: return "item \(index) of this backup has the same key and wins"
      case .identical: return "the same as item \(index) of this backup"
      case .replaces: return "item \(index) of this backup has the same key and loses"
      case .insertsNew, .blocked: return nil
      }
    }
    return sameKeyRow.flatMap { conflictDescription(outcome, incoming, $0) }
  }

  /// Returns a text that explains the result of a conflict with the target's item; `nil` if there is nothing to explain.
  private static func conflictDescription(
    _ outcome: ImportResolution.Effect, _ incoming: IncomingItem, _ sameKeyRow: SameKeyRow
  ) -> String? {
    switch (outcome, sameKeyRow.row.existing.state) {
    case (_, .corrupt): return "the existing item is damaged"
    case (_, .tombstone), (_, .unreadable): return nil
    case (_, .item) where sameKeyRow.isEqual: return nil
    case (_, .item(nil, _)): return "the existing item has no date"
    case (_, .item(let targetDate?, _)):
      guard let backupDate = incoming.item.modificationDate else { return "the backup's item has no date" }
      let dates = Self.dates(onTarget: targetDate, inBackup: backupDate)
      switch outcome {
      case .insertsNew where targetDate > backupDate:
        return dates + "; the existing item is newer, but is removed first"
      case .replaces(.sameDateSmallerDigest): return dates + "; the backup's item has the smaller digest"
      case .keepsExisting(.sameDateSmallerDigest): return dates + "; the existing item has the smaller digest"
      case .insertsNew, .replaces, .keepsExisting, .identical, .blocked: return dates
      }
    }
  }

  /// Returns a phrase with both days, with both times if the days are equal, or with one time if the times are equal.
  private static func dates(onTarget targetDate: KeychainDate, inBackup backupDate: KeychainDate) -> String {
    if targetDate == backupDate { return "both dated \(Timestamp.text(of: backupDate))" }
    let (targetDay, backupDay) = (Timestamp.day(of: targetDate), Timestamp.day(of: backupDate))
    guard targetDay == backupDay else { return "on the target: \(targetDay); in the backup: \(backupDay)" }
    return "on the target: \(Timestamp.text(of: targetDate)); in the backup: \(Timestamp.text(of: backupDate))"
  }
}

extension TargetModel.Step {
  /// Creates the step of an import with an unknown result.
  fileprivate init(blocking origin: MigrationPlan.PlannedImport.Origin, _ error: KeychainRuleError) {
    self.init(
      planned: MigrationPlan.PlannedImport(origin: origin, outcome: .blocked(.undecodable(reason: error.reason))),
      change: .keepsExisting, detail: nil, overwrites: nil, isDeletion: false, superseded: [])
  }
}

extension MigrationPlan.PlannedImport.Origin {
  /// The positions of the planned items.
  fileprivate var positions: [Int] { if case .archive(let position) = self { [Int(position)] } else { [] } }
}
