public import Backups
import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
package import Keychains
public import VirtualDevice

/// A simulated backup of a device, in memory. Plans use it like a backup.
///
/// The rows pass the export rules, and exported items are encoded and decoded as in a backup, unless they certainly
/// round-trip. Encryption is left out, because it changes no byte.
///
/// Whether a device can decrypt an item depends only on the item's class key. Therefore, one artificial item of each
/// protection class is encrypted for a backup keybag in memory, and decrypted with the device's key.
public final class SimulatedBackup: Sendable {
  /// Whether the simulated backup has a password.
  package let hasPassword: Bool
  private let contents: Contents
  private let keybag: Keybag
  /// An artificial item of each class in the backup, encrypted for the keybag.
  private let probes: KeychainBackupFile
  /// The passcode key of the keybag. It is derived from a random password, or without a password from the empty one.
  private let passcodeKey: Secret

  /// The contents from the device or from a dump of the device. They do not depend on the password.
  private struct Contents {
    let source: String
    /// Whether items keep the indexes of their source (`ExportReport.Item.rowID`). Otherwise, they have their
    /// indexes in the backup, followed by the excluded items.
    let keepsIndexes: Bool
    let report: ExportReport
    /// The items in the backup, as a reader with all keys sees them.
    let items: [BackupItem]
    /// A cache of the items as a restore to any device would store them; `nil` if only one plan uses it.
    let importCache: ImportCache?
  }

  /// The items that stay on the device with their reasons, without tombstones.
  package let omissions: [MigrationPlan.Decision]
  /// The tombstones that stay on the device. No plan counts them.
  package let tombstones: [MigrationPlan.Decision]
  /// The items in the backup, by index.
  package var exported: [ExportReport.Item] { contents.report.exported }
  /// The name of the device.
  package var source: String { contents.source }
  private var keepsIndexes: Bool { contents.keepsIndexes }

  /// Reads a device and simulates a backup of it.
  ///
  /// - Parameters:
  ///   - session: A session of the unlocked device.
  ///   - hasPassword: Whether the backup has a password. The password itself has no effect.
  /// - Throws: The errors of a backup: category `locked` if the class key of a row is not in memory, `refused` for a
  ///   system that writes a different kind of backup.
  public convenience init(of session: DeviceSession, hasPassword: Bool) throws(KeyhaulError) {
    try self.init(of: session, hasPassword: hasPassword, isPlannedOnce: false)
  }

  /// - Parameter isPlannedOnce: Whether only one plan uses the backup, so that nothing is cached.
  package convenience init(of session: DeviceSession, hasPassword: Bool, isPlannedOnce: Bool) throws(KeyhaulError) {
    try self.init(
      of: session, hasPassword: hasPassword, isListed: true, sharingMemoryWith: [], isPlannedOnce: isPlannedOnce)
  }

  /// Simulates a backup without a list of the exported items.
  ///
  /// - Parameter items: Items in memory. Equal items of the device share their memory.
  convenience init(itemsOf session: DeviceSession, sharingMemoryWith items: [BackupItem]) throws(KeyhaulError) {
    try self.init(of: session, hasPassword: true, isListed: false, sharingMemoryWith: items)
  }

  private convenience init(
    of session: DeviceSession, hasPassword: Bool, isListed: Bool, sharingMemoryWith items: [BackupItem],
    isPlannedOnce: Bool = false
  ) throws(KeyhaulError) {
    try BackupExporter.check(session)
    let deviceKey = try session.deviceKey()
    try self.init(of: session.name, hasPassword: hasPassword, deviceKey: deviceKey, isPlannedOnce: isPlannedOnce) {
      (keys, random) throws(KeyhaulError) in
      try BackupExporter.export(
        session, sealing: keys, keeping: .decrypted(isListed: isListed), sharingMemoryWith: items, random: random)
    }
  }

  /// Creates a simulated backup from an export with decrypted items.
  convenience init(
    of source: String, hasPassword: Bool, deviceKey: DeviceKey, keepsIndexes: Bool = false,
    isPlannedOnce: Bool = false,
    _ makeExport: (ClassKeys, SystemRandomSource) throws(KeyhaulError) -> BackupExporter.Export
  ) throws(KeyhaulError) {
    try self.init(hasPassword: hasPassword, deviceKey: deviceKey) { (keys, random) throws(KeyhaulError) in
      let export = try makeExport(keys, random)
      if let error = export.libraryError { throw error }
      return Contents(
        source: source, keepsIndexes: keepsIndexes, report: export.report, items: export.items,
        importCache: isPlannedOnce ? nil : ImportCache(count: export.items.count))
    }
  }

  /// Returns a copy with or without a password. Nothing is read again.
  ///
  /// - Parameter deviceKey: The key of the source device.
  func copy(
    withPassword hasPassword: Bool, deviceKey: DeviceKey
  ) throws(KeyhaulError) -> SimulatedBackup {
    let contents = contents
    return try SimulatedBackup(hasPassword: hasPassword, deviceKey: deviceKey) { (_, _) in contents }
  }

  private init(
    hasPassword: Bool, deviceKey: DeviceKey,
    _ readContents: (ClassKeys, SystemRandomSource) throws(KeyhaulError) -> Contents
  ) throws(KeyhaulError) {
    let random = SystemRandomSource()
    let password = try translatingErrors { () throws(DataProtectionError) in
      hasPassword ? try Secret(count: 32, from: random) : .empty
    }
    let bag = try translatingErrors { () throws(DataProtectionError) in
      try Self.keybag(hasPassword ? password.copy() : nil, deviceKey, random)
    }
    let passcodeKey = try translatingErrors { () throws(DataProtectionError) in
      try bag.keybag.passcodeKey(password: password)
    }
    let keybag = bag.keybag
    let keys = bag.classKeys
    let contents = try readContents(keys, random)
    probes = try Self.probes(of: contents.items, sealing: keys, for: keybag, random)
    omissions = contents.report.omittedItems
    tombstones = contents.report.tombstones
    self.contents = contents
    self.hasPassword = hasPassword
    self.keybag = keybag
    self.passcodeKey = passcodeKey
  }

  private static func keybag(
    _ password: consuming Secret?, _ deviceKey: DeviceKey, _ random: SystemRandomSource
  ) throws(DataProtectionError) -> UnlockedKeybag {
    try BackupKeybag.make(
      password: password, deviceKey: deviceKey, rounds: SimulatedBackup.rounds, random: random)
  }

  /// Returns an artificial item for each class in the backup. Only a missing class key can prevent its decryption.
  private static func probes(
    of items: [BackupItem], sealing keys: ClassKeys, for keybag: Keybag, _ random: SystemRandomSource
  ) throws(KeyhaulError) -> KeychainBackupFile {
    var entries: [KeychainBackupFile.Entry] = []
    var keyClasses: Set<KeyClass> = []
    for item in items {
      guard let protection = item.protection, keyClasses.insert(protection.keyClass).inserted else { continue }
      var probe = KeychainItem(kind: .genericPassword)
      probe.protection = protection
      do throws(ItemCryptoError) {
        let blob = try keys.seal(probe, as: .backup, random: random)
        entries.append(.init(kind: probe.kind, blob: blob.serialized()))
      } catch {
        throw KeyhaulError(error)
      }
    }
    return KeychainBackupFile(keybagUUID: keybag.uuidText, entries: entries)
  }

  /// The number of iterations. One is enough, because the keybag exists only for a moment, so that nobody can guess its
  /// password.
  private static let rounds = 1

  /// Returns all items as a device reads them. Items that the device cannot decrypt contain the failure.
  ///
  /// - Parameter deviceKey: The key of the device that reads the backup.
  package func items(openedWith deviceKey: DeviceKey) throws(KeyhaulError) -> [BackupItem] {
    let keys: ClassKeys
    do throws(DataProtectionError) {
      keys = try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey)
    } catch {
      throw KeyhaulError(error)
    }
    var openedProbes: [KeyClass: BackupItem] = [:]
    for probe in try BackupItem.openAll(in: probes, with: keys) {
      if let keyClass = probe.keyClass { openedProbes[keyClass] = probe }
    }
    var items: [BackupItem] = []
    items.reserveCapacity(contents.items.count)
    for item in contents.items {
      guard let probe = item.keyClass.flatMap({ openedProbes[$0] }) else {
        throw KeyhaulError(DataProtectionError(.malformed, "no item of the same class could be tried"))
      }
      items.append(item.withResult(of: probe, at: keepsIndexes ? Int(exported[item.index].rowID) : item.index))
    }
    return items
  }

  /// Plans the restore of the backup to a device.
  ///
  /// - Parameters:
  ///   - rows: All rows of the device.
  ///   - deviceKey: The key of the device.
  func plan(
    onto rows: [TargetRow], openedWith deviceKey: DeviceKey, policy: ExistingItemPolicy, targetSyncs: Bool,
    for use: BackupPurpose
  ) throws(KeyhaulError) -> MigrationPlan {
    let items = try items(openedWith: deviceKey)
    let context = RestoreContext(targetSyncs: targetSyncs, backupHasPassword: hasPassword)
    func plan(_ cache: ImportCache) -> MigrationPlan {
      MigrationPlanner.plan(
        items, onto: rows, policy: policy, context: context, cache: cache,
        isExecutable: use == .restoring)
    }
    return completing(plan(contents.importCache ?? ImportCache()))
  }

  /// Returns whether the value of an item in the backup has the form of a Secure Enclave key; `nil` if this is unknown
  /// or the backup has no item at this index.
  func containsSecureEnclaveKey(at index: Int) -> Bool? {
    exported.indices.contains(index) ? exported[index].containsSecureEnclaveKey : nil
  }

  /// Returns a plan with names, and with a decision for each item that a rule excludes from the backup. If items keep
  /// the indexes of their source, the decisions are in the order of these indexes. Otherwise, the excluded items
  /// follow the items of the backup.
  func completing(_ plan: MigrationPlan) -> MigrationPlan {
    let exported = exported
    let numberedOmissions = omissions.enumerated().map { offset, decision in
      keepsIndexes ? decision : decision.at(exported.count + offset)
    }
    let exportedByRow =
      keepsIndexes
      ? Dictionary(exported.map { (Int($0.rowID), $0) }, uniquingKeysWith: { first, _ in first }) : [:]
    func exportedItem(at index: Int) -> ExportReport.Item? {
      if keepsIndexes { return exportedByRow[index] }
      return exported.indices.contains(index) ? exported[index] : nil
    }
    let namedDecisions = plan.decisions.map { decision in
      guard let item = exportedItem(at: decision.index) else { return decision }
      return decision.naming(
        ItemSummary(
          decision.identity.isEncrypted ? item.identity : decision.identity, isSynchronizable: item.isSynchronizable,
          containsSecureEnclaveKey: item.containsSecureEnclaveKey))
    }
    let decisions = namedDecisions + numberedOmissions
    return plan.showing(keepsIndexes ? decisions.sorted { $0.index < $1.index } : decisions)
  }
}

extension Restorer {
  /// Plans the restore of a simulated backup to another device. Neither device is changed.
  ///
  /// Indexes are those in the backup, followed by the items that no backup contains.
  ///
  /// - Parameters:
  ///   - simulatedBackup: The simulated backup of the source device.
  ///   - target: A session of the target device.
  ///   - policy: The treatment of the target's own items before the import.
  ///   - use: `.restoring` for a plan that can be carried out; otherwise it is only for reports.
  /// - Throws: The errors of the target's keychain.
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
  /// Simulates a backup of the device from which a dump was made, with the dump's items.
  ///
  /// The device is unknown. A random device key replaces the real one, and the device is assumed not to
  /// synchronize. The same rules decide which items are excluded; a flag that is missing in the dump counts as not set.
  ///
  /// - Parameters:
  ///   - dump: The items.
  ///   - name: The name in reports.
  ///   - hasPassword: Whether the backup has a password.
  /// - Throws: An error of the cryptographic library.
  package convenience init(of dump: KeychainDump, named name: String, hasPassword: Bool) throws(KeyhaulError) {
    let deviceKey = try MigrationComparison.keyOfUnknownDevice()
    try self.init(of: name, hasPassword: hasPassword, deviceKey: deviceKey, keepsIndexes: true) { (keys, random) in
      var export = BackupExporter.Export(random: random, deviceSyncs: false, keeping: .decrypted(isListed: true))
      for item in dump.items { export.add(item, sealing: keys) }
      return export
    }
  }
}

extension BackupExporter.Export {
  /// Adds a dump's item, or the reason why it is not in the backup.
  mutating func add(_ dumped: DumpedItem, sealing keys: ClassKeys) {
    guard let item = dumped.item else {
      let reportedItem = ExportReport.Item(
        identity: ItemDescriptor(undecryptable: dumped.kind), protection: dumped.protection, rowID: Int64(dumped.index),
        isSynchronizable: nil, containsSecureEnclaveKey: nil)
      report.omissions.append(reportedItem.omission(because: dumped.fault?.reason ?? .malformed, dumped.fault?.detail))
      return
    }
    let reportedItem = ExportReport.Item(
      identity: ItemDescriptor(item), protection: item.protection, rowID: Int64(dumped.index),
      isSynchronizable: item.isSynchronizable, containsSecureEnclaveKey: item.containsSecureEnclaveKey)
    guard item.protection != nil else {
      report.omissions.append(reportedItem.omission(because: .malformed, "it has no known protection class"))
      return
    }
    let candidate = ExportCandidate(
      item: item, isAccessControlled: item[.accessControl] != nil,
      isAppClip: item[.appClip]?.integerValue.map { $0 != 0 } ?? false)
    let reference = item[.persistentReference]?.dataValue ?? []
    add(candidate, reportedItem, reference: reference, sealing: keys)
  }
}

extension Restorer {
  /// Plans the restore of a simulated backup of a dump's device. Nothing is changed.
  ///
  /// Indexes are those in the dump. Whether the dump was made from the target is unknown. The plan treats the target
  /// as a different device, but does not state that it is one.
  ///
  /// - Throws: The errors of the target's keychain.
  package static func plan(
    _ dump: KeychainDump, named name: String, hasPassword: Bool, onto target: DeviceSession, policy: ExistingItemPolicy
  ) throws(KeyhaulError) -> MigrationPlan {
    let simulatedBackup = try SimulatedBackup(of: dump, named: name, hasPassword: hasPassword)
    return try plan(simulatedBackup, onto: target, policy: policy).withoutDeviceProof
  }
}
