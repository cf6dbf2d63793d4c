import ArchivedKeychain
import KeychainFormats
import KeychainRules

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
    /// Indexes of earlier items of the archive that are not there any more.
    let superseded: [Int]
  }

  /// By reference: a table of them has room for twice as many.
  private final class Slot: Sendable {
    /// As far as it is known in clear: what a new date does to the digest needs it.
    let item: KeychainItem?
    private let origin: Origin

    private enum Origin {
      /// As it was found. What an import has stored is looked at only where another one meets it, since that takes its
      /// digest.
      indirect case found(ExistingRow)
      /// Of the items of the archive that the row is the first one.
      case imported(Int)
      /// All of them, in the order in which they came.
      indirect case importedAlike([Int])
      case preserved
    }

    init(found: ExistingRow, item: KeychainItem?) {
      self.item = item
      origin = .found(found)
    }

    init(item: KeychainItem, archiveIndexes: [Int]) {
      self.item = item
      switch (archiveIndexes.first, archiveIndexes.count) {
      case (let index?, 1): origin = .imported(index)
      case (nil, _): origin = .preserved
      default: origin = .importedAlike(archiveIndexes)
      }
    }

    private var found: ExistingRow? { if case .found(let row) = origin { row } else { nil } }

    /// The items of the archive that the row is; none for a row of the target alone.
    var archiveIndexes: [Int] {
      switch origin {
      case .found, .preserved: []
      case .imported(let index): [index]
      case .importedAlike(let indexes): indexes
      }
    }

    /// What an item with the same key meets.
    var existing: ExistingRow? { found ?? item.flatMap { try? ExistingRow(storing: $0) } }
  }

  private let rows: [TargetRow]
  /// What the target held before anything happened.
  private let before: [PrimaryKey: TargetRow]
  /// Keys of the rows that the policy removes before anything is imported.
  private let cleared: Set<PrimaryKey>
  private var slots: [PrimaryKey: Slot] = [:]

  /// - Parameter incomingCount: How many items may come, each of which can take a place of its own.
  init(_ rows: [TargetRow], policy: ExistingItemPolicy, expecting incomingCount: Int) {
    self.rows = rows
    slots.reserveCapacity(rows.count + incomingCount)
    var before: [PrimaryKey: TargetRow] = [:]
    var cleared: Set<PrimaryKey> = []
    for row in rows {
      before[row.primaryKey] = row
      if policy == .replace && row.isRemovedByReplace {
        cleared.insert(row.primaryKey)
      } else {
        slots[row.primaryKey] = Slot(found: row.existing, item: row.item)
      }
    }
    self.before = before
    self.cleared = cleared
  }

  var clearedRowCount: Int { cleared.count }

  /// What is gone when everything is done: removed rows whose key nothing holds. A tombstone is no item to lose, and a
  /// locked row of the system comes back once it can be read.
  var removedIdentities: [ItemIdentity] {
    rows.filter { row in
      cleared.contains(row.primaryKey) && slots[row.primaryKey] == nil && !row.isTombstone
        && !(row.isSystemBound && row.item == nil)
    }.map(\.identity)
  }

  /// - Throws: `.notAvailable` where a digest cannot be computed.
  mutating func importing(
    _ keyed: IncomingItem.Keyed, from origin: MigrationPlan.PlannedImport.Origin
  ) throws(KeychainRuleError) -> Step {
    let (incoming, key) = (keyed.incoming, keyed.primaryKey)
    let slot = slots[key]
    let resolution = try ImportConflict.resolve(incoming: incoming, existing: slot?.existing)
    let indexes = origin.archiveIndexes

    if let stored = resolution.storedItem(incoming: incoming.item, existing: slot?.item) {
      var holders = slot?.archiveIndexes ?? []
      switch resolution.outcome {
      case .insertsNew, .replaces: holders = indexes
      case .identical: holders += indexes
      case .keepsExisting, .blocked: break
      }
      slots[key] = Slot(item: stored, archiveIndexes: holders)
    }
    let rival = try before[key].map { (row) throws(KeychainRuleError) in try Rival(row, of: incoming) }
    let change = Self.change(resolution.outcome, rival)
    return Step(
      planned: MigrationPlan.PlannedImport(
        origin: origin, incoming: incoming, outcome: resolution.outcome,
        writes: !resolution.leaves(slot?.item, meeting: incoming)),
      change: change, detail: Self.detail(resolution.outcome, incoming, slot, rival),
      overwrites: change == .replaces ? rival.flatMap { Self.overwritten($0, by: incoming) } : nil,
      superseded: resolution.outcome.isReplacement ? slot?.archiveIndexes ?? [] : [])
  }

  /// Puts the system-bound rows back that the policy has removed; tombstones only where they mean something.
  mutating func reimportingPreserved(tombstonesToo: Bool) -> [Step] {
    var steps: [Step] = []
    for row in rows where cleared.contains(row.primaryKey) && row.isSystemBound {
      if row.isTombstone, !tombstonesToo { continue }
      guard let item = row.item, let incoming = try? IncomingItem.Keyed(preserved: item),
        let step = try? importing(incoming, from: .preserved)
      else { continue }
      steps.append(step)
    }
    return steps
  }

  /// What the target held under an arriving item's key before anything happened.
  private struct Rival {
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

  private static func change(_ outcome: ImportResolution.Effect, _ rival: Rival?) -> MigrationPlan.Change {
    switch outcome {
    case .identical: return .identical
    case .keepsExisting, .blocked: return .keepsExisting
    case .insertsNew, .replaces:
      guard let rival, !rival.row.isTombstone else { return .new }
      return rival.isSame ? .identical : .replaces
    }
  }

  /// - Returns: `nil` where no item was there.
  private static func overwritten(_ rival: Rival, by incoming: IncomingItem) -> MigrationPlan.OverwrittenItem? {
    switch rival.row.existing.state {
    case .tombstone: return nil
    case .corrupt, .unreadable: return .damaged
    case .item(let theirs, _):
      guard let theirs, let ours = incoming.item.modificationDate else { return .undated }
      return theirs > ours ? .newer : .olderOrEqual
    }
  }

  /// Both dates of a conflict, or which other item of the archive it is with.
  private static func detail(
    _ outcome: ImportResolution.Effect, _ incoming: IncomingItem, _ slot: Slot?, _ rival: Rival?
  ) -> String? {
    if let index = slot?.archiveIndexes.first {
      switch outcome {
      case .keepsExisting: return "item \(index) of this archive has the same key and wins"
      case .identical: return "the same as item \(index) of this archive"
      case .replaces: return "item \(index) of this archive has the same key and loses"
      case .insertsNew, .blocked: return nil
      }
    }
    return rival.flatMap { rivalry(outcome, incoming, $0) }
  }

  /// Which of the backup's item and the one that was there wins, and why.
  private static func rivalry(
    _ outcome: ImportResolution.Effect, _ incoming: IncomingItem, _ rival: Rival
  ) -> String? {
    switch (outcome, rival.row.existing.state) {
    case (_, .corrupt): return "the one there is damaged"
    case (_, .tombstone), (_, .unreadable): return nil
    case (_, .item) where rival.isSame: return nil
    case (_, .item(nil, _)): return "the one there has no date"
    case (_, .item(let theirs?, _)):
      guard let ours = incoming.item.modificationDate else { return "the one in the backup has no date" }
      let dates = Self.dates(theirs: theirs, ours: ours)
      switch outcome {
      case .insertsNew where theirs > ours: return dates + "; the one there is newer, and removed first"
      case .replaces(.sameDateSmallerDigest): return dates + "; the one in the backup has the smaller digest"
      case .keepsExisting(.sameDateSmallerDigest): return dates + "; the one there has the smaller digest"
      case .insertsNew, .replaces, .keepsExisting, .identical, .blocked: return dates
      }
    }
  }

  /// Days where they differ; two equal days would tell nothing.
  private static func dates(theirs: KeychainDate, ours: KeychainDate) -> String {
    if theirs == ours { return "both of \(Timestamp.text(of: ours))" }
    let days = (Timestamp.day(of: theirs), Timestamp.day(of: ours))
    return days.0 == days.1
      ? "there \(Timestamp.text(of: theirs)), in the backup \(Timestamp.text(of: ours))"
      : "there \(days.0), in the backup \(days.1)"
  }
}

extension MigrationPlan.PlannedImport.Origin {
  fileprivate var archiveIndexes: [Int] {
    switch self {
    case .archive(let index): [index]
    case .preserved: []
    }
  }
}
