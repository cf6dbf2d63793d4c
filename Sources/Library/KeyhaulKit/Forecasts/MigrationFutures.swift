public import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
public import VirtualDevice

/// What becomes of a keychain when its device is wiped or replaced: restored to a new device, and to the same one after it
/// was erased. Both are only thought of: unlocked, with a passcode, and with an empty keychain.
public struct MigrationFutures: Sendable {
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
  public let triedHardware: Bool
  /// The items of that device, where it is available.
  public let maker: MakerItems?

  /// Creates two futures of what is known already.
  package init(
    _ comparison: MigrationComparison, planForNewDevice: MigrationPlan, isOfBackup: Bool, expected: Set<Int> = [],
    triedHardware: Bool, maker: MakerItems? = nil
  ) {
    self.comparison = comparison
    self.planForNewDevice = planForNewDevice
    self.isOfBackup = isOfBackup
    self.expected = expected
    self.triedHardware = triedHardware
    self.maker = maker
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
  ///   - returning: The same backup, opened with the hardware key of the device that is said to have made it; `nil` where
  ///     none is available. One that opens nothing is another device's, and decides nothing.
  ///   - maker: The items of that device.
  /// - Throws: Category `damaged` for a backup that its device never finished, `refused` for one without a password whose
  ///   keychain no hardware binds.
  public init(
    of archive: OpenedArchive, returning: OpenedArchive?, maker: MakerItems? = nil
  ) throws(MigrationError) {
    let returning = returning.flatMap { $0.isSameDevice == false ? nil : $0 }
    let onNew = try Restorer.plan(archive, ontoEmptyNamedBy: returning)
    var onSame: MigrationPlan?
    if let returning { onSame = try Restorer.plan(returning, ontoEmptyNamedBy: nil) }
    let hasPassword = archive.hasPassword
    let current = RestoreSetting(hasPassword: hasPassword, onSameDevice: false)
    var expected: Set<Int> = []
    let items = onNew.decisions.enumerated().map { position, decision in
      var prospects: RestoreProspects = [:]
      for setting in RestoreSetting.allCases {
        prospects[setting] = MigrationComparison.prospect(of: decision, in: setting)
      }
      let back = RestoreSetting(hasPassword: hasPassword, onSameDevice: true)
      prospects[current] = Prospect(decision.outcome)
      if let onSame {
        prospects[back] = Prospect(onSame.decisions[position].outcome)
      } else if decision.outcome.needsHardware, prospects[back] == .arrives {
        expected.insert(decision.index)
      }
      return MigrationComparison.Item(decision, prospects)
    }
    self.init(
      MigrationComparison(items, current: current), planForNewDevice: onNew, isOfBackup: true, expected: expected,
      triedHardware: onSame != nil, maker: maker)
  }

  /// The two futures of a device, by a backup made of it now: each is tried, with real keys and in memory.
  ///
  /// - Parameters:
  ///   - device: A hold on the device, which has to be unlocked.
  ///   - hasPassword: Of the backup that is thought of; the other one is compared with it.
  /// - Throws: As a backup does, category `locked` foremost.
  public init(of device: DeviceSession, hasPassword: Bool) throws(MigrationError) {
    let forecast = try BackupForecast(of: device, hasPassword: hasPassword)
    let otherKey = try MigrationComparison.keyOfSomeDevice()
    let compared = try MigrationComparison(of: device, onto: device, knowing: forecast)
    self.init(
      MigrationComparison(compared.items, current: RestoreSetting(hasPassword: hasPassword, onSameDevice: false)),
      planForNewDevice: try Restorer.plan(forecast, ontoEmpty: otherKey), isOfBackup: false, triedHardware: true)
  }
}

extension MigrationPlan.Outcome {
  /// Whether the hardware of the device that made the backup is all that it lacks.
  fileprivate var needsHardware: Bool { reason == .deviceBound || reason == .backupNotEncrypted }
}

extension Restorer {
  /// Decides what restoring a backup would do to a device that holds nothing.
  ///
  /// - Parameter other: The same backup, opened with a key that gives names of what stays sealed here.
  fileprivate static func plan(
    _ archive: OpenedArchive, ontoEmptyNamedBy other: OpenedArchive?
  ) throws(MigrationError) -> MigrationPlan {
    try reporting { () throws(ArchivedKeychainError) in try archive.archive.requireFit(for: .planning) }
    var known = archive.knownSealed
    for item in other?.items ?? [] { if let opened = item.item { known[item.index] = KnownItem(opened) } }
    return MigrationPlanner.plan(
      archive.items, onto: [], policy: .replace,
      surroundings: RestoreSurroundings(backupHasPassword: archive.hasPassword)
    ).naming(known)
  }
}
