public import Backups
public import KeychainFormats
public import KeychainRules

extension MigrationFutures {
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
    /// Items that no backup holds, by a rule; `nil` where nobody knows, because the device is not available.
    public var never: Int?
    /// Items of the device that came after the backup was made; `nil` where nobody knows.
    public var since: Int?

    /// Items that come back.
    public var comesBack: Int { arrives + expected }
    /// Items that are known not to come back.
    public var lost: Int { staysBehind + unreadable + (never ?? 0) + (since ?? 0) }
    /// All items that are known of.
    public var total: Int { comesBack + lost }
  }

  /// The items counted for one of the restores.
  ///
  /// - Parameter setting: Of a backup, the one that has a password if the backup has one; what a backup does not have is
  ///   counted by class.
  public func counts(_ setting: RestoreSetting) -> Counts {
    var counts = Counts()
    if !isOfBackup { (counts.never, counts.since) = (0, 0) }
    for item in comparison.items {
      switch item[setting] {
      case .arrives where setting.onSameDevice && expected.contains(item.index): counts.expected += 1
      case .arrives: counts.arrives += 1
      case .staysBehind where !isOfBackup && !item.isInBackup: counts.never = (counts.never ?? 0) + 1
      case .staysBehind: counts.staysBehind += 1
      case .unreadable: counts.unreadable += 1
      }
      if let warning = item.warning(in: setting) { counts.byWarning[warning, default: 0] += 1 }
    }
    if let maker {
      // A device that has lost items of the backup, as one that was erased, shows no longer what it kept.
      counts.never = maker.never.isEmpty && maker.goneCount > 0 ? nil : maker.never.count
      counts.since = maker.since.count
      counts.unreadable += maker.unreadable.count
    }
    return counts
  }

  /// The items counted for one of the two futures, with the backup at hand.
  public func counts(onSameDevice: Bool) -> Counts {
    counts(RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice))
  }

  /// What becomes of an item in the two futures together.
  public enum Outlook: Sendable, Hashable, CaseIterable {
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
    public let identity: ItemIdentity
    /// The class that protects it; `nil` where nothing says it.
    public let protection: ProtectionClass?
    /// Where it comes back to.
    public let outlook: Outlook
    /// Whether it is by its class alone that it is expected back.
    public let isExpected: Bool
    /// Why it does not reach a new device, or the damage for which it does not come back either; `nil` where it arrives,
    /// and of an item that came after the backup was made.
    public let reason: Reason?
    /// What is known against its use on a new device; `nil` where it does not get there.
    public let warning: ArrivalWarning?
    /// The same on the device that made it.
    public let warningOnReturn: ArrivalWarning?
  }

  /// All items that are known of: those of the backup or of the device in their order, then those that are only on the
  /// device that made the backup.
  public var items: [Item] {
    let (back, away) = (
      RestoreSetting(hasPassword: hasPassword, onSameDevice: true),
      RestoreSetting(hasPassword: hasPassword, onSameDevice: false)
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
      + (maker?.absent ?? []).map { item in
        Item(
          index: nil, identity: item.identity, protection: item.protection, outlook: .neither, isExpected: false,
          reason: item.reason, warning: nil, warningOnReturn: nil)
      }
  }

  /// The same to show to others: items are called by their positions.
  package var redacted: MigrationFutures {
    let items = comparison.items.map { item in
      MigrationComparison.Item(
        index: item.index, identity: ItemIdentity(redacted: item.identity, "item-", item.index),
        protection: item.protection, allProspects: item.allProspects, isSynchronizable: item.isSynchronizable,
        holdsEnclaveKey: item.holdsEnclaveKey)
    }
    return MigrationFutures(
      MigrationComparison(items, current: comparison.current), planForNewDevice: planForNewDevice.redacted,
      isOfBackup: isOfBackup, expected: expected, triedHardware: triedHardware, maker: maker?.redacted)
  }
}

extension MigrationComparison.Item {
  /// Whether a backup holds the item at all: on the device that made it everything comes back that is in it and sound.
  fileprivate var isInBackup: Bool { RestoreSetting.allCases.contains { self[$0] == .arrives } }
}
