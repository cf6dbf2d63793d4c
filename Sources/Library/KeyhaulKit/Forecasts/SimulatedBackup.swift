public import Backups
import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
package import Keychains
public import VirtualDevice

/// What a backup of a device made now would hold, without one being written: what a plan has for an archive where there
/// is only a device yet.
///
/// Nothing is guessed. The rows go through the export rules, and what they let pass is written as a backup holds it and
/// read again, unless it certainly comes out as it is; the ciphers between change no byte, and are left out. What opens on
/// another device is found out with a backup keybag that exists in memory alone: one item of each protection class is
/// sealed for it and opened there. The key of its class is all that an item needs, and all that can be wanting.
public final class SimulatedBackup: Sendable {
  /// Whether the backup is thought of with a password.
  package let hasPassword: Bool
  private let contents: Contents
  private let keybag: Keybag
  /// A made-up item of each class that the backup would hold, sealed for the keybag.
  private let probes: KeychainBackupFile
  /// Of a password that nobody knows and that is gone with this value.
  private let passcodeKey: Secret

  /// What the device, or a dump of it, gives: the same with a password and without one.
  private struct Contents {
    let source: String
    /// Whether items keep the positions that their source gives them (`ExportReport.Item.rowID`); otherwise they have those
    /// of the backup, and what it leaves out counts on from its last one.
    let keepsPositions: Bool
    let report: ExportReport
    /// What the backup would hold, as whoever has every key reads it there.
    let items: [BackupItem]
    /// These items as a restore to any device would store them; `nil` if only one plan uses them.
    let importCache: ImportCache?
  }

  /// What stays on the device, and why; deleted items' marks apart.
  package let leftOut: [MigrationPlan.Decision]
  /// The marks of deleted items that stay on the device. They are no items, and no plan counts them.
  package let tombstones: [MigrationPlan.Decision]
  /// What the backup would hold, by position.
  package var exported: [ExportReport.Item] { contents.report.exported }
  /// The name of the device.
  package var source: String { contents.source }
  private var keepsPositions: Bool { contents.keepsPositions }

  /// Reads the device, and what may leave it as a backup would hold it.
  ///
  /// - Parameters:
  ///   - session: A hold on the device, which has to be unlocked.
  ///   - hasPassword: Whether the backup would be made with a password; which one does not matter.
  /// - Throws: As a backup does: category `locked` where a row is locked, `refused` for a system that writes another
  ///   kind of backup.
  public convenience init(of session: DeviceSession, hasPassword: Bool) throws(KeyhaulError) {
    try self.init(of: session, hasPassword: hasPassword, isPlannedOnce: false)
  }

  /// - Parameter isPlannedOnce: Whether one plan alone is made of it, so that nothing is kept for others.
  package convenience init(of session: DeviceSession, hasPassword: Bool, isPlannedOnce: Bool) throws(KeyhaulError) {
    try self.init(of: session, hasPassword: hasPassword, .opened, sharingMemoryWith: [], isPlannedOnce: isPlannedOnce)
  }

  /// The same without a list of what is exported, for whoever looks at the items alone.
  ///
  /// - Parameter known: Items that are held meanwhile: the device's own ones that are the same take no memory again.
  convenience init(itemsOf session: DeviceSession, sharingMemoryWith known: [BackupItem]) throws(KeyhaulError) {
    try self.init(of: session, hasPassword: true, .openedAlone, sharingMemoryWith: known)
  }

  private convenience init(
    of session: DeviceSession, hasPassword: Bool, _ form: BackupExporter.Export.Form,
    sharingMemoryWith known: [BackupItem],
    isPlannedOnce: Bool = false
  ) throws(KeyhaulError) {
    try BackupExporter.check(session)
    let deviceKey = try session.deviceKey()
    try self.init(of: session.name, hasPassword: hasPassword, deviceKey: deviceKey, isPlannedOnce: isPlannedOnce) {
      (keys, random) throws(KeyhaulError) in
      try BackupExporter.export(session, sealing: keys, keeping: form, sharingMemoryWith: known, random: random)
    }
  }

  /// Takes what an export gives, which keeps its items opened.
  convenience init(
    of source: String, hasPassword: Bool, deviceKey: DeviceKey, keepsPositions: Bool = false,
    isPlannedOnce: Bool = false,
    _ export: (ClassKeys, SystemRandomSource) throws(KeyhaulError) -> BackupExporter.Export
  ) throws(KeyhaulError) {
    try self.init(hasPassword: hasPassword, deviceKey: deviceKey) { (keys, random) throws(KeyhaulError) in
      let export = try export(keys, random)
      if let fault = export.fault { throw KeyhaulError(fault) }
      return Contents(
        source: source, keepsPositions: keepsPositions, report: export.report, items: export.items,
        importCache: isPlannedOnce ? nil : ImportCache(count: export.items.count))
    }
  }

  /// The same backup thought of with a password, or without one: nothing is read again.
  ///
  /// - Parameter deviceKey: Of the device that it would be made of.
  func copy(
    withPassword hasPassword: Bool, deviceKey: DeviceKey
  ) throws(KeyhaulError) -> SimulatedBackup {
    let contents = contents
    return try SimulatedBackup(hasPassword: hasPassword, deviceKey: deviceKey) { (_, _) in contents }
  }

  private init(
    hasPassword: Bool, deviceKey: DeviceKey,
    _ read: (ClassKeys, SystemRandomSource) throws(KeyhaulError) -> Contents
  ) throws(KeyhaulError) {
    let random = SystemRandomSource()
    let password = try translatingErrors { () throws(DataProtectionError) in
      hasPassword ? try Secret(count: 32, from: random) : .empty
    }
    let bag = try translatingErrors { () throws(DataProtectionError) in
      try Self.keybag(hasPassword ? password.copy() : nil, deviceKey, random)
    }
    let derived = try translatingErrors { () throws(DataProtectionError) in
      try bag.keybag.passcodeKey(password: password)
    }
    let keybag = bag.keybag
    let keys = bag.classKeys
    let contents = try read(keys, random)
    probes = try Self.probes(of: contents.items, sealing: keys, for: keybag, random)
    leftOut = contents.report.missing
    tombstones = contents.report.tombstones
    self.contents = contents
    self.hasPassword = hasPassword
    self.keybag = keybag
    passcodeKey = derived
  }

  private static func keybag(
    _ password: consuming Secret?, _ deviceKey: DeviceKey, _ random: SystemRandomSource
  ) throws(DataProtectionError) -> UnlockedKeybag {
    try BackupKeybag.make(
      password: password, deviceKey: deviceKey, rounds: SimulatedBackup.rounds, random: random)
  }

  /// Nothing but a class key can keep one of them shut.
  private static func probes(
    of items: [BackupItem], sealing keys: ClassKeys, for keybag: Keybag, _ random: SystemRandomSource
  ) throws(KeyhaulError) -> KeychainBackupFile {
    var entries: [KeychainBackupFile.Entry] = []
    var seen: Set<KeyClass> = []
    for archived in items {
      guard let protection = archived.protection, seen.insert(protection.keyClass).inserted else { continue }
      var item = KeychainItem(kind: .genericPassword)
      item.protection = protection
      do throws(ItemCryptoError) {
        let blob = try keys.seal(item, as: .backup, random: random)
        entries.append(.init(kind: item.kind, blob: blob.serialized()))
      } catch {
        throw KeyhaulError(error)
      }
    }
    return KeychainBackupFile(keybagUUID: keybag.uuidText, entries: entries)
  }

  /// Nobody attacks a keybag that is gone in a moment.
  private static let rounds = 1

  /// What of it opens on a device.
  ///
  /// - Parameter deviceKey: The device's hardware key.
  package func items(openedWith deviceKey: DeviceKey) throws(KeyhaulError) -> [BackupItem] {
    let keys: ClassKeys
    do throws(DataProtectionError) {
      keys = try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey)
    } catch {
      throw KeyhaulError(error)
    }
    var trials: [KeyClass: BackupItem] = [:]
    for trial in try BackupItem.openAll(in: probes, with: keys) {
      if let keyClass = trial.keyClass { trials[keyClass] = trial }
    }
    var items: [BackupItem] = []
    items.reserveCapacity(contents.items.count)
    for item in contents.items {
      guard let trial = item.keyClass.flatMap({ trials[$0] }) else {
        throw KeyhaulError(DataProtectionError(.malformed, "no item of the same class could be tried"))
      }
      items.append(item.tried(like: trial, at: keepsPositions ? Int(exported[item.index].rowID) : item.index))
    }
    return items
  }

  /// Decides what restoring the backup would do to a device.
  ///
  /// - Parameters:
  ///   - rows: All that the device has.
  ///   - deviceKey: Its hardware key.
  func plan(
    onto rows: [TargetRow], openedWith deviceKey: DeviceKey, policy: ExistingItemPolicy, targetSyncs: Bool,
    for use: BackupPurpose
  ) throws(KeyhaulError) -> MigrationPlan {
    let items = try items(openedWith: deviceKey)
    let context = RestoreContext(targetSyncs: targetSyncs, backupHasPassword: hasPassword)
    func plan(_ cache: ImportCache) -> MigrationPlan {
      MigrationPlanner.plan(
        items, onto: rows, policy: policy, context: context, cache: cache,
        keepsImports: use == .restoring)
    }
    return completing(plan(contents.importCache ?? ImportCache()))
  }

  /// Whether the value of the item at a place of the backup has the form of a key of the Secure Enclave; `nil` beyond it.
  func containsSecureEnclaveKey(at position: Int) -> Bool? {
    exported.indices.contains(position) ? exported[position].containsSecureEnclaveKey : nil
  }

  /// The decisions of a plan for the items that the backup would hold, their names added, and after them one for each
  /// item that stays on the device by a rule of the backup: those count on from the backup's last position.
  func completing(_ plan: MigrationPlan) -> MigrationPlan {
    let exported = exported
    let staying = leftOut.enumerated().map { offset, left in
      keepsPositions ? left : left.at(exported.count + offset)
    }
    let positions =
      keepsPositions
      ? Dictionary(exported.map { (Int($0.rowID), $0) }, uniquingKeysWith: { first, _ in first }) : [:]
    let named = plan.decisions.map { decision in
      let place = decision.index
      let isPosition = !keepsPositions && exported.indices.contains(place)
      guard let item = isPosition ? exported[place] : positions[place] else { return decision }
      return decision.naming(
        ItemSummary(
          decision.identity.isSealed ? item.identity : decision.identity, isSynchronizable: item.isSynchronizable,
          containsSecureEnclaveKey: item.containsSecureEnclaveKey))
    }
    guard keepsPositions else { return plan.showing(named + staying) }
    return plan.showing((named + staying).sorted { $0.index < $1.index })
  }
}

extension Restorer {
  /// Decides what restoring a backup of a device made now would do to another one. Changes neither.
  ///
  /// The positions are those in the backup; the items that no backup would hold come after them.
  ///
  /// - Parameters:
  ///   - simulatedBackup: What a backup of the device made now would hold.
  ///   - target: A hold on the device that it should go to.
  ///   - policy: What happens to the target's own items before anything is imported.
  ///   - use: `.restoring` for a plan that is carried out; any other makes one to be looked at.
  /// - Throws: What the target's keychain reports.
  public static func plan(
    _ simulatedBackup: SimulatedBackup, onto target: DeviceSession, policy: ExistingItemPolicy,
    for use: BackupPurpose = .restoring
  ) throws(KeyhaulError) -> MigrationPlan {
    let deviceKey = try target.deviceKey()
    return try simulatedBackup.plan(
      onto: try targetRows(of: target), openedWith: deviceKey, policy: policy, targetSyncs: target.record.isSyncing,
      for: use)
  }
}

extension SimulatedBackup {
  /// What a backup of the device that a dump is of would hold, as far as the dump tells its items.
  ///
  /// The device is not known: a hardware key that is nobody's stands in its place, and that it does not synchronize is
  /// assumed. What a backup leaves out is found by the same rules; a mark that the dump does not have is taken for absent.
  /// - Parameters:
  ///   - dump: The items.
  ///   - name: What reports call it.
  ///   - hasPassword: Whether the backup would be made with a password.
  /// - Throws: What the cryptographic library reports.
  package convenience init(of dump: KeychainDump, named name: String, hasPassword: Bool) throws(KeyhaulError) {
    let someKey = try MigrationComparison.keyOfUnknownDevice()
    try self.init(of: name, hasPassword: hasPassword, deviceKey: someKey, keepsPositions: true) { (keys, random) in
      var export = BackupExporter.Export(random: random, deviceSyncs: false, keeping: .opened)
      for item in dump.items { export.take(item, sealing: keys) }
      return export
    }
  }
}

extension BackupExporter.Export {
  mutating func take(_ dumped: DumpedItem, sealing keys: ClassKeys) {
    guard let item = dumped.item else {
      let entry = ExportReport.Item(
        identity: ItemDescriptor(undecryptable: dumped.kind), protection: dumped.protection, rowID: Int64(dumped.index),
        isSynchronizable: nil, containsSecureEnclaveKey: nil)
      report.leftOut.append(entry.leftOut(because: dumped.fault?.reason ?? .malformed, dumped.fault?.detail))
      return
    }
    let entry = ExportReport.Item(
      identity: ItemDescriptor(item), protection: item.protection, rowID: Int64(dumped.index),
      isSynchronizable: item.isSynchronizable, containsSecureEnclaveKey: item.containsSecureEnclaveKey)
    guard item.protection != nil else {
      report.leftOut.append(entry.leftOut(because: .malformed, "it has no known protection class"))
      return
    }
    let candidate = ExportCandidate(
      item: item, isAccessControlled: item[.accessControl] != nil,
      isAppClip: item[.appClip]?.integerValue.map { $0 != 0 } ?? false)
    let reference = item[.persistentReference]?.dataValue ?? []
    take(candidate, entry, reference: reference, sealing: keys)
  }
}

extension Restorer {
  /// Decides what restoring a backup of the device that a dump is of would do to a device. Changes nothing.
  ///
  /// The positions are those of the dump. Whether the target is the device that the dump is of is not known; the plan
  /// takes it for another one, and does not say that it is.
  ///
  /// - Throws: What the target's keychain reports.
  package static func plan(
    _ dump: KeychainDump, named name: String, hasPassword: Bool, onto target: DeviceSession, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> MigrationPlan {
    let simulatedBackup = try SimulatedBackup(of: dump, named: name, hasPassword: hasPassword)
    return try plan(simulatedBackup, onto: target, policy: policy).withoutDeviceProof
  }
}
