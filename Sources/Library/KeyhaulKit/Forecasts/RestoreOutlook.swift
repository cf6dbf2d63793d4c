package import Backups
import Basics
package import KeychainCrypto
public import KeychainFormats
public import KeychainRules
package import VirtualDevice

/// What becomes of a keychain when its device is wiped or replaced: restored to a new device, and to the same one after it
/// was erased. Both are only thought of: unlocked, with a passcode, and with an empty keychain.
public struct RestoreOutlook: Sendable {
  /// What becomes of the items in all four restores; what is known only by class stands in `expected`.
  public let comparison: MigrationComparison
  /// The plan of a restore to the new device, for reports that are about one target.
  public let planForNewDevice: MigrationPlan
  /// Whether the items are those of a backup; otherwise those of a device, all of them.
  public let isOfBackup: Bool
  /// Items, by their positions, of which it is expected that they come back to the same device, because their class says
  /// so: the key that would show it is not available.
  public let expected: Set<Int>
  /// Whether the hardware key of the device that made the backup was tried, and is not known to be another device's.
  public let triedDeviceKey: Bool
  /// The items of that device, where it is available.
  public let sourceDeviceItems: SourceDeviceItems?

  /// Creates two futures of what is known already.
  package init(
    _ comparison: MigrationComparison, planForNewDevice: MigrationPlan, isOfBackup: Bool, expected: Set<Int> = [],
    triedDeviceKey: Bool, sourceDeviceItems: SourceDeviceItems? = nil
  ) {
    self.comparison = comparison
    self.planForNewDevice = planForNewDevice
    self.isOfBackup = isOfBackup
    self.expected = expected
    self.triedDeviceKey = triedDeviceKey
    self.sourceDeviceItems = sourceDeviceItems
  }

  /// Whether the backup has a password: the one at hand, or the one that a device's items are thought to go into.
  public var hasPassword: Bool { comparison.current.hasPassword }

  /// The two futures of a backup.
  ///
  /// On a new device arrives what opens without any hardware key. On the same device arrives what opens with its key; where
  /// the key is not available, what needs it is expected by its class.
  ///
  /// - Parameters:
  ///   - archive: The backup, opened with no hardware key.
  ///   - returning: The same backup, opened with the hardware key of the device that is said to have made it; `nil` if
  ///     none is available. One that opens nothing is another device's, and decides nothing.
  ///   - sourceDevice: The items of that device.
  /// - Throws: Category `damaged` for a backup that its device never finished, `refused` for one without a password whose
  ///   keychain no hardware binds.
  package init(
    of archive: UnlockedBackup, returning: UnlockedBackup?, sourceDeviceItems: SourceDeviceItems? = nil
  ) throws(KeyhaulError) {
    let returning = returning.flatMap { $0.isSameDevice == false ? nil : $0 }
    let onNew = try Restorer.plan(archive, ontoEmptyNamedBy: returning)
    var onSame: MigrationPlan?
    if let returning { onSame = try Restorer.plan(returning, ontoEmptyNamedBy: nil) }
    let hasPassword = archive.hasPassword
    let current = RestoreScenario(hasPassword: hasPassword, onSameDevice: false)
    var expected: Set<Int> = []
    let items = onNew.decisions.enumerated().map { position, decision in
      var restoreOutcomes: RestoreOutcomes = [:]
      for scenario in RestoreScenario.allCases {
        restoreOutcomes[scenario] = MigrationComparison.restoreOutcome(of: decision, in: scenario)
      }
      let back = RestoreScenario(hasPassword: hasPassword, onSameDevice: true)
      restoreOutcomes[current] = RestoreOutcome(decision.outcome)
      if let onSame {
        restoreOutcomes[back] = RestoreOutcome(onSame.decisions[position].outcome)
      } else if decision.outcome.needsDeviceKey, restoreOutcomes[back] == .arrives {
        expected.insert(decision.index)
      }
      return MigrationComparison.Item(decision, restoreOutcomes)
    }
    self.init(
      MigrationComparison(items, current: current), planForNewDevice: onNew, isOfBackup: true, expected: expected,
      triedDeviceKey: onSame != nil, sourceDeviceItems: sourceDeviceItems)
  }

  /// The two futures of a device, by a backup made of it now: each is tried, with real keys and in memory.
  ///
  /// - Parameters:
  ///   - device: A hold on the device, which has to be unlocked.
  ///   - hasPassword: Of the backup that is thought of; the other one is compared with it.
  /// - Throws: As a backup does, category `locked` foremost.
  package init(of device: DeviceSession, hasPassword: Bool) throws(KeyhaulError) {
    let simulatedBackup = try SimulatedBackup(of: device, hasPassword: hasPassword)
    let otherKey = try MigrationComparison.keyOfUnknownDevice()
    let compared = try MigrationComparison(of: device, onto: device, knowing: simulatedBackup)
    self.init(
      MigrationComparison(compared.items, current: RestoreScenario(hasPassword: hasPassword, onSameDevice: false)),
      planForNewDevice: try Restorer.plan(simulatedBackup, ontoEmpty: otherKey), isOfBackup: false, triedDeviceKey: true
    )
  }
}

extension MigrationPlan.Outcome {
  /// Whether the hardware of the device that made the backup is all that it lacks.
  fileprivate var needsDeviceKey: Bool { reason == .deviceBound || reason == .backupNotEncrypted }
}

extension Restorer {
  /// Decides what restoring a backup would do to a device that holds nothing.
  ///
  /// - Parameter other: The same backup, opened with a key that gives names of what stays sealed here.
  fileprivate static func plan(
    _ archive: UnlockedBackup, ontoEmptyNamedBy other: UnlockedBackup?
  ) throws(KeyhaulError) -> MigrationPlan {
    try archive.archive.requireUsableClassKeys(for: .planning)
    var known = archive.encryptedItemSummaries
    for item in other?.items ?? [] { if let opened = item.item { known[item.index] = ItemSummary(opened) } }
    return MigrationPlanner.plan(
      archive.items, onto: [], policy: .replace,
      context: RestoreContext(backupHasPassword: archive.hasPassword)
    ).naming(known)
  }
}

extension RestoreOutlook {
  /// What becomes of all items in one restore. Every item is in one of the counts.
  public struct Counts: Sendable, Hashable {
    /// Items that arrive; every key that this takes was tried.
    public var arrives = 0
    /// Items that arrive as far as their class says.
    public var expected = 0
    /// Items of the backup that a rule or a key leaves out; of a device, those that its backup would hold.
    public var staysBehind = 0
    /// Items that are damaged, in the backup or on the device.
    public var unreadable = 0
    /// Items that come back and may be of no use there, by the warning.
    public var byWarning: [ArrivalWarning: Int] = [:]
    /// The number of items that a rule excludes from every backup; `nil` if it is unknown because the device is not
    /// available.
    public var never: Int?
    /// Items that were added to the device after the backup was made; `nil` if they are unknown.
    public var since: Int?

    /// Items that come back.
    public var returningCount: Int { arrives + expected }
    /// Items that are known not to come back.
    public var lost: Int { staysBehind + unreadable + (never ?? 0) + (since ?? 0) }
    /// All items that are known of.
    public var total: Int { returningCount + lost }
  }

  /// The items counted for one of the restores.
  ///
  /// - Parameter scenario: Of a backup, the one that has a password if the backup has one; what a backup does not have is
  ///   counted by class.
  public func counts(_ scenario: RestoreScenario) -> Counts {
    var counts = Counts()
    if !isOfBackup { (counts.never, counts.since) = (0, 0) }
    for item in comparison.items {
      switch item[scenario] {
      case .arrives where scenario.onSameDevice && expected.contains(item.index): counts.expected += 1
      case .arrives: counts.arrives += 1
      case .staysBehind where !isOfBackup && !item.isInBackup: counts.never = (counts.never ?? 0) + 1
      case .staysBehind: counts.staysBehind += 1
      case .unreadable: counts.unreadable += 1
      }
      if let warning = item.warning(in: scenario) { counts.byWarning[warning, default: 0] += 1 }
    }
    if let sourceDeviceItems {
      // A device that has lost items of the backup, as one that was erased, shows no longer what it kept.
      counts.never =
        sourceDeviceItems.never.isEmpty && sourceDeviceItems.removedCount > 0 ? nil : sourceDeviceItems.never.count
      counts.since = sourceDeviceItems.since.count
      counts.unreadable += sourceDeviceItems.unreadable.count
    }
    return counts
  }

  /// The items counted for one of the two futures, with the backup at hand.
  public func counts(onSameDevice: Bool) -> Counts {
    counts(RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice))
  }

  /// What becomes of an item in the two futures together.
  public enum ItemOutlook: Sendable, Hashable, CaseIterable {
    /// It is on both afterwards.
    case both
    /// It comes back to the same device alone.
    case sameDevice
    /// It is on neither.
    case neither
  }

  /// An item that is known of, in the backup or only on the device.
  public struct Item: Sendable, Hashable {
    /// Its position in the backup; `nil` of one that is only on the device that made it.
    public let index: Int?
    /// The names that it is known by.
    package let identity: ItemDescriptor
    /// The class that protects it; `nil` if nothing says it.
    public let protection: ProtectionClass?
    /// Where it comes back to.
    package let outlook: ItemOutlook
    /// Whether it is by its class alone that it is expected back.
    package let isExpected: Bool
    /// Why it does not reach a new device, or the damage for which it does not come back either; `nil` if it arrives,
    /// and of an item that came after the backup was made.
    public let reason: Reason?
    /// What is known against its use on a new device; `nil` if it does not get there.
    package let warning: ArrivalWarning?
    /// The same on the device that made it.
    package let warningOnReturn: ArrivalWarning?
  }

  /// All items that are known of: those of the backup or of the device in their order, then those that are only on the
  /// device that made the backup.
  public var items: [Item] {
    let (back, away) = (
      RestoreScenario(hasPassword: hasPassword, onSameDevice: true),
      RestoreScenario(hasPassword: hasPassword, onSameDevice: false)
    )
    return comparison.items.map { item in
      var reason = item[away].reason
      if let damage = item[back].reason, damage.isDamage { reason = damage }
      return Item(
        index: item.index, identity: item.identity, protection: item.protection,
        outlook: item[away] == .arrives ? .both : item[back] == .arrives ? .sameDevice : .neither,
        isExpected: expected.contains(item.index), reason: reason, warning: item.warning(in: away),
        warningOnReturn: item.warning(in: back))
    }
      + (sourceDeviceItems?.absent ?? []).map { item in
        Item(
          index: nil, identity: item.identity, protection: item.protection, outlook: .neither, isExpected: false,
          reason: item.reason, warning: nil, warningOnReturn: nil)
      }
  }

  /// The same to show to others: items are called by their positions.
  package var redacted: RestoreOutlook {
    let items = comparison.items.map { item in
      MigrationComparison.Item(
        index: item.index, identity: ItemDescriptor(redacted: item.identity, "item-", item.index),
        protection: item.protection, allOutcomes: item.allOutcomes, isSynchronizable: item.isSynchronizable,
        containsSecureEnclaveKey: item.containsSecureEnclaveKey)
    }
    return RestoreOutlook(
      MigrationComparison(items, current: comparison.current), planForNewDevice: planForNewDevice.redacted,
      isOfBackup: isOfBackup, expected: expected, triedDeviceKey: triedDeviceKey,
      sourceDeviceItems: sourceDeviceItems?.redacted)
  }
}

extension MigrationComparison.Item {
  /// Whether a backup holds the item at all: on the device that made it everything comes back that is in it and sound.
  fileprivate var isInBackup: Bool { RestoreScenario.allCases.contains { self[$0] == .arrives } }
}

extension Restorer {
  /// Decides what restoring a backup of a device made now would do to a device that holds nothing: a new one, or the
  /// same one after it was erased. The positions are as for a target that there is; nothing can be carried out by it.
  ///
  /// - Parameters:
  ///   - simulatedBackup: What the backup would hold.
  ///   - deviceKey: The hardware key of that device.
  ///   - targetSyncs: Whether it synchronizes its keychain.
  /// - Throws: What opening the forecast's items reports.
  package static func plan(
    _ simulatedBackup: SimulatedBackup, ontoEmpty deviceKey: DeviceKey, targetSyncs: Bool = false
  ) throws(KeyhaulError) -> MigrationPlan {
    try simulatedBackup.plan(
      onto: [], openedWith: deviceKey, policy: .replace, targetSyncs: targetSyncs, for: .planning)
  }
}
