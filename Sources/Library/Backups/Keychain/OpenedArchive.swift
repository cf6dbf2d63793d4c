import Basics
public import KeychainCrypto
import KeychainFormats
public import KeychainRules

/// A backup after its password, and the hardware key of one device, were tried on it: what a plan is made of.
public struct OpenedArchive: Sendable {
  /// In the archive's order.
  public let items: [ArchivedItem]
  /// Its items counted by what their blobs say.
  public let contents: ArchiveContents
  /// What the items prove about the device key that was tried on them; nothing where none was tried, or no item needs one.
  public let hardware: HardwareProof
  /// What is known of the items that only the device that made the archive opens, by their position: where the maker's
  /// key was available. For reports; what becomes of an item never depends on it.
  public let knownSealed: [Int: KnownItem]
  private let keychain: UnlockedKeychain

  /// The archive as it was opened, without its keys.
  public var archive: BackupArchive { keychain.archive }
  /// Its list of files.
  public var fileList: FileList { keychain.fileList }
  /// What is wrong with single class keys: "10 of 11 class keys unwrap, class 7 does not". The others are usable.
  public var keybagDamage: String? { keychain.keybagDamage }
  /// In which of its Unicode forms the password fitted.
  public var passwordForm: PasswordForm { keychain.passwordForm }
  /// What was unusual about the archive, and tolerated.
  public var notes: [ArchiveNote] { keychain.notes }
  /// Whether a password protects it, as far as that opened its keybag.
  public var hasPassword: Bool { keychain.hasPassword }

  /// Derives the password's key, unlocks the keybag and tries every item.
  ///
  /// - Parameters:
  ///   - archive: The backup as it was opened.
  ///   - password: Of the backup, as `ArchiveKey` takes it.
  ///   - deviceKey: The hardware key of the device that the archive should go to, or of one that may have made it. What
  ///     it does not open is another device's, unless it opens something.
  ///   - makerKey: The hardware key of the device that is said to have made the archive, to learn the names of what the
  ///     other one does not open. No value that it opens is kept.
  ///   - use: What it is opened for. A backup in which no keychain was stored is an error for a plan and a restore, and
  ///     one without items otherwise; one with a finding is an error for a use that the finding forbids.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: As `ArchiveKey` and the initializer that takes one.
  public init(
    _ archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey? = nil, for use: ArchiveUse = .restoring,
    acceptingAtMost limit: Int = RoundLimit.standard, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) {
    let key = try ArchiveKey(of: archive, password: password, acceptingAtMost: limit, progress: progress)
    try self.init(
      archive, key: key, deviceKey: deviceKey, makerKey: makerKey, for: use)
  }

  /// Unlocks the keybag with a key that was derived before and tries every item.
  ///
  /// - Throws: Category `damaged` where the list of files cannot be read, and where the use forbids what was found.
  public init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey? = nil, for use: ArchiveUse = .restoring
  ) throws(ArchivedKeychainError) {
    try self.init(
      archive, key: key, deviceKey: deviceKey, makerKey: makerKey, for: use, holdsItems: true, again: nil)
  }

  /// The same that holds no item which opens: each is opened again whenever it is asked for, with class keys that stay in
  /// memory for as long as the archive is open. For whoever goes through large ones.
  package init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey?, for use: ArchiveUse, holdsItems: Bool
  ) throws(ArchivedKeychainError) {
    try self.init(
      archive, key: key, deviceKey: deviceKey, makerKey: makerKey, for: use, holdsItems: holdsItems, again: nil)
  }

  /// The same archive with the same key of its password, as other hardware opens it.
  package init(
    _ opened: OpenedArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?, for use: ArchiveUse
  ) throws(ArchivedKeychainError) {
    try self.init(
      opened.archive, key: key, deviceKey: deviceKey, makerKey: nil, for: use, holdsItems: true, again: opened)
  }

  private init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey?, for use: ArchiveUse, holdsItems: Bool, again opened: OpenedArchive?
  ) throws(ArchivedKeychainError) {
    let keys = try key.classKeys(deviceKey: deviceKey)
    keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use, knowing: opened?.keychain)
    let index = keychain.index
    items =
      holdsItems
      ? try ArchivedItem.openAll(in: index, with: keys, knowing: opened?.items ?? [])
      : try ArchivedItem.openAllAgainAndAgain(in: index, with: keys)
    hardware = HardwareProof(items)
    switch makerKey {
    case .some(let makerKey):
      knownSealed = try ArchivedItem.known(of: items, in: index, with: try key.classKeys(deviceKey: makerKey.copy()))
    case .none: knownSealed = [:]
    }
    contents = ArchiveContents(items)
  }

  /// What of it is not as a device leaves it, and was gone around; of a large list also what was met since.
  public var findings: [ArchiveFinding] { keychain.findings }

  /// Why nothing of its keychain can be read, though there is one; what it holds is not known then.
  public var hiddenKeychain: ArchiveFinding? { keychain.hiddenKeychain }

  /// Refuses it for a use that one of its findings forbids.
  ///
  /// - Throws: The refusal of the first of them.
  public func require(_ use: ArchiveUse) throws(ArchivedKeychainError) { try keychain.require(use) }

  /// Whether the device key that was tried is of the device that made the backup: `true` that it is, `false` that it is
  /// not, as far as the items tell (`HardwareProof.isSameDevice`).
  public var isSameDevice: Bool? { hardware.isSameDevice }

  /// Why an item does not open here; `nil` where it opens.
  public func reason(of item: ArchivedItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: hasPassword)
  }
}
