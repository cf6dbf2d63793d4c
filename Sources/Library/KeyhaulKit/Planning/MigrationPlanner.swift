package import Backups
import Basics
import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// Plans restores. A pure function of its arguments: no file, no database, no clock, and no identity of either device.
package enum MigrationPlanner {
  /// Decides about every item, in the backup's order.
  ///
  /// - Parameters:
  ///   - allItems: The backup's items in order, decrypted with all available keys.
  ///   - indexes: The indexes of the items to plan for; `nil` means all. All items are evidence for the target's
  ///     device key.
  ///   - rows: Every row of the target's keychain.
  ///   - policy: The treatment of the target's own items before the import.
  ///   - context: Other facts about the target and the backup.
  package static func plan(
    _ allItems: [BackupItem], only indexes: Set<Int>? = nil, onto rows: [TargetRow], policy: ExistingItemPolicy,
    context: RestoreContext = RestoreContext()
  ) -> MigrationPlan {
    plan(
      allItems, only: indexes, onto: rows, policy: policy, context: context, cache: ImportCache())
  }

  /// Decides about every item like the method above, with a cache of prepared items.
  ///
  /// - Parameters:
  ///   - cache: The cache, which several plans of the same backup can share.
  ///   - isExecutable: Whether the plan contains its imports, so that it can be carried out.
  static func plan(
    _ allItems: [BackupItem], only indexes: Set<Int>? = nil, onto rows: [TargetRow], policy: ExistingItemPolicy,
    context: RestoreContext, cache: ImportCache, isExecutable: Bool = true
  ) -> MigrationPlan {
    let keyEvidence = DeviceKeyEvidence(allItems)
    let items = indexes.map { indexes in allItems.filter { indexes.contains($0.index) } } ?? allItems

    let builder = PlanBuilder(
      of: items, onto: TargetModel(rows, policy: policy, expecting: items.count), keyEvidence: keyEvidence,
      context: context, cache: cache, isExecutable: isExecutable)
    return MigrationPlan(
      decisions: builder.decisions, removed: builder.removed, policy: policy, isSameDevice: keyEvidence.isSameDevice,
      items: items, imports: isExecutable ? builder.imports : nil, writes: builder.writes,
      removedRowCount: builder.removedRowCount)
  }

  /// Builds a plan by importing the items into a model of the target, one after the other.
  private struct PlanBuilder {
    /// The decision for each item, in order.
    private(set) var decisions: [MigrationPlan.Decision] = []
    private(set) var imports: [MigrationPlan.PlannedImport] = []
    /// Whether an import changes the database.
    private(set) var writes = false
    private(set) var removed: [ItemDescriptor] = []
    private(set) var removedRowCount = 0
    private let keyEvidence: DeviceKeyEvidence
    private let isSameDevice: Bool?
    private let context: RestoreContext
    private let cache: ImportCache
    private let isExecutable: Bool

    init(
      of items: [BackupItem], onto target: consuming TargetModel, keyEvidence: DeviceKeyEvidence,
      context: RestoreContext, cache: ImportCache, isExecutable: Bool
    ) {
      self.keyEvidence = keyEvidence
      isSameDevice = keyEvidence.isSameDevice
      self.context = context
      self.cache = cache
      self.isExecutable = isExecutable
      decisions.reserveCapacity(items.count)
      if isExecutable { imports.reserveCapacity(items.count) }
      for position in items.indices { importItem(at: position, of: items, into: &target) }
      reimportPreserved(into: &target, alongside: items)
      removed = target.removedIdentities
      removedRowCount = target.removedRowCount
    }

    /// Imports an item of the backup, or records why it is not imported.
    private mutating func importItem(at position: Int, of items: [BackupItem], into target: inout TargetModel) {
      let item = items[position]
      let summary = item.item.map { cache.summary(item, $0) } ?? ItemSummary(ItemDescriptor(undecryptable: item.kind))
      func decide(_ verdict: Verdict) {
        decisions.append(decision(about: item, summary, verdict, onSameDevice: isSameDevice))
      }
      switch eligibility(of: item, keyEvidence, context, cache) {
      case .ineligible(let verdict): decide(verdict)
      case .eligible(let incoming, let startsToSync):
        let step: TargetModel.Step
        do throws(KeychainRuleError) {
          step = try target.importItem(incoming, from: .archive(position: UInt32(clamping: position)), of: items)
        } catch {
          return decide(malformedVerdict(item, error))
        }
        add(step.planned)
        decide(
          Verdict(
            outcome: .migrates(step.change), detail: joined(startsToSync ? syncRemark(step.change) : nil, step.detail),
            overwrites: step.overwrites))
        supersede(
          step,
          with: Verdict(
            outcome: .migrates(.keepsExisting), detail: "item \(item.index) of this backup has the same key and wins"))
      }
    }

    /// Imports the system's own items into the model again, after the backup's items.
    private mutating func reimportPreserved(into target: inout TargetModel, alongside items: [BackupItem]) {
      for step in target.reimportPreserved(includingTombstones: context.targetSyncs, alongside: items) {
        add(step.planned)
        // If the system has deleted the item, it is not on the target afterwards.
        let verdict =
          step.isDeletion
          ? Verdict(outcome: .staysBehind(.deleted), detail: "the system's own deletion of it wins")
          : Verdict(outcome: .migrates(.keepsExisting), detail: "the system's own item with the same key wins")
        supersede(step, with: verdict)
      }
    }

    private mutating func add(_ planned: MigrationPlan.PlannedImport) {
      writes = writes || planned.writes
      if isExecutable { imports.append(planned) }
    }

    /// Changes the decisions about earlier items that the import of a step replaces.
    private mutating func supersede(_ step: TargetModel.Step, with verdict: Verdict) {
      for position in step.superseded { decisions[position] = superseded(decisions[position], by: verdict) }
    }
  }

  /// The result of importing an item, or the reason why the item is not imported.
  private struct Verdict {
    let outcome: MigrationPlan.Outcome
    let detail: String?
    var overwrites: MigrationPlan.OverwrittenItem?
  }

  private static func decision(
    about backupItem: BackupItem, _ summary: ItemSummary, _ verdict: Verdict, onSameDevice: Bool?
  ) -> MigrationPlan.Decision {
    let arrives = verdict.outcome.change.map { $0 != .keepsExisting } ?? false
    return MigrationPlan.Decision(
      index: backupItem.index, identity: summary.identity, protection: backupItem.protection, outcome: verdict.outcome,
      detail: verdict.detail, overwrites: verdict.overwrites,
      warning: arrives && summary.containsSecureEnclaveKey == true
        ? ArrivalWarning(forSecureEnclaveKeyOnSameDevice: onSameDevice) : nil,
      isSynchronizable: summary.isSynchronizable, containsSecureEnclaveKey: summary.containsSecureEnclaveKey)
  }

  /// Returns the decision about an item that lost its primary key to another item.
  private static func superseded(
    _ decision: MigrationPlan.Decision, by verdict: Verdict
  ) -> MigrationPlan.Decision {
    MigrationPlan.Decision(
      index: decision.index, identity: decision.identity, protection: decision.protection, outcome: verdict.outcome,
      detail: verdict.detail, isSynchronizable: decision.isSynchronizable,
      containsSecureEnclaveKey: decision.containsSecureEnclaveKey)
  }

  private static func malformedVerdict(_ backupItem: BackupItem, _ error: KeychainRuleError) -> Verdict {
    Verdict(outcome: .unreadable(.malformed), detail: joined(error.reason, location(of: backupItem)))
  }

  private enum ImportEligibility {
    case eligible(IncomingItem.Keyed, startsToSync: Bool)
    case ineligible(Verdict)
  }

  /// Returns the remark about an item that a restore marks as synchronized although the backup does not.
  private static func syncRemark(_ change: MigrationPlan.Change) -> String {
    let effect =
      switch change {
      case .new, .replaces: "it will sync with iCloud Keychain once restored"
      case .keepsExisting, .identical: "it already syncs on the target"
      }
    return "\(GlossaryTerm.inferredSynchronizable.id): \(effect)"
  }

  /// Returns the item in the form in which it is imported, or the verdict if a restore excludes it.
  private static func eligibility(
    of backupItem: BackupItem, _ keyEvidence: DeviceKeyEvidence, _ context: RestoreContext,
    _ cache: ImportCache
  ) -> ImportEligibility {
    switch backupItem.opening {
    case .failed(let failure):
      let reason = backupItem.reason(
        of: failure, hardware: keyEvidence, backupHasPassword: context.backupHasPassword)
      return .ineligible(
        Verdict(
          outcome: reason.isDamage ? .unreadable(reason) : .staysBehind(reason),
          detail: detail(of: failure, backupItem, keyEvidence)))
    case .opened(let item):
      guard !backupItem.isSecretOnly else {
        return .ineligible(
          Verdict(
            outcome: .unreadable(.unsupportedVersion),
            detail: joined("version 0, a secret without a name", location(of: backupItem))))
      }
      if let reason = RestoreExclusions.exclusionReason(for: item, in: context) {
        return .ineligible(Verdict(outcome: .staysBehind(reason), detail: nil))
      }
      do throws(KeychainRuleError) {
        let incoming = try cache.incoming(backupItem, item)
        let startsToSync = incoming.incoming.item.isSynchronizable && !item.isSynchronizable
        return .eligible(incoming, startsToSync: startsToSync)
      } catch {
        return .ineligible(malformedVerdict(backupItem, error))
      }
    }
  }

  private static func detail(
    of failure: BackupItem.Failure, _ backupItem: BackupItem, _ keyEvidence: DeviceKeyEvidence
  ) -> String? {
    switch failure {
    case .noClassKey(let keyClass):
      joined("the keybag has no key of class \(keyClass.displayName)", location(of: backupItem))
    case .classKeyDamaged(let keyClass):
      joined("the keybag's key of class \(keyClass.displayName) cannot be unwrapped", location(of: backupItem))
    case .hardwareMissing: "only the source device's key can decrypt it"
    case .keyUnwrapFailed where backupItem.mayNeedOtherDeviceKey(keyEvidence) && keyEvidence.isMixed:
      joined(
        "this device's key decrypts other items, but none of this item's class. Either the item's key needs "
          + "another device's key, or the item is damaged; Keyhaul cannot tell which", location(of: backupItem)
      )
    case .keyUnwrapFailed where backupItem.mayNeedOtherDeviceKey(keyEvidence):
      "only the source device's key can decrypt it"
    case .keyUnwrapFailed, .tagMismatch: joined("the item's bytes were changed", location(of: backupItem))
    case .malformed(let reason): joined(reason, location(of: backupItem))
    case .unsupportedVersion(let version): joined("version \(version)", location(of: backupItem))
    case .missingData: "the entry contains no data"
    }
  }

  private static func location(of backupItem: BackupItem) -> String? {
    backupItem.blob.map { "\(HumanReadable.bytes($0.byteCount)) at \(HumanReadable.grouped($0.offset))" }
  }

  private static func joined(_ first: String?, _ second: String?) -> String? {
    let parts = [first, second].compactMap(\.self)
    return parts.isEmpty ? nil : parts.joined(separator: "; ")
  }
}
