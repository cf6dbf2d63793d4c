public import Backups
import Basics
public import KeychainFormats
public import KeychainRules

/// What restoring one archive onto one device would do, decided without changing either.
///
/// Computed from what the keys open and from the target's rows, never from a name or an identifier; the same value is
/// what a report prints, what JSON holds and what `Restorer` carries out.
public struct MigrationPlan: Sendable {
  /// One decision for each item in the archive, in the archive's order.
  public let decisions: [Decision]
  /// Items of the target that are gone afterwards.
  package let removed: [ItemDescriptor]
  /// What happens to the target's own items before anything is imported.
  package let policy: ExistingItemPolicy
  /// Whether the target is the device that made the archive: `true` if its hardware key opens an item of every class
  /// that needs it, `false` if it opens no such item; `nil` if no item needs the key, or if the key opens items of some
  /// of these classes and not of others.
  package let isSameDevice: Bool?
  /// What `Restorer` does in its order; every step says what must come of it.
  package let imports: [PlannedImport]
  /// Whether they are there: a plan that is only looked at holds none, and cannot be carried out.
  package let keepsImports: Bool
  /// How many rows the policy removes before the first import, those that come back included.
  package let removedRowCount: Int

  /// The archive's items that the plan is about; none where it holds no imports.
  let items: [BackupItem]

  /// One import into the target's database, and what the planner says will come of it.
  package struct PlannedImport: Sendable {
    /// Which item it is. There is one for every item, so that none is held by it that the archive has.
    package enum Origin: Sendable {
      /// One of the plan's items, by its place among them.
      case archive(place: UInt32)
      /// A system-bound item of the target that `replace` has removed.
      indirect case preserved(IncomingItem)
    }

    package let origin: Origin
    package let outcome: ImportResolution.Effect
    /// `false` where the row that is there stays as it is, to the last byte.
    package let writes: Bool

    package init(origin: Origin, outcome: ImportResolution.Effect, writes: Bool = true) {
      self.origin = origin
      self.outcome = outcome
      self.writes = writes
    }
  }

  /// Whether the target's keychain is afterwards what it is now, to the last byte: a merge that brings nothing new.
  package let changesNothing: Bool

  /// A plan that imports nothing, as tests make one to show.
  package init(
    decisions: [Decision], removed: [ItemDescriptor], policy: ExistingItemPolicy, isSameDevice: Bool?,
    imports: [PlannedImport], removedRowCount: Int
  ) {
    self.init(
      decisions: decisions, removed: removed, policy: policy, isSameDevice: isSameDevice, items: [], imports: imports,
      writes: imports.contains { $0.writes }, removedRowCount: removedRowCount)
  }

  /// The same plan with other imports of the same items, as tests make one that does not come true.
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
  ///   - items: Those that the imports bring.
  ///   - imports: `nil` for a plan that is only looked at.
  ///   - writes: Whether one of them writes.
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
    keepsImports = imports != nil
    changesNothing = policy == .merge && removedRowCount == 0 && !writes
  }

  /// The same plan with something else to show.
  init(_ plan: MigrationPlan, decisions: [Decision], removed: [ItemDescriptor], isSameDevice: Bool?) {
    self.decisions = decisions
    self.removed = removed
    self.isSameDevice = isSameDevice
    (policy, items, imports, keepsImports) = (plan.policy, plan.items, plan.imports, plan.keepsImports)
    (removedRowCount, changesNothing) = (plan.removedRowCount, plan.changesNothing)
  }

  /// Whether it takes items away from the target and brings none: of what the archive holds nothing arrives, and what is
  /// there is removed all the same. An archive without items brings none either, and that is no such plan.
  package var onlyRemoves: Bool {
    guard !removed.isEmpty, !decisions.isEmpty else { return false }
    return decisions.allSatisfy { decision in
      switch decision.outcome {
      case .migrates(.keepsExisting), .staysBehind, .unreadable: true
      case .migrates(.new), .migrates(.replaces), .migrates(.identical): false
      }
    }
  }

  /// What will happen to one item, and why.
  public struct Decision: Sendable, Hashable {
    // In this order they take the least memory: there is one for every item.
    /// Position in the archive.
    public let index: Int
    /// A fact worth showing with it: where the damage is, both dates of a conflict. Never a value of the item.
    public let detail: String?
    /// The names that the item is known by; sealed where it does not open.
    public let identity: ItemDescriptor
    /// The class that protects it; `nil` if the blob doesn't say.
    public let protection: ProtectionClass?
    /// What happens to it, and why.
    public let outcome: Outcome
    /// What the item of the target was whose place this one takes.
    public let overwrites: OverwrittenItem?
    /// Of an item that arrives: what is known against its use there.
    public let warning: ArrivalWarning?
    /// Whether it is marked to synchronize; `nil` if that is sealed.
    public let isSynchronizable: Bool?
    /// Whether its value has the form of a key of the Secure Enclave; `nil` if that is sealed.
    public let containsSecureEnclaveKey: Bool?

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

    /// Returns the decision with another position.
    func at(_ index: Int) -> Decision {
      Decision(
        index: index, identity: identity, protection: protection, outcome: outcome, detail: detail,
        overwrites: overwrites, warning: warning, isSynchronizable: isSynchronizable,
        containsSecureEnclaveKey: containsSecureEnclaveKey)
    }

    /// The same decision with what is known of the item besides; its names are taken from there.
    func naming(_ known: ItemSummary) -> Decision {
      Decision(
        index: index, identity: known.identity, protection: protection, outcome: outcome, detail: detail,
        overwrites: overwrites, warning: warning, isSynchronizable: isSynchronizable ?? known.isSynchronizable,
        containsSecureEnclaveKey: containsSecureEnclaveKey ?? known.containsSecureEnclaveKey)
    }
  }

  /// An item of the target that another one of the archive takes the place of, the two not being the same.
  public enum OverwrittenItem: Sendable, Hashable {
    /// Changed later than the archive's.
    case newer
    /// Not changed later than the archive's.
    case olderOrEqual
    /// One of the two has no date, so that nothing says which is newer.
    case undated
    /// It does not open: what it was, nobody can tell.
    case damaged
  }

  /// The decisions that take something away from the target which is not the same as what comes: first those about items
  /// that are newer there, then those of which nobody can tell.
  package var overwriting: [Decision] {
    let order: [OverwrittenItem] = [.newer, .undated, .damaged, .olderOrEqual]
    return order.flatMap { kind in decisions.filter { $0.overwrites == kind } }
  }

  /// Every case says why, so that a report never has to guess.
  public enum Outcome: Sendable, Hashable {
    /// The item is on the target afterwards, as `Change` says.
    case migrates(Change)
    /// The item is sound, and a rule or a key leaves it out.
    case staysBehind(Reason)
    /// The item is damaged in this copy.
    case unreadable(Reason)
  }

  /// What an arriving item does to the target.
  public enum Change: String, Sendable, CaseIterable, Codable {
    /// Nothing with its primary key was there.
    case new
    /// Takes the place of an item with the same primary key.
    case replaces
    /// An item with the same primary key is there and wins.
    case keepsExisting = "keeps-existing"
    /// The very same item is there.
    case identical
  }

  /// The decisions, counted.
  public struct Summary: Sendable, Hashable {
    /// Items of the archive.
    public var total = 0
    /// Items that are on the target afterwards.
    public var migrates = 0
    /// Items that a rule or a key leaves out.
    public var staysBehind = 0
    /// Items that are damaged in this copy.
    public var unreadable = 0
    /// Items of the target that are gone afterwards.
    public var removed = 0
    /// What stays behind or is unreadable, by its reason.
    public var byReason: [Reason: Int] = [:]
    /// What arrives, by what it does on the target.
    public var byChange: [Change: Int] = [:]
    /// What arrives and is warned of.
    public var byWarning: [ArrivalWarning: Int] = [:]
  }

  /// The decisions, counted again at each call.
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
  /// The item that an import brings, as it is stored where nothing is in its way. One of the archive's is settled again each
  /// time, and opened where the archive holds none.
  ///
  /// - Throws: Where the archive's private copy is not given again by the system.
  package func incoming(_ planned: PlannedImport) throws(KeyhaulError) -> IncomingItem {
    switch planned.origin {
    case .preserved(let incoming): return incoming
    case .archive(let place):
      return try translatingErrors { () throws(KeychainRuleError) in
        let archived = items[Int(place)]
        return try IncomingItem(again: archived.requireItem(), persistentReference: archived.persistentReference)
      }
    }
  }

  /// Checks the number of rows that were removed before the first import.
  ///
  /// - Throws: `.stalePlan` if the plan has another number.
  func requireRemovedRowCount(_ count: Int) throws(KeyhaulError) {
    guard count == removedRowCount else {
      throw .stalePlan("\(count) items would be removed, but the plan says \(removedRowCount)")
    }
  }

  /// The kind of the item that an import brings.
  func kind(of planned: PlannedImport) -> ItemKind {
    switch planned.origin {
    case .preserved(let incoming): incoming.item.kind
    case .archive(let place): items[Int(place)].kind
    }
  }

  /// What is said of an import that would not do what the plan says.
  package func difference(at planned: PlannedImport) -> String {
    switch planned.origin {
    case .archive(let place): "item \(items[Int(place)].index) would not be restored as planned"
    case .preserved: "one of the system's items would not be restored as planned"
    }
  }
}
