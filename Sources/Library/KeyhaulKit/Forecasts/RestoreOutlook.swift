package import Backups
import Basics
package import KeychainCrypto
public import KeychainFormats
public import KeychainRules
package import VirtualDevice

/// The outlook for a keychain when its device is erased or replaced: restored to a new device, and to the same device
/// after it was erased. Both targets are simulated: unlocked, with a passcode, and with an empty keychain.
public struct RestoreOutlook: Sendable {
  /// The outcomes of the items in all four restores. For a device, all four are simulated. For a backup, only its own
  /// two are checked; the two with the opposite password setting are derived from the protection classes.
  public let comparison: MigrationComparison
  /// The plan of a restore to the new device, for reports about one target.
  public let planForNewDevice: MigrationPlan
  /// Whether the items are the items of a backup. Otherwise, they are all items of a device.
  package let sourceIsBackup: Bool
  /// The indexes of items that should return to the same device according to their class. The key that would prove
  /// this is not available.
  public let expected: Set<Int>
  /// Whether the source device's key was tried, and is not known to be another device's key.
  package let triedDeviceKey: Bool
  /// The items of the source device, if it is available.
  package let sourceDeviceItems: SourceDeviceItems?

  /// Creates an outlook from known outcomes.
  package init(
    _ comparison: MigrationComparison, planForNewDevice: MigrationPlan, sourceIsBackup: Bool, expected: Set<Int> = [],
    triedDeviceKey: Bool, sourceDeviceItems: SourceDeviceItems? = nil
  ) {
    self.comparison = comparison
    self.planForNewDevice = planForNewDevice
    self.sourceIsBackup = sourceIsBackup
    self.expected = expected
    self.triedDeviceKey = triedDeviceKey
    self.sourceDeviceItems = sourceDeviceItems
  }

  /// Whether the backup has a password: the current backup, or the simulated one of a device.
  public var hasPassword: Bool { comparison.current.hasPassword }

  /// Creates the outlook for a backup.
  ///
  /// Items that decrypt without a device key can arrive on a new device. Items that decrypt with the source device's
  /// key can return to the same device; without that key, the protection class is used instead.
  ///
  /// - Parameters:
  ///   - backup: The backup, decrypted without a device key.
  ///   - unlockedWithDeviceKey: The backup, decrypted with the device key of the alleged source device; `nil` if
  ///     the key is not available. If the key decrypts nothing, it belongs to another device and is ignored.
  ///   - sourceDeviceItems: The items of the source device; `nil` if the device is not available.
  /// - Throws: Category `damaged` if the device never finished the backup; `refused` if the backup has no password and
  ///   its class keys are not bound to a device.
  package init(
    of backup: UnlockedBackup, unlockedWithDeviceKey: UnlockedBackup?, sourceDeviceItems: SourceDeviceItems? = nil
  ) throws(KeyhaulError) {
    let backupForSameDevice = unlockedWithDeviceKey.flatMap { $0.isSameDevice == false ? nil : $0 }
    let planForNewDevice = try Restorer.plan(backup, ontoEmptyWithNamesFrom: backupForSameDevice)
    var planForSameDevice: MigrationPlan?
    if let backupForSameDevice {
      planForSameDevice = try Restorer.plan(backupForSameDevice, ontoEmptyWithNamesFrom: nil)
    }
    let hasPassword = backup.hasPassword
    let toNewDevice = RestoreScenario(hasPassword: hasPassword, onSameDevice: false)
    let toSameDevice = RestoreScenario(hasPassword: hasPassword, onSameDevice: true)
    var expected: Set<Int> = []
    let items = planForNewDevice.decisions.enumerated().map { position, decision in
      var restoreOutcomes: RestoreOutcomes = [:]
      for scenario in RestoreScenario.allCases {
        restoreOutcomes[scenario] = MigrationComparison.restoreOutcome(of: decision, in: scenario)
      }
      restoreOutcomes[toNewDevice] = RestoreOutcome(decision.outcome)
      if let planForSameDevice {
        restoreOutcomes[toSameDevice] = RestoreOutcome(planForSameDevice.decisions[position].outcome)
      } else if decision.outcome.needsDeviceKey, restoreOutcomes[toSameDevice] == .arrives {
        expected.insert(decision.index)
      }
      return MigrationComparison.Item(decision, restoreOutcomes)
    }
    self.init(
      MigrationComparison(items, current: toNewDevice), planForNewDevice: planForNewDevice, sourceIsBackup: true,
      expected: expected, triedDeviceKey: planForSameDevice != nil, sourceDeviceItems: sourceDeviceItems)
  }

  /// Creates the outlook for a device with a simulated backup. All restores are simulated in memory with real keys.
  ///
  /// - Parameters:
  ///   - device: A session of the unlocked device.
  ///   - hasPassword: Whether the simulated backup has a password. It is compared with a backup with the opposite setting.
  /// - Throws: The errors of a backup, mainly of category `locked`.
  package init(of device: DeviceSession, hasPassword: Bool) throws(KeyhaulError) {
    try self.init(of: device, try SimulatedBackup(of: device, hasPassword: hasPassword))
  }

  /// Creates the outlook for a device with a simulated backup that was made before.
  package init(of device: DeviceSession, _ simulatedBackup: SimulatedBackup) throws(KeyhaulError) {
    let newDeviceKey = try MigrationComparison.keyOfUnknownDevice()
    let comparison = try MigrationComparison(of: device, onto: device, using: simulatedBackup)
    let current = RestoreScenario(hasPassword: simulatedBackup.hasPassword, onSameDevice: false)
    self.init(
      MigrationComparison(comparison.items, current: current),
      planForNewDevice: try Restorer.plan(simulatedBackup, ontoEmpty: newDeviceKey), sourceIsBackup: false,
      triedDeviceKey: true)
  }
}

extension MigrationPlan.Outcome {
  /// Whether the item lacks only the source device's key.
  fileprivate var needsDeviceKey: Bool { reason == .deviceBound || reason == .backupNotEncrypted }
}

extension Restorer {
  /// Plans the restore of a backup to an empty device.
  ///
  /// - Parameter backupWithNames: The backup, decrypted with a key that reveals the names of further items.
  fileprivate static func plan(
    _ backup: UnlockedBackup, ontoEmptyWithNamesFrom backupWithNames: UnlockedBackup?
  ) throws(KeyhaulError) -> MigrationPlan {
    try backup.archive.requireUsable(for: .planning)
    var summaries = backup.encryptedItemSummaries
    for item in backupWithNames?.items ?? [] {
      if let decrypted = item.item { summaries[item.index] = ItemSummary(decrypted) }
    }
    return MigrationPlanner.plan(
      backup.items, onto: [], policy: .replace,
      context: RestoreContext(backupHasPassword: backup.hasPassword)
    ).naming(summaries)
  }
}

extension RestoreOutlook {
  /// The outcomes of all items in one restore. Each item is in exactly one count.
  public struct Counts: Sendable, Hashable {
    /// Items that arrive, without those in `expected`.
    public var arrives = 0
    /// Items that should arrive according to their class. The key that would prove this is not available.
    public var expected = 0
    /// Items of the backup, or of a device's simulated backup, that a rule or a key excludes.
    public var staysBehind = 0
    /// Items that are damaged, in the backup or on the device.
    public var unreadable = 0
    /// Restored items that may be unusable, by warning.
    package var byWarning: [ArrivalWarning: Int] = [:]
    /// The number of items that a rule excludes from every backup; `nil` if it is unknown because the device is not
    /// available.
    public var never: Int?
    /// The number of items that were added to the device after the backup; `nil` if it is unknown.
    public var since: Int?

    /// Items that a restore brings to the device, including the expected ones.
    package var restoredCount: Int { arrives + expected }
    /// Items that are certainly not restored.
    public var lost: Int { staysBehind + unreadable + (never ?? 0) + (since ?? 0) }
    /// All known items.
    public var total: Int { restoredCount + lost }
  }

  /// Returns the counts of one restore.
  ///
  /// - Parameter scenario: The restore, one of `RestoreScenario.allCases`. For a backup, a restore with the opposite
  ///   password setting is not checked; its items are counted by their protection classes.
  public func counts(_ scenario: RestoreScenario) -> Counts {
    var counts = Counts()
    if !sourceIsBackup { (counts.never, counts.since) = (0, 0) }
    for item in comparison.items {
      switch item[scenario] {
      case .arrives where scenario.onSameDevice && expected.contains(item.index): counts.expected += 1
      case .arrives: counts.arrives += 1
      case .staysBehind where !sourceIsBackup && !item.isInBackup: counts.never = (counts.never ?? 0) + 1
      case .staysBehind: counts.staysBehind += 1
      case .unreadable: counts.unreadable += 1
      }
      if let warning = item.warning(in: scenario) { counts.byWarning[warning, default: 0] += 1 }
    }
    if let sourceDeviceItems {
      let neverIncludedCount = sourceDeviceItems.neverIncluded.count
      // If the device was erased or has lost items since the backup, it may also have lost its excluded items. Their
      // count is then unknown, not 0.
      let isUnknown = neverIncludedCount == 0 && sourceDeviceItems.removedCount > 0
      counts.never = isUnknown ? nil : neverIncludedCount
      counts.since = sourceDeviceItems.addedSince.count
      counts.unreadable += sourceDeviceItems.unreadable.count
    }
    return counts
  }

  /// Returns the counts of one of the two restores of the current backup.
  public func counts(onSameDevice: Bool) -> Counts {
    counts(RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice))
  }

  /// The outcomes of an item in both restores.
  public enum ItemOutlook: Sendable, Hashable, CaseIterable {
    /// The item arrives on both devices.
    case both
    /// The item arrives only on the same device.
    case sameDevice
    /// The item arrives on neither device.
    case neither
  }

  /// A known item, in the backup or only on the device.
  public struct Item: Sendable, Hashable {
    /// The index in the backup; `nil` if the item is only on the source device.
    public let index: Int?
    /// The item's names.
    package let identity: ItemDescriptor
    /// The protection class; `nil` if it is unknown.
    public let protection: ProtectionClass?
    /// The devices on which it arrives.
    package let outlook: ItemOutlook
    /// Whether the item should return according to its class only.
    package let isExpected: Bool
    /// The reason why the item does not reach a new device, or the damage that also prevents its return; `nil` if it
    /// arrives or was added after the backup.
    public let reason: Reason?
    /// The reason why the item may be unusable on a new device; `nil` if there is none or the item does not arrive.
    package let warningOnNewDevice: ArrivalWarning?
    /// The reason why the item may be unusable on the same device; `nil` if there is none or the item does not arrive.
    package let warningOnSameDevice: ArrivalWarning?
  }

  /// All known items: first the items of the backup or of the device in their order, then the items that are only on the
  /// source device.
  public var items: [Item] {
    let toSameDevice = RestoreScenario(hasPassword: hasPassword, onSameDevice: true)
    let toNewDevice = RestoreScenario(hasPassword: hasPassword, onSameDevice: false)
    let comparedItems = comparison.items.map { item in
      var reason = item[toNewDevice].reason
      if let damage = item[toSameDevice].reason, damage.isDamage { reason = damage }
      let outlook: ItemOutlook =
        item[toNewDevice] == .arrives ? .both : item[toSameDevice] == .arrives ? .sameDevice : .neither
      return Item(
        index: item.index, identity: item.identity, protection: item.protection, outlook: outlook,
        isExpected: expected.contains(item.index), reason: reason,
        warningOnNewDevice: item.warning(in: toNewDevice), warningOnSameDevice: item.warning(in: toSameDevice))
    }
    let absentItems = (sourceDeviceItems?.absent ?? []).map { item in
      Item(
        index: nil, identity: item.identity, protection: item.protection, outlook: .neither, isExpected: false,
        reason: item.reason, warningOnNewDevice: nil, warningOnSameDevice: nil)
    }
    return comparedItems + absentItems
  }

  /// The outlook with names that are made of the items' indexes, such as `item-0001`.
  package var redacted: RestoreOutlook {
    let items = comparison.items.map { item in
      MigrationComparison.Item(
        index: item.index, identity: ItemDescriptor(redacted: item.identity, "item-", item.index),
        protection: item.protection, allOutcomes: item.allOutcomes, isSynchronizable: item.isSynchronizable,
        containsSecureEnclaveKey: item.containsSecureEnclaveKey)
    }
    return RestoreOutlook(
      MigrationComparison(items, current: comparison.current), planForNewDevice: planForNewDevice.redacted,
      sourceIsBackup: sourceIsBackup, expected: expected, triedDeviceKey: triedDeviceKey,
      sourceDeviceItems: sourceDeviceItems?.redacted)
  }
}

extension MigrationComparison.Item {
  /// Whether any backup contains the item. Every undamaged item of a backup arrives in at least one restore, the one to
  /// the same device.
  fileprivate var isInBackup: Bool { RestoreScenario.allCases.contains { self[$0] == .arrives } }
}

extension Restorer {
  /// Plans the restore of a simulated backup to an empty device: a new device, or the source device after it was erased.
  /// Indexes are the same as in a plan for an existing target. The plan cannot be carried out.
  ///
  /// - Parameters:
  ///   - simulatedBackup: The simulated backup.
  ///   - deviceKey: The key of the empty device.
  ///   - targetSyncs: Whether the empty device synchronizes its keychain.
  /// - Throws: An error if the items cannot be decrypted because the cryptography fails.
  package static func plan(
    _ simulatedBackup: SimulatedBackup, ontoEmpty deviceKey: DeviceKey, targetSyncs: Bool = false
  ) throws(KeyhaulError) -> MigrationPlan {
    try simulatedBackup.plan(
      onto: [], openedWith: deviceKey, policy: .replace, targetSyncs: targetSyncs, for: .planning)
  }
}
