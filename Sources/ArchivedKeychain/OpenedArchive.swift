public import BackupArchive
public import DataProtection
import KeychainFormats
public import KeychainRules

/// A backup after its password, and the hardware key of one device, were tried on it: what a plan is made of.
public struct OpenedArchive: Sendable {
  /// The archive as it was opened, without its keys.
  public let archive: BackupArchive
  /// In the archive's order.
  public let items: [ArchivedItem]
  /// Its items counted by what their blobs say.
  public let contents: ArchiveContents
  /// Its list of files.
  public let fileList: FileList
  /// What is wrong with single class keys: "10 of 11 class keys unwrap, class 7 does not". The others are usable.
  public let keybagDamage: String?
  /// In which of its Unicode forms the password fitted.
  public let passwordForm: PasswordForm
  /// What the items prove about the device key that was tried on them; nothing where none was tried, or no item needs one.
  public let hardware: HardwareProof
  /// What was unusual about the archive, and tolerated.
  public let notes: [ArchiveNote]
  /// What is known of the items that only the device that made the archive opens, by their position: where the maker's
  /// key was at hand. For reports; what becomes of an item never depends on it.
  public let knownSealed: [Int: KnownItem]

  /// Derives the password's key, unlocks the keybag and tries every item.
  ///
  /// - Parameters:
  ///   - archive: The backup as it was opened.
  ///   - password: Of the backup, as `ArchiveKey` takes it.
  ///   - deviceKey: The hardware key of the device that the archive should go to, or of one that may have made it. What
  ///     it does not open is another device's, unless it opens something.
  ///   - makerKey: The hardware key of the device that is said to have made the archive, to learn the names of what the
  ///     other one does not open. No value that it opens is kept.
  ///   - requiresKeychain: Whether a backup in which no keychain was stored is an error, and not one without items.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: As `ArchiveKey` and the initializer that takes one.
  public init(
    _ archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey? = nil, requiresKeychain: Bool = true,
    acceptingAtMost limit: Int = RoundLimit.standard, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) {
    let key = try ArchiveKey(of: archive, password: password, acceptingAtMost: limit, progress: progress)
    try self.init(
      archive, key: key, deviceKey: deviceKey, makerKey: makerKey, requiresKeychain: requiresKeychain)
  }

  /// Unlocks the keybag with a key that was derived before and tries every item.
  ///
  /// - Throws: Category `damaged` where the archive's bytes are not what was written, or its keychain belongs to another
  ///   keybag.
  public init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey? = nil, requiresKeychain: Bool = true
  ) throws(ArchivedKeychainError) {
    let keys = try key.classKeys(deviceKey: deviceKey)
    let (file, list, notes) = try Self.keychain(of: archive, with: keys, isRequired: requiresKeychain)
    if let named = file.keybagUUID, let own = archive.keybag.uuidText, named != own {
      throw .keybagMismatch(file: named, keybag: own)
    }
    self.archive = archive
    items = try ArchivedItem.openAll(in: file, with: keys)
    hardware = HardwareProof(items)
    switch makerKey {
    case .some(let makerKey):
      knownSealed = try ArchivedItem.known(of: items, in: file, with: try key.classKeys(deviceKey: makerKey.copy()))
    case .none: knownSealed = [:]
    }
    passwordForm = key.passwordForm
    fileList = list
    contents = ArchiveContents(items)
    keybagDamage = keys.damageReport
    self.notes = notes
  }

  /// Whether the device key that was tried is of the device that made the backup: `true` that it is, `false` that it is
  /// not, as far as the items tell (`HardwareProof.isSameDevice`).
  public var isSameDevice: Bool? { hardware.isSameDevice }

  /// Why an item does not open here; `nil` where it opens.
  public func reason(of item: ArchivedItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: archive.isEncrypted)
  }

  private static func keychain(
    of archive: BackupArchive, with keys: borrowing ClassKeys, isRequired: Bool
  ) throws(ArchivedKeychainError) -> (KeychainBackupFile, FileList, [ArchiveNote]) {
    do throws(BackupArchiveError) {
      let payload = try archive.keychainFile(with: keys)
      return (payload.file, payload.fileList, payload.notes)
    } catch {
      if error.code == .noKeychain, !isRequired, let list = try? archive.fileList(with: keys) {
        return (KeychainBackupFile(keybagUUID: nil, entries: []), list, archive.notes + list.notes)
      }
      // The password is right by now: a class key that a file needs and that is not there was there once.
      throw ArchivedKeychainError(error.code == .keyUnavailable ? BackupArchiveError(.damaged, error.reason) : error)
    }
  }
}
