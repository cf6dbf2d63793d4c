public import Backups
import Basics
public import KeychainFormats
public import KeychainRules

/// The decisions about restoring a backup to a device. A plan changes neither the backup nor the device.
///
/// The plan depends on the keys and on the target's rows, never on a name or an identifier. Reports print this value,
/// JSON contains it, and `Restorer` carries it out.
public struct MigrationPlan: Sendable {
  /// The decision for each item of the backup, in its order.
  public let decisions: [Decision]
  /// The items of the target that the restore removes.
  package let removed: [ItemDescriptor]
  /// The treatment of the target's own items before the import.
  package let policy: ExistingItemPolicy
  /// Whether the target is the source device, according to its device key:
  ///
  /// - `true` if the key decrypts an item of every class that needs a device key.
  /// - `false` if the key decrypts no such item.
  /// - `nil` if no item needs a device key, or if the key decrypts items of only some of these classes.
  package let isSameDevice: Bool?
  /// The imports that `Restorer` makes, in order, each with its expected result.
  package let imports: [PlannedImport]
  /// Whether `Restorer` can carry out the plan. Otherwise, the plan contains no imports and is only for reports.
  package let isExecutable: Bool
  /// The number of rows that the policy removes before the first import, including rows that are added again.
  package let removedRowCount: Int

  /// The items of the plan; empty without imports.
  let items: [BackupItem]

  /// An import into the target's database, with its expected result.
  package struct PlannedImport: Sendable {
    /// The item of an import. For an item of the backup, this is only a position, to save memory.
    package enum Origin: Sendable {
      /// An item of the plan, by its position.
      case archive(position: UInt32)
      /// A system-bound item of the target that `replace` has removed.
      indirect case preserved(IncomingItem)
    }

    package let origin: Origin
    package let outcome: ImportResolution.Effect
    /// Whether the import changes the database. `false` if the existing row stays identical.
    package let writes: Bool

    package init(origin: Origin, outcome: ImportResolution.Effect, writes: Bool = true) {
      self.origin = origin
      self.outcome = outcome
      self.writes = writes
    }
  }

  /// Whether the target's keychain stays identical, as in a merge without new items.
  package let changesNothing: Bool

  /// Creates a plan without the items of its imports, for tests.
  package init(
    decisions: [Decision], removed: [ItemDescriptor], policy: ExistingItemPolicy, isSameDevice: Bool?,
    imports: [PlannedImport], removedRowCount: Int
  ) {
    self.init(
      decisions: decisions, removed: removed, policy: policy, isSameDevice: isSameDevice, items: [], imports: imports,
      writes: imports.contains { $0.writes }, removedRowCount: removedRowCount)
  }

  /// Creates a plan with different imports of the same items, for tests of a restore that differs from its plan.
  package init(
    _ plan: MigrationPlan, policy: ExistingItemPolicy? = nil, imports: [PlannedImport]? = nil,
    removedRowCount: Int? = nil
  ) {
    let imports = imports ?? plan.imports
    self.init(
      decisions: plan.decisions, removed: plan.removed, policy: policy ?? plan.policy, isSameDevice: plan.isSameDevice,
      items: plan.items, imports: imports, writes: imports.contains { $0.writes },
      removedRowCount: removedRowCount ?? plan.removedRowCount)
  }

  /// - Parameters:
  ///   - items: The imported items.
  ///   - imports: The imports; `nil` if the plan is only for reports.
  ///   - writes: Whether an import changes the database.
  init(
    decisions: [Decision], removed: [ItemDescriptor], policy: ExistingItemPolicy, isSameDevice: Bool?,
    items: [BackupItem], imports: [PlannedImport]?, writes: Bool, removedRowCount: Int
  ) {
    self.items = imports == nil ? [] : items
    self.decisions = decisions
    self.removed = removed
    self.policy = policy
    self.isSameDevice = isSameDevice
    self.imports = imports ?? []
    self.removedRowCount = removedRowCount
    isExecutable = imports != nil
    changesNothing = policy == .merge && removedRowCount == 0 && !writes
  }

  /// Creates a copy of a plan with different decisions to show.
  init(_ plan: MigrationPlan, decisions: [Decision], removed: [ItemDescriptor], isSameDevice: Bool?) {
    self.decisions = decisions
    self.removed = removed
    self.isSameDevice = isSameDevice
    (policy, items, imports, isExecutable) = (plan.policy, plan.items, plan.imports, plan.isExecutable)
    (removedRowCount, changesNothing) = (plan.removedRowCount, plan.changesNothing)
  }

  /// Whether the restore only removes items from the target, because no item of the backup arrives. `false` for a
  /// backup without items.
  package var onlyRemoves: Bool {
    guard !removed.isEmpty, !decisions.isEmpty else { return false }
    return decisions.allSatisfy { decision in
      switch decision.outcome {
      case .migrates(.keepsExisting), .staysBehind, .unreadable: true
      case .migrates(.new), .migrates(.replaces), .migrates(.identical): false
      }
    }
  }

  /// The decision about one item, and its reason.
  public struct Decision: Sendable, Hashable {
    // The order of the properties minimizes the size: a plan has one decision for every item.
    /// The index in the backup.
    public let index: Int
    /// An additional fact, such as the position of damage or both dates of a conflict. Never a value of the item.
    public let detail: String?
    /// The item's names, which are unknown if it cannot be decrypted.
    public let identity: ItemDescriptor
    /// The protection class; `nil` if it is unknown.
    public let protection: ProtectionClass?
    /// The outcome and its reason.
    public let outcome: Outcome
    /// The relation to the target's item that this item replaces; `nil` if it replaces none.
    public let overwrites: OverwrittenItem?
    /// The reason why an arriving item may be unusable; `nil` if there is none.
    public let warning: ArrivalWarning?
    /// Whether the item synchronizes; `nil` if it is encrypted.
    package let isSynchronizable: Bool?
    /// Whether the value has the form of a Secure Enclave key; `nil` if it is encrypted.
    package let containsSecureEnclaveKey: Bool?

    /// Creates a decision.
    package init(
      index: Int, identity: ItemDescriptor, protection: ProtectionClass?, outcome: Outcome, detail: String?,
      overwrites: OverwrittenItem? = nil, warning: ArrivalWarning? = nil, isSynchronizable: Bool? = nil,
      containsSecureEnclaveKey: Bool? = nil
    ) {
      self.index = index
      self.identity = identity
      self.protection = protection
      self.outcome = outcome
      self.detail = detail
      self.overwrites = overwrites
      self.warning = warning
      self.isSynchronizable = isSynchronizable
      self.containsSecureEnclaveKey = containsSecureEnclaveKey
    }

    /// Returns the decision with a different index.
    func at(_ index: Int) -> Decision {
      Decision(
        index: index, identity: identity, protection: protection, outcome: outcome, detail: detail,
        overwrites: overwrites, warning: warning, isSynchronizable: isSynchronizable,
        containsSecureEnclaveKey: containsSecureEnclaveKey)
    }

    /// Returns the decision with known names and other properties of an encrypted item.
    func naming(_ summary: ItemSummary) -> Decision {
      Decision(
        index: index, identity: summary.identity, protection: protection, outcome: outcome, detail: detail,
        overwrites: overwrites, warning: warning, isSynchronizable: isSynchronizable ?? summary.isSynchronizable,
        containsSecureEnclaveKey: containsSecureEnclaveKey ?? summary.containsSecureEnclaveKey)
    }
  }

  /// The relation of an item of the target to the different item of the backup that replaces it.
  public enum OverwrittenItem: Sendable, Hashable {
    /// Modified later than the backup's item.
    case newer
    /// Not modified later than the backup's item.
    case olderOrEqual
    /// At least one of the two has no date, so it is unknown which is newer.
    case undated
    /// Cannot be decrypted, so its content is unknown.
    case damaged
  }

  /// The decisions that replace a different item of the target, ordered by the replaced item: newer ones first, then
  /// undated, damaged, and older or equally old ones.
  package var overwriting: [Decision] {
    let order: [OverwrittenItem] = [.newer, .undated, .damaged, .olderOrEqual]
    return order.flatMap { relation in decisions.filter { $0.overwrites == relation } }
  }

  /// The outcome for one item. Every case states the effect or the reason, so reports never have to guess.
  public enum Outcome: Sendable, Hashable {
    /// The item is on the target afterwards, with this change.
    case migrates(Change)
    /// The item is undamaged, but a rule or a key excludes it.
    case staysBehind(Reason)
    /// The item is damaged in this backup.
    case unreadable(Reason)
  }

  /// The effect of an arriving item on the target.
  public enum Change: String, Sendable, CaseIterable, Codable {
    /// The target had no item with the same primary key.
    case new
    /// Replaces an item with the same primary key.
    case replaces
    /// An item with the same primary key exists and wins.
    case keepsExisting = "keeps-existing"
    /// An identical item exists.
    case identical
  }

  /// The numbers of decisions.
  public struct Summary: Sendable, Hashable {
    /// Items of the backup.
    public var total = 0
    /// Items that are on the target afterwards.
    public var migrates = 0
    /// Items that a rule or a key excludes.
    public var staysBehind = 0
    /// Items that are damaged in this backup.
    public var unreadable = 0
    /// Items of the target that the restore removes.
    public var removed = 0
    /// Items that stay behind or are unreadable, by reason.
    package var byReason: [Reason: Int] = [:]
    /// Items that arrive, by their effect on the target.
    package var byChange: [Change: Int] = [:]
    /// Items that arrive with a warning.
    package var byWarning: [ArrivalWarning: Int] = [:]
  }

  /// The numbers of decisions, counted at each access.
  public var summary: Summary {
    var summary = Summary(total: decisions.count, removed: removed.count)
    for decision in decisions {
      switch decision.outcome {
      case .migrates: summary.migrates += 1
      case .staysBehind: summary.staysBehind += 1
      case .unreadable: summary.unreadable += 1
      }
      if let reason = decision.outcome.reason { summary.byReason[reason, default: 0] += 1 }
      if let change = decision.outcome.change { summary.byChange[change, default: 0] += 1 }
      if let warning = decision.warning { summary.byWarning[warning, default: 0] += 1 }
    }
    return summary
  }
}

extension MigrationPlan {
  /// Returns the item of an import as it is stored without a conflict. An item of the backup is prepared again each
  /// time, and decrypted if it is not in memory.
  ///
  /// - Throws: An error if the backup's private copy cannot be read again.
  package func incoming(_ planned: PlannedImport) throws(KeyhaulError) -> IncomingItem {
    switch planned.origin {
    case .preserved(let incoming): return incoming
    case .archive(let position):
      return try translatingErrors { () throws(KeychainRuleError) in
        let backupItem = items[Int(position)]
        return try IncomingItem(
          validated: backupItem.requireItem(), persistentReference: backupItem.persistentReference)
      }
    }
  }

  /// Checks the number of rows that were removed before the first import.
  ///
  /// - Throws: `.stalePlan` if the plan has a different number.
  func requireRemovedRowCount(_ count: Int) throws(KeyhaulError) {
    guard count == removedRowCount else {
      throw .stalePlan("\(count) items would be removed, but the plan says \(removedRowCount)")
    }
  }

  /// Returns the kind of an import's item.
  func kind(of planned: PlannedImport) -> ItemKind {
    switch planned.origin {
    case .preserved(let incoming): incoming.item.kind
    case .archive(let position): items[Int(position)].kind
    }
  }

  /// Returns the reason for the error if the result of an import would differ from the plan.
  package func difference(at planned: PlannedImport) -> String {
    switch planned.origin {
    case .archive(let position): "item \(items[Int(position)].index) would not be restored as planned"
    case .preserved: "one of the system's items would not be restored as planned"
    }
  }
}
