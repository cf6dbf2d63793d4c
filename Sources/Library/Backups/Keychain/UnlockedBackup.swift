public import Basics
public import KeychainCrypto
package import KeychainFormats
public import KeychainRules

/// A backup with its decrypted items, from which plans are made.
public struct UnlockedBackup: Sendable {
  /// The items in the backup's order.
  public let items: [BackupItem]
  /// The counts of the items by kind and class.
  package let itemCounts: BackupItemCounts
  /// The evidence from the items about the device key. Empty if no item was tried with a device key.
  package let hardware: DeviceKeyEvidence
  /// The known properties, by index, of items that only the source device can decrypt, if its key was available.
  /// Only for reports. No decision depends on it.
  package let encryptedItemSummaries: [Int: ItemSummary]
  private let keychain: UnlockedKeychain

  /// The backup without its keys.
  public var archive: BackupArchive { keychain.archive }
  /// The file list.
  public var fileList: FileList { keychain.fileList }
  /// A clause about damaged class keys, such as "10 of 11 class keys can be unwrapped, class 7 cannot", or `nil` if
  /// none is damaged. The other class keys are usable.
  package var keybagDamage: String? { keychain.keybagDamage }
  /// The Unicode form in which the password matched.
  package var passwordForm: PasswordNormalization { keychain.passwordForm }
  /// Anomalies of the backup that were tolerated.
  package var anomalies: [ToleratedAnomaly] { keychain.anomalies }
  /// Whether a password protects the keybag.
  package var hasPassword: Bool { keychain.hasPassword }

  fileprivate init(
    _ archive: BackupArchive, key: BackupKey, deviceKey: DeviceKey?, sourceKey: DeviceKey?, for use: BackupPurpose,
    reusing opened: UnlockedBackup?
  ) throws(KeyhaulError) {
    let keys = try key.classKeys(deviceKey: deviceKey)
    keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use, reusing: opened?.keychain)
    let index = keychain.index
    items = try BackupItem.openAll(in: index, with: keys, reusing: opened?.items ?? [])
    hardware = DeviceKeyEvidence(items)
    if let sourceKey {
      encryptedItemSummaries = try BackupItem.summaries(
        of: items, in: index, with: try key.classKeys(deviceKey: sourceKey))
    } else {
      encryptedItemSummaries = [:]
    }
    itemCounts = BackupItemCounts(items)
  }

  /// All current findings. A large file list is read in chunks, so more findings can appear later.
  package var findings: [BackupFinding] { keychain.findings }

  /// The finding that makes the keychain file unreadable, or `nil` if there is none.
  package var keychainReadFailure: BackupFinding? { keychain.keychainReadFailure }

  /// Checks that no finding forbids a use.
  ///
  /// - Throws: The error of the first such finding.
  package func requireNoBlockingFinding(for use: BackupPurpose) throws(KeyhaulError) {
    try keychain.requireNoBlockingFinding(for: use)
  }

  /// Whether the items prove that the device key belongs to the source device (`DeviceKeyEvidence.isSameDevice`).
  package var isSameDevice: Bool? { hardware.isSameDevice }

  /// Returns the reason why an item cannot be decrypted, or `nil` if it can.
  public func reason(of item: BackupItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: hasPassword)
  }
}

extension BackupArchive {
  /// Decrypts the items. This is the last of three steps.
  ///
  /// - Parameters:
  ///   - key: The key of the backup's password, from `unlock`.
  ///   - deviceKey: The device key of the target, or of the possible source device. If it unwraps the key of no item in
  ///     a class, the items of that class count as bound to a different device.
  ///   - sourceKey: The device key of the alleged source device, for the names of items that `deviceKey` cannot
  ///     decrypt. Their values are not kept.
  ///   - use: The caller's next step with the backup. For a plan or a restore, a missing keychain is an error. For
  ///     other uses, a backup without a keychain has no items.
  ///   - opened: The same backup, opened before with the same key, to reuse its keychain.
  /// - Throws: An error of category `damaged` if the file list is unreadable, or if a finding forbids the use.
  public func open(
    with key: BackupKey, deviceKey: DeviceKey? = nil, sourceKey: DeviceKey? = nil, for use: BackupPurpose = .restoring,
    reusing opened: UnlockedBackup? = nil
  ) throws(KeyhaulError) -> UnlockedBackup {
    try UnlockedBackup(self, key: key, deviceKey: deviceKey, sourceKey: sourceKey, for: use, reusing: opened)
  }
}

/// A sign that a backup's keychain may not be the one its device wrote, so that unknown items may be missing. Damage of
/// individual items is a `Reason`.
package enum BackupDamage: Sendable, Hashable, CustomStringConvertible {
  /// The keychain file's digest differs from the one in the file list.
  case keychainChanged
  /// The keychain file's size in bytes differs from the one in the file list.
  case keychainSize(recorded: Int64, found: Int64)
  /// It is unknown whether the device finished the backup.
  case statusMissing
  /// Required class keys cannot be unwrapped: "10 of 11 class keys can be unwrapped, class 7 cannot".
  case classKeys(String)
  /// A finding that means damage.
  case finding(BackupFinding)

  /// The damage as a clause.
  package var description: String {
    switch self {
    case .keychainChanged: ToleratedAnomaly.digestDiffers.description
    case .keychainSize(let recorded, let found):
      ToleratedAnomaly.sizeDiffers(recorded: recorded, found: found).description
    case .statusMissing: ToleratedAnomaly.statusMissing.description
    case .classKeys(let report): report
    case .finding(let finding): finding.description
    }
  }
}

extension UnlockedBackup {
  /// The signs that items may be missing. Empty if there are none.
  package var damage: [BackupDamage] {
    var damage = anomalies.compactMap { (anomaly) -> BackupDamage? in
      switch anomaly {
      case .digestDiffers: .keychainChanged
      case .sizeDiffers(let recorded, let found): .keychainSize(recorded: recorded, found: found)
      case .statusMissing: .statusMissing
      // These lose no items, forbid every restore, or are findings.
      case .encryptionNotStated, .encryptionClaimed, .propertyListUnreadable, .databaseUnpadded,
        .databaseInWriteAheadMode, .listJournalRead, .unfinished, .finding:
        nil
      }
    }
    damage += findings.filter(\.isDamage).map { .finding($0) }
    if let keybagDamage, losesItemsToKeybag { damage.append(.classKeys(keybagDamage)) }
    if let missing = missingClassKeys { damage.append(.classKeys(missing)) }
    return damage
  }

  /// The classes of items without a key in the keybag, as a clause, or `nil` if none is missing.
  private var missingClassKeys: String? {
    let missingClasses = items.compactMap { if case .noClassKey(let keyClass) = $0.failure { keyClass } else { nil } }
    // A missing keybag is a finding itself.
    guard !missingClasses.isEmpty, !findings.contains(where: \.preventsReadingKeybag) else { return nil }
    // A class number that includes a key generation is a separate class in a backup, with its own display name.
    let names = HumanReadable.list(
      Set(missingClasses).sorted().map { $0.generation == 0 ? String($0.rawValue) : $0.displayName })
    let need = missingClasses.count == 1 ? "needs" : "need"
    return
      "the keybag has no key of class \(names), and \(HumanReadable.count(missingClasses.count, "item")) \(need) one"
  }

  /// Whether an item's class key in the keybag cannot be unwrapped.
  package var losesItemsToKeybag: Bool {
    items.contains { item in
      if case .classKeyDamaged = item.failure { true } else { false }
    }
  }
}

/// The counts of a keychain's items by kind and protection class, which are known without keys.
package struct BackupItemCounts: Sendable, Equatable {
  /// The number of items of each kind.
  package private(set) var countByKind: [ItemKind: Int] = [:]
  /// The number of items of each known class.
  package private(set) var countByProtection: [ProtectionClass: Int] = [:]
  /// The number of items, readable or not.
  package private(set) var total = 0

  /// The number of items that an encrypted backup migrates to any device.
  package private(set) var migratable = 0
  /// The number of items that can only be restored to the source device.
  package private(set) var thisDeviceOnly = 0
  /// The number of secrets without a name (version 0, iOS 4), which can be read but not restored.
  package private(set) var secretOnly = 0

  /// Counts the items without decrypting them.
  package init(_ items: some Sequence<BackupItem>) {
    for item in items {
      total += 1
      countByKind[item.kind, default: 0] += 1
      if item.isSecretOnly { secretOnly += 1 }
      guard let protection = item.protection else { continue }
      countByProtection[protection, default: 0] += 1
      guard !item.isSecretOnly else { continue }
      if protection.isThisDeviceOnly { thisDeviceOnly += 1 } else { migratable += 1 }
    }
  }
}
