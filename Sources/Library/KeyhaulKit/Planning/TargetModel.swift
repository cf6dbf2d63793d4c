package import Backups
import Basics
import KeychainCrypto
package import KeychainFormats
package import KeychainRules
package import Keychains

/// The target's keychain as the planner thinks it forward, import by import.
///
/// Each import is resolved by the very rule that the store applies; what is kept here is only who holds a primary key.
struct TargetModel {
  /// What one import does to the target.
  struct Step {
    let planned: MigrationPlan.PlannedImport
    /// Against what the target held before the restore.
    let change: MigrationPlan.Change
    let detail: String?
    /// What is lost on the target by it.
    let overwrites: MigrationPlan.OverwrittenItem?
    /// Whether the item is the mark of a deleted one.
    let isDeletion: Bool
    /// Places of earlier items of the archive that are not there any more.
    let superseded: [Int]
  }

  /// What holds a primary key. By reference: a table of them has room for twice as many.
  private final class KeyOwner: Sendable {
    /// As far as it is known in clear: what a new date does to the digest needs it.
    let item: KeychainItem?
    private let origin: Origin

    private enum Origin {
      /// As it was found. What an import has stored is looked at only where another one meets it, since that takes its
      /// digest.
      indirect case found(ExistingRow)
      /// What the items of the archive at these places came to; none where it is an item of the target that came back.
      case imported([Int])
    }

    init(found: ExistingRow, item: KeychainItem?) {
      self.item = item
      origin = .found(found)
    }

    init(item: KeychainItem, places: [Int]) {
      self.item = item
      origin = .imported(places)
    }

    private var found: ExistingRow? { if case .found(let row) = origin { row } else { nil } }

    /// Of the items of the archive that the row is; none for a row of the target alone.
    var places: [Int] { if case .imported(let places) = origin { places } else { [] } }

    /// What an item with the same key meets.
    var existing: ExistingRow? { found ?? item.flatMap { try? ExistingRow(storing: $0) } }
  }

  /// A row of the target, as it was before anything happened.
  private struct OriginalRow {
    let row: TargetRow
    /// Of the archive's item that met nothing where the row had been removed, as `arrived` has the others.
    var place: UInt32?
  }

  private let rows: [TargetRow]
  private var originalRows: [PrimaryKey: OriginalRow]

  /// Keys of the rows that the policy removes before anything is imported.
  private let removedKeys: Set<PrimaryKey>
  private var keyOwners: [PrimaryKey: KeyOwner] = [:]
  /// The places of the archive's items that met nothing, where the target had no row of their key. One that another item
  /// meets has a slot then, which counts.
  private var importedPositions: [ItemFingerprint: UInt32] = [:]

  /// - Parameter incomingCount: The maximum number of items to import; each can have a primary key of its own.
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
        keyOwners[row.primaryKey] = KeyOwner(found: row.existing, item: row.item)
      }
    }
    self.originalRows = originalRows
    self.removedKeys = removedKeys
  }

  var removedRowCount: Int { removedKeys.count }

  /// What is gone when everything is done: removed rows whose key nothing holds. A tombstone is no item to lose, and a
  /// locked row of the system comes back once it can be read.
  var removedIdentities: [ItemDescriptor] {
    rows.filter { row in
      removedKeys.contains(row.primaryKey) && keyOwners[row.primaryKey] == nil
        && originalRows[row.primaryKey]?.place == nil
        && !row.isTombstone && !(row.isSystemBound && row.item == nil)
    }.map(\.identity)
  }

  /// - Parameter backupItems: The archive's items.
  /// - Throws: `.notAvailable` where a digest cannot be computed.
  mutating func importing(
    _ keyed: IncomingItem.Keyed, from origin: MigrationPlan.PlannedImport.Origin,
    of backupItems: [BackupItem]
  ) throws(KeychainRuleError) -> Step {
    let (incoming, key) = (keyed.incoming, keyed.primaryKey)
    let known = originalRows[key]
    // If no row of the target had the key, it is looked for among the items that arrived: by its digest, which takes less
    // memory than the key.
    let digest = known == nil ? try Self.fingerprint(of: key) : nil
    var owner = keyOwners[key]
    if owner == nil, let place = known?.place ?? digest.flatMap({ importedPositions[$0] }) {
      owner = KeyOwner(item: try Self.incoming(backupItems[Int(place)]).item, places: [Int(place)])
    }
    let resolution = try ImportConflict.resolve(incoming: incoming, existing: owner?.existing)

    if owner == nil, case .archive(let place) = origin {
      if let digest { importedPositions[digest] = place } else { originalRows[key]?.place = place }
    } else if let stored = resolution.storedItem(incoming: incoming.item, existing: owner?.item) {
      var places = owner?.places ?? []
      switch resolution.outcome {
      case .insertsNew, .replaces: places = origin.places
      case .identical: places += origin.places
      case .keepsExisting, .blocked: break
      }
      keyOwners[key] = KeyOwner(item: stored, places: places)
    }
    let conflictingRow = try known.map { (known) throws(KeychainRuleError) in
      try ConflictingRow(known.row, of: incoming)
    }
    let change = Self.change(resolution.outcome, conflictingRow)
    return Step(
      planned: MigrationPlan.PlannedImport(
        origin: origin, outcome: resolution.outcome,
        writes: !resolution.leavesUnchanged(owner?.item, whenImporting: incoming)),
      change: change,
      detail: Self.detail(
        resolution.outcome, incoming, owner?.places.first.map { backupItems[$0].index }, conflictingRow),
      overwrites: change == .replaces ? conflictingRow.flatMap { Self.overwritten($0, by: incoming) } : nil,
      isDeletion: incoming.item.isTombstone,
      superseded: resolution.outcome.isReplacement ? owner?.places ?? [] : [])
  }

  private static func fingerprint(of key: PrimaryKey) throws(KeychainRuleError) -> ItemFingerprint {
    do throws(DataProtectionError) {
      return try ItemFingerprint(of: key)
    } catch {
      throw KeychainRuleError(.notAvailable, error.reason)
    }
  }

  private static func incoming(_ archived: BackupItem) throws(KeychainRuleError) -> IncomingItem {
    try IncomingItem.Keyed(archived.requireItem(), persistentReference: archived.persistentReference).incoming
  }

  /// Puts the system-bound rows back that the policy has removed; tombstones only where they mean something.
  mutating func reimportingPreserved(
    includingTombstones: Bool, alongside backupItems: [BackupItem]
  ) -> [Step] {
    var steps: [Step] = []
    for row in rows where removedKeys.contains(row.primaryKey) && row.isSystemBound {
      if row.isTombstone, !includingTombstones { continue }
      guard let item = row.item, let incoming = try? IncomingItem.Keyed(preserved: item) else { continue }
      let origin = MigrationPlan.PlannedImport.Origin.preserved(incoming.incoming)
      do throws(KeychainRuleError) {
        steps.append(try importing(incoming, from: origin, of: backupItems))
      } catch {
        // An item of the archive that it meets does not open any more. No restore goes on from what is foreseen then: left
        // out, the row would be lost in one that can open it again.
        steps.append(Step(blocking: origin, error))
      }
    }
    return steps
  }

  /// What the target held under an arriving item's key before anything happened.
  private struct ConflictingRow {
    let row: TargetRow
    /// Whether it is the arriving item, to the last byte that counts.
    let isSame: Bool

    init(_ row: TargetRow, of incoming: IncomingItem) throws(KeychainRuleError) {
      self.row = row
      guard case .item(_, let digest) = row.existing.state else {
        isSame = false
        return
      }
      isSame = try incoming.digest() == digest
    }
  }

  private static func change(_ outcome: ImportResolution.Effect, _ conflictingRow: ConflictingRow?)
    -> MigrationPlan.Change
  {
    switch outcome {
    case .identical: return .identical
    case .keepsExisting, .blocked: return .keepsExisting
    case .insertsNew, .replaces:
      guard let conflictingRow, !conflictingRow.row.isTombstone else { return .new }
      return conflictingRow.isSame ? .identical : .replaces
    }
  }

  /// - Returns: `nil` if no item was there.
  private static func overwritten(_ conflictingRow: ConflictingRow, by incoming: IncomingItem) -> MigrationPlan
    .OverwrittenItem?
  {
    switch conflictingRow.row.existing.state {
    case .tombstone: return nil
    case .corrupt, .unreadable: return .damaged
    case .item(let theirs, _):
      guard let theirs, let ours = incoming.item.modificationDate else { return .undated }
      return theirs > ours ? .newer : .olderOrEqual
    }
  }

  /// Both dates of a conflict, or which other item of the archive it is with.
  private static func detail(
    _ outcome: ImportResolution.Effect, _ incoming: IncomingItem, _ metIndex: Int?, _ conflictingRow: ConflictingRow?
  ) -> String? {
    if let index = metIndex {
      switch outcome {
      case .keepsExisting: return "item \(index) of this backup has the same key and wins"
      case .identical: return "the same as item \(index) of this backup"
      case .replaces: return "item \(index) of this backup has the same key and loses"
      case .insertsNew, .blocked: return nil
      }
    }
    return conflictingRow.flatMap { conflictDescription(outcome, incoming, $0) }
  }

  /// Which of the backup's item and the one that was there wins, and why.
  private static func conflictDescription(
    _ outcome: ImportResolution.Effect, _ incoming: IncomingItem, _ conflictingRow: ConflictingRow
  ) -> String? {
    switch (outcome, conflictingRow.row.existing.state) {
    case (_, .corrupt): return "the existing item is damaged"
    case (_, .tombstone), (_, .unreadable): return nil
    case (_, .item) where conflictingRow.isSame: return nil
    case (_, .item(nil, _)): return "the existing item has no date"
    case (_, .item(let theirs?, _)):
      guard let ours = incoming.item.modificationDate else { return "the backup's item has no date" }
      let dates = Self.dates(theirs: theirs, ours: ours)
      switch outcome {
      case .insertsNew where theirs > ours: return dates + "; the existing item is newer, but is removed first"
      case .replaces(.sameDateSmallerDigest): return dates + "; the backup's item has the smaller digest"
      case .keepsExisting(.sameDateSmallerDigest): return dates + "; the existing item has the smaller digest"
      case .insertsNew, .replaces, .keepsExisting, .identical, .blocked: return dates
      }
    }
  }

  /// Days where they differ; two equal days would tell nothing.
  private static func dates(theirs: KeychainDate, ours: KeychainDate) -> String {
    if theirs == ours { return "both dated \(Timestamp.text(of: ours))" }
    let days = (Timestamp.day(of: theirs), Timestamp.day(of: ours))
    return days.0 == days.1
      ? "on the target: \(Timestamp.text(of: theirs)); in the backup: \(Timestamp.text(of: ours))"
      : "on the target: \(days.0); in the backup: \(days.1)"
  }
}

extension TargetModel.Step {
  /// An import of which nothing can be foreseen.
  fileprivate init(blocking origin: MigrationPlan.PlannedImport.Origin, _ error: KeychainRuleError) {
    self.init(
      planned: MigrationPlan.PlannedImport(origin: origin, outcome: .blocked(.undecodable(reason: error.reason))),
      change: .keepsExisting, detail: nil, overwrites: nil, isDeletion: false, superseded: [])
  }
}

extension MigrationPlan.PlannedImport.Origin {
  /// Of items of the archive.
  fileprivate var places: [Int] { if case .archive(let place) = self { [Int(place)] } else { [] } }
}

/// One row of the target's keychain as the planner sees it.
package struct TargetRow: Sendable {
  /// What an item of the archive collides with it by.
  package let primaryKey: PrimaryKey
  /// The names that the row's item is known by; sealed where it does not open.
  package let identity: ItemDescriptor
  /// What the decision about a conflict needs of the row.
  package let existing: ExistingRow
  /// The opened item; `nil` if the row is locked or damaged.
  package let item: KeychainItem?
  /// `replace` removes the row before it imports anything.
  package let isRemovedByReplace: Bool
  /// Put back after `replace` has removed it.
  package let isSystemBound: Bool
  /// A deleted item's mark, damaged or not: no item to lose or to replace.
  package let isTombstone: Bool

  /// Creates a row, as tests do that plan without a database.
  package init(
    primaryKey: PrimaryKey, identity: ItemDescriptor, existing: ExistingRow, item: KeychainItem?,
    isRemovedByReplace: Bool, isSystemBound: Bool, isTombstone: Bool = false
  ) {
    self.primaryKey = primaryKey
    self.identity = identity
    self.existing = existing
    self.item = item
    self.isRemovedByReplace = isRemovedByReplace
    self.isSystemBound = isSystemBound
    self.isTombstone = isTombstone
  }

  /// Creates what the planner sees of a row.
  ///
  /// - Parameters:
  ///   - row: A row as the store gives it. A locked one is judged by its columns, which are not authenticated; a plan
  ///     may be made of it, a restore asks for the device to be unlocked.
  ///   - isSharedIPad: Whether the device is a Shared iPad, which has more system-bound items.
  /// - Throws: `.notAvailable` where a digest cannot be computed.
  package init(_ row: KeychainRow, isSharedIPad: Bool = false) throws(KeyhaulError) {
    let summary = row.summary
    let existing: ExistingRow
    if let fault = row.fault, !fault.isPermanent {
      existing = ExistingRow(
        state: summary.isTombstone
          ? .tombstone(uuid: summary.uuid, persistentReference: summary.persistentReference)
          : .item(modificationDate: summary.modificationDate, digest: summary.digest ?? []))
    } else {
      existing = try ExistingRow(row)
    }
    self.init(
      primaryKey: summary.primaryKey,
      identity: row.item.map(ItemDescriptor.sharing)
        ?? ItemDescriptor(undecryptable: summary.kind, accessGroup: summary.accessGroup),
      existing: existing, item: row.item, isRemovedByReplace: summary.isRemovedByRestore,
      isSystemBound: summary.multiUser.isEmpty
        && row.item.map { SystemBoundItems.contains($0, isSharedIPad: isSharedIPad) }
          ?? (row.fault?.isPermanent == false && SystemBoundItems.groups.contains(summary.accessGroup)),
      isTombstone: row.item?.isTombstone ?? summary.isTombstone)
  }
}
