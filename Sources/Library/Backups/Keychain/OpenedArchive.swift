public import Basics
public import KeychainCrypto
package import KeychainFormats
public import KeychainRules

/// A backup after its password, and the hardware key of one device, were tried on it: what a plan is made of.
public struct OpenedArchive: Sendable {
  /// In the archive's order.
  public let items: [ArchivedItem]
  /// Its items counted by what their blobs say.
  package let contents: ArchiveContents
  /// What the items prove about the device key that was tried on them; nothing where none was tried, or no item needs one.
  package let hardware: HardwareProof
  /// What is known of the items that only the device that made the archive opens, by their position: where the maker's
  /// key was available. For reports; what becomes of an item never depends on it.
  package let knownSealed: [Int: KnownItem]
  private let keychain: UnlockedKeychain

  /// The archive as it was opened, without its keys.
  public var archive: BackupArchive { keychain.archive }
  /// Its list of files.
  public var fileList: FileList { keychain.fileList }
  /// What is wrong with single class keys: "10 of 11 class keys can be unwrapped, class 7 cannot". The others are usable.
  package var keybagDamage: String? { keychain.keybagDamage }
  /// In which of its Unicode forms the password fitted.
  package var passwordForm: PasswordNormalization { keychain.passwordForm }
  /// What was unusual about the archive, and tolerated.
  package var notes: [ArchiveNote] { keychain.notes }
  /// Whether a password protects it, as far as that opened its keybag.
  package var hasPassword: Bool { keychain.hasPassword }

  fileprivate init(
    _ archive: BackupArchive, key: ArchiveKey, deviceKey: DeviceKey?, sourceKey: DeviceKey?, for use: ArchiveUse,
    reusing opened: OpenedArchive?
  ) throws(KeyhaulError) {
    let keys = try key.classKeys(deviceKey: deviceKey)
    keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use, knowing: opened?.keychain)
    let index = keychain.index
    items = try ArchivedItem.openAll(in: index, with: keys, knowing: opened?.items ?? [])
    hardware = HardwareProof(items)
    if let sourceKey {
      knownSealed = try ArchivedItem.known(of: items, in: index, with: try key.classKeys(deviceKey: sourceKey))
    } else {
      knownSealed = [:]
    }
    contents = ArchiveContents(items)
  }

  /// What of it is not as a device leaves it, and was gone around; of a large list also what was met since.
  package var findings: [ArchiveFinding] { keychain.findings }

  /// Why nothing of its keychain can be read, though there is one; what it holds is not known then.
  package var hiddenKeychain: ArchiveFinding? { keychain.hiddenKeychain }

  /// Refuses it for a use that one of its findings forbids.
  ///
  /// - Throws: The refusal of the first of them.
  package func require(_ use: ArchiveUse) throws(KeyhaulError) { try keychain.require(use) }

  /// Whether the device key that was tried is of the device that made the backup: `true` that it is, `false` that it is
  /// not, as far as the items tell (`HardwareProof.isSameDevice`).
  package var isSameDevice: Bool? { hardware.isSameDevice }

  /// Why an item does not open here; `nil` if it opens.
  public func reason(of item: ArchivedItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: hasPassword)
  }
}

extension BackupArchive {
  /// Decrypts every item that the keys can decrypt: the last of the three steps.
  ///
  /// - Parameters:
  ///   - key: The key of the backup's password, from `unlock`.
  ///   - deviceKey: The hardware key of the target device, or of the possible source device. Items that it cannot decrypt
  ///     belong to another device, unless it decrypts none at all.
  ///   - sourceKey: The hardware key of the alleged source device, to learn the names of items that `deviceKey` cannot
  ///     decrypt. None of their values is kept.
  ///   - use: The purpose. For a plan and a restore, a backup without a keychain is an error; for other uses, it has no
  ///     items. A finding that forbids the use is an error too.
  ///   - opened: The same backup, opened before with the same key, so that its keychain is not read again.
  /// - Throws: Category `damaged` if the list of files cannot be read, or if a finding forbids the use.
  public func open(
    with key: ArchiveKey, deviceKey: DeviceKey? = nil, sourceKey: DeviceKey? = nil, for use: ArchiveUse = .restoring,
    reusing opened: OpenedArchive? = nil
  ) throws(KeyhaulError) -> OpenedArchive {
    try OpenedArchive(self, key: key, deviceKey: deviceKey, sourceKey: sourceKey, for: use, reusing: opened)
  }
}

/// Something that shows that a backup's keychain is not what its device wrote, or may not be: a fact of the whole, by which
/// items may be missing that nothing names. Damage of single items is a `Reason`.
package enum ArchiveDamage: Sendable, Hashable, CustomStringConvertible {
  /// The list of files records another digest of the keychain file.
  case keychainChanged
  /// The list of files records another size of the keychain file, in bytes.
  case keychainSize(recorded: Int64, found: Int64)
  /// Nothing says whether the device finished the backup.
  case statusMissing
  /// Class keys that items need do not unwrap: "10 of 11 class keys can be unwrapped, class 7 cannot".
  case classKeys(String)
  /// A part that is not as a device leaves it, and that reading went around.
  case finding(ArchiveFinding)

  /// A clause that names the fact found.
  package var description: String {
    switch self {
    case .keychainChanged: ArchiveNote.digestDiffers.description
    case .keychainSize(let recorded, let found):
      ArchiveNote.sizeDiffers(recorded: recorded, found: found).description
    case .statusMissing: ArchiveNote.statusMissing.description
    case .classKeys(let report): report
    case .finding(let finding): finding.description
    }
  }
}

extension OpenedArchive {
  /// What shows that items may be lost which no report can name; empty for a backup as its device wrote it.
  package var damage: [ArchiveDamage] {
    var damage = notes.compactMap { (note) -> ArchiveDamage? in
      switch note {
      case .digestDiffers: .keychainChanged
      case .sizeDiffers(let recorded, let found): .keychainSize(recorded: recorded, found: found)
      case .statusMissing: .statusMissing
      // Of these a backup loses no item, or no restore takes it at all, or it is a finding.
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

  /// The classes of items that the keybag has no key of, as a clause; `nil` if it has the keys of all.
  private var missingClassKeys: String? {
    let lost = items.compactMap { if case .noClassKey(let keyClass) = $0.failure { keyClass } else { nil } }
    // Where there is no keybag, that is the finding.
    guard !lost.isEmpty, !findings.contains(where: \.leavesNoKeybag) else { return nil }
    // A number with a key generation is another class to a backup, though one of a known name.
    let names = HumanReadable.list(Set(lost).sorted().map { $0.generation == 0 ? String($0.rawValue) : $0.words })
    let need = lost.count == 1 ? "needs" : "need"
    return "the keybag has no key of class \(names), and \(HumanReadable.count(lost.count, "item")) \(need) one"
  }

  /// Whether an item is of a class whose key in the keybag does not unwrap.
  package var losesItemsToKeybag: Bool {
    items.contains { item in
      if case .classKeyDamaged = item.failure { true } else { false }
    }
  }
}

/// Which items an archive's keychain holds, as far as their blobs say without any key: kind and protection class.
package struct ArchiveContents: Sendable, Equatable {
  /// How many items stand in the array of each kind.
  package private(set) var countByKind: [ItemKind: Int] = [:]
  /// Items whose blob names no known class are not in it.
  package private(set) var countByProtection: [ProtectionClass: Int] = [:]
  /// How many items there are, readable or not.
  package private(set) var total = 0

  /// Items that a backup with a password carries to any device.
  package private(set) var migratable = 0
  /// Items that only the device that made the backup gets back.
  package private(set) var thisDeviceOnly = 0
  /// Secrets without a name (version 0, of iOS 4), which can be read and which no restore takes.
  package private(set) var secretOnly = 0

  /// Counts the items; nothing of them is opened for it.
  package init(_ items: some Sequence<ArchivedItem>) {
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
