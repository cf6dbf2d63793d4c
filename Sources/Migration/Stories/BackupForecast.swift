public import ArchivedKeychain
public import DataProtection
import KeychainFormats
import KeychainRules
public import VirtualDevice

/// What a backup of a device made now would hold, without one being written: what a plan has for an archive where there
/// is only a device yet.
///
/// Nothing is guessed. The rows go through the export rules, and what they let pass is sealed for a backup keybag that
/// exists in memory alone; what opens on another device is found out by opening it there.
public struct BackupForecast: ~Copyable, Sendable {
  /// What stays on the device, and why; deleted items' marks apart.
  public let leftOut: [ExportReport.LeftOut]
  /// The marks of deleted items that stay on the device. They are no items, and no plan counts them.
  public let tombstones: [ExportReport.LeftOut]
  /// What the backup would hold, by position.
  public let exported: [ExportReport.Item]
  /// Whether the backup is thought of with a password.
  public let hasPassword: Bool
  /// The name of the device.
  public let source: String
  /// Whether items keep the positions that their source gives them (`ExportReport.Item.rowID`); otherwise they have those
  /// of the backup, and what it leaves out counts on from its last one.
  private let keepsPlaces: Bool
  private let keybag: Keybag
  private let file: KeychainBackupFile
  /// Of a password that nobody knows and that is gone with this value.
  private let passcodeKey: Secret

  /// Reads the device and seals what may leave for a keybag in memory.
  ///
  /// - Parameters:
  ///   - session: A hold on the device, which has to be unlocked.
  ///   - hasPassword: Whether the backup would be made with a password; which one does not matter.
  /// - Throws: As a backup does: category `locked` where a row is locked, `refused` for a system that writes another
  ///   kind of backup.
  public init(of session: DeviceSession, hasPassword: Bool) throws(MigrationError) {
    try BackupExporter.check(session)
    let deviceKey = try reporting { () throws(VirtualDeviceError) in try session.deviceKey() }
    try self.init(of: session.name, hasPassword: hasPassword, deviceKey: deviceKey) {
      (keys, random) throws(MigrationError) in
      try BackupExporter.export(session, sealing: keys, random: random)
    }
  }

  /// Seals what an export gives.
  init(
    of source: String, hasPassword: Bool, deviceKey: borrowing DeviceKey, keepsPlaces: Bool = false,
    _ export: (borrowing ClassKeys, SystemRandomSource) throws(MigrationError) -> BackupExporter.Export
  ) throws(MigrationError) {
    let random = SystemRandomSource()
    let password = try reporting { () throws(DataProtectionError) in
      hasPassword ? try Secret(count: 32, from: random) : .empty
    }
    let bag = try reporting { () throws(DataProtectionError) in
      try Self.keybag(hasPassword ? password.copy() : nil, deviceKey, random)
    }
    let derived = try reporting { () throws(DataProtectionError) in
      try bag.keybag.passcodeKey(password: password)
    }
    let keybag = bag.keybag
    let export = try export(bag.takeClassKeys(), random)
    leftOut = export.report.missing
    tombstones = export.report.tombstones
    exported = export.report.exported
    file = KeychainBackupFile(keybagUUID: keybag.uuidText, entries: export.entries)
    self.hasPassword = hasPassword
    self.keybag = keybag
    self.keepsPlaces = keepsPlaces
    self.source = source
    passcodeKey = derived
  }

  private static func keybag(
    _ password: consuming Secret?, _ deviceKey: borrowing DeviceKey, _ random: SystemRandomSource
  ) throws(DataProtectionError) -> UnlockedKeybag {
    try BackupKeybag.make(
      password: password, deviceKey: deviceKey, rounds: BackupForecast.rounds, random: random)
  }

  /// Nobody attacks a keybag that is gone in a moment.
  private static let rounds = 1

  /// What of it opens on a device.
  ///
  /// - Parameter deviceKey: The device's hardware key.
  public borrowing func items(openedWith deviceKey: borrowing DeviceKey) throws(MigrationError) -> [ArchivedItem] {
    let keys: ClassKeys
    do throws(DataProtectionError) {
      keys = try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey.copy())
    } catch {
      throw MigrationError(error)
    }
    do throws(ArchivedKeychainError) {
      let items = try ArchivedItem.openAll(in: file, with: keys)
      guard keepsPlaces else { return items }
      return items.map { $0.placed(at: Int(exported[$0.index].rowID)) }
    } catch {
      throw MigrationError(error)
    }
  }

  /// Whether the value of the item at a place of the backup has the form of a key of the Secure Enclave; `nil` beyond it.
  borrowing func holdsEnclaveKey(at position: Int) -> Bool? {
    exported.indices.contains(position) ? exported[position].holdsEnclaveKey : nil
  }

  /// The decisions of a plan for the items that the backup would hold, their names added, and after them one for each
  /// item that stays on the device by a rule of the backup: those count on from the backup's last position.
  borrowing func completing(_ plan: MigrationPlan) -> MigrationPlan {
    let staying = leftOut.enumerated().map { offset, left in
      MigrationPlan.Decision(
        index: keepsPlaces ? Int(left.item.rowID) : exported.count + offset, identity: left.item.identity,
        protection: left.item.protection,
        outcome: left.reason.isDamage ? .unreadable(left.reason) : .staysBehind(left.reason), detail: left.detail,
        isSynchronizable: left.item.isSynchronizable, holdsEnclaveKey: left.item.holdsEnclaveKey)
    }
    let positions = Dictionary(
      exported.enumerated().map { (keepsPlaces ? Int($1.rowID) : $0, $1) }, uniquingKeysWith: { first, _ in first })
    let named = plan.decisions.map { decision in
      guard let item = positions[decision.index] else { return decision }
      return decision.naming(
        KnownItem(
          decision.identity.isSealed ? item.identity : decision.identity, isSynchronizable: item.isSynchronizable,
          holdsEnclaveKey: item.holdsEnclaveKey))
    }
    guard keepsPlaces else { return plan.showing(named + staying) }
    return plan.showing((named + staying).sorted { $0.index < $1.index })
  }
}

extension Restorer {
  /// Decides what restoring a backup of a device made now would do to another one. Changes neither.
  ///
  /// The positions are those in the backup; the items that no backup would hold come after them.
  ///
  /// - Throws: What the target's keychain reports.
  public static func plan(
    _ forecast: borrowing BackupForecast, onto target: DeviceSession, policy: ExistingItemPolicy
  ) throws(MigrationError) -> MigrationPlan {
    let deviceKey = try reporting { () throws(VirtualDeviceError) in try target.deviceKey() }
    let plan = MigrationPlanner.plan(
      try forecast.items(openedWith: deviceKey), onto: try targetRows(of: target), policy: policy,
      surroundings: RestoreSurroundings(
        targetSyncs: target.record.isSyncing, backupHasPassword: forecast.hasPassword))
    return forecast.completing(plan)
  }
}
