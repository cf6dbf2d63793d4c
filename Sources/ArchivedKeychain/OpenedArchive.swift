public import BackupArchive
public import DataProtection
public import KeychainFormats

/// A backup after its password, and the hardware key of one device, were tried on it: what a plan is made of.
public struct OpenedArchive: Sendable {
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
  /// Whether an item proves that the device key is of the device that made the backup; `false` too where none was tried,
  /// or no item needs one.
  public let provesDevice: Bool
  /// What was unusual about the archive, and tolerated.
  public let notes: [ArchiveNote]
  /// What the items are called that only the device that made the archive opens, by their position: known where the
  /// maker's key was at hand. Names for reports; what becomes of an item never depends on them.
  public let sealedNames: [Int: ItemIdentity]

  /// Derives the password's key, unlocks the keybag and tries every item.
  ///
  /// - Parameters:
  ///   - password: Of the backup. Not used where the backup has none; every bag of such a one opens with the empty one.
  ///   - deviceKey: The hardware key of the device that the archive should go to.
  ///   - requiresKeychain: Whether a backup in which no keychain was stored is an error, and not one without items.
  ///   - isGuess: Whether the device key may be another device's. Where no item opens with it, it counts as not given.
  ///   - makerKey: The hardware key of the device that is said to have made the archive, to learn the names of what the
  ///     other one does not open. Nothing that it opens is kept.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: Category `wrongPassword` where none was given and one is needed, or none of the class keys unwraps;
  ///   `refused` over the limit; `damaged` where the archive's bytes are not what was written, or its keychain
  ///   belongs to another keybag.
  public init(
    _ archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?, isGuess: Bool = false,
    makerKey: borrowing DeviceKey? = nil, requiresKeychain: Bool = true,
    acceptingAtMost limit: Int = RoundLimit.standard, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) {
    try self.init(
      archive,
      key: try Self.fittingKey(of: archive, password: password, acceptingAtMost: limit, progress: progress),
      deviceKey: deviceKey, isGuess: isGuess, makerKey: makerKey, requiresKeychain: requiresKeychain)
  }

  /// The same with the password's key, which was derived before: the slow part is done once, however much is opened.
  ///
  /// - Parameter key: What `fittingKey` gave for this archive.
  public init(
    _ archive: BackupArchive, key fitting: borrowing Keybag.FittingKey, deviceKey: borrowing DeviceKey?,
    isGuess: Bool = false, makerKey: borrowing DeviceKey? = nil, requiresKeychain: Bool = true
  ) throws(ArchivedKeychainError) {
    let keys = try Self.unlock(archive.keybag, fitting.passcodeKey, deviceKey)
    let (file, list, notes) = try Self.keychain(of: archive, with: keys, isRequired: requiresKeychain)
    if let named = file.keybagUUID, let own = archive.keybag.uuidText, named != own {
      throw .keybagMismatch(file: named, keybag: own)
    }
    self.archive = archive
    let tried = try ArchivedItem.openAll(in: file, with: keys)
    provesDevice = tried.provesSameDevice == true
    if isGuess, tried.provesSameDevice == false {
      items = try ArchivedItem.openAll(
        in: file, with: try Self.unlock(archive.keybag, fitting.passcodeKey, nil))
    } else {
      items = tried
    }
    switch makerKey {
    case .some(let makerKey):
      let makerKeys = try Self.unlock(archive.keybag, fitting.passcodeKey, makerKey.copy())
      sealedNames = try ArchivedItem.names(of: items, in: file, with: makerKeys)
    case .none: sealedNames = [:]
    }
    passwordForm = fitting.form
    fileList = list
    contents = ArchiveContents(file)
    keybagDamage = keys.damageReport
    self.notes = notes
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

  /// Refuses a keybag that asks for more work than is accepted, before anyone is asked for a password.
  ///
  /// - Throws: Category `refused` over the limit, `damaged` where the keybag does not say how to derive its key.
  public static func checkRounds(
    of archive: BackupArchive, acceptingAtMost limit: Int = RoundLimit.standard
  ) throws(ArchivedKeychainError) {
    do throws(DataProtectionError) {
      try archive.keybag.derivationParameters().check(acceptingAtMost: limit)
    } catch {
      throw ArchivedKeychainError(error)
    }
  }

  /// Opens the class keys of an archive's keybag, for what is not about its items: payloads, the keybag itself.
  ///
  /// - Throws: As the initialiser does.
  public static func classKeys(
    of archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?,
    acceptingAtMost limit: Int = RoundLimit.standard, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) -> ClassKeys {
    try classKeys(
      of: archive,
      key: try fittingKey(of: archive, password: password, acceptingAtMost: limit, progress: progress),
      deviceKey: deviceKey)
  }

  /// The same with the password's key, which was derived before.
  ///
  /// - Parameter key: What `fittingKey` gave for this archive.
  public static func classKeys(
    of archive: BackupArchive, key: borrowing Keybag.FittingKey, deviceKey: borrowing DeviceKey?
  ) throws(ArchivedKeychainError) -> ClassKeys {
    try unlock(archive.keybag, key.passcodeKey, deviceKey)
  }

  /// Derives the password's key in the Unicode form in which it fits, which is all that is slow about an archive.
  ///
  /// - Parameters:
  ///   - password: Of the backup. Not used where the backup has none.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: As the initialiser does.
  public static func fittingKey(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    progress: PasswordDerivation.Progress
  ) throws(ArchivedKeychainError) -> Keybag.FittingKey {
    do throws(DataProtectionError) {
      guard archive.isEncrypted else {
        return try keyWithoutPassword(of: archive.keybag, acceptingAtMost: limit, progress: progress)
      }
      switch password {
      case .some(let password):
        return try archive.keybag.fittingKey(password: password, acceptingAtMost: limit, progress: progress)
      case .none:
        throw DataProtectionError(.wrongPassword, "the backup is encrypted and no password was given")
      }
    } catch {
      throw ArchivedKeychainError(error)
    }
  }

  /// - Throws: `.damagedKeybag` where the keybag has a password after all: nobody was asked for one that could be wrong.
  private static func keyWithoutPassword(
    of keybag: Keybag, acceptingAtMost limit: Int, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag.FittingKey {
    do throws(DataProtectionError) {
      return try keybag.fittingKey(password: .empty, acceptingAtMost: limit, progress: progress)
    } catch {
      guard error.code == .wrongPassword else { throw error }
      throw DataProtectionError(
        .damagedKeybag, "the manifest says that the backup has no password, and no class key unwraps without one")
    }
  }

  private static func unlock(
    _ keybag: Keybag, _ passcodeKey: borrowing Secret, _ deviceKey: borrowing DeviceKey?
  ) throws(ArchivedKeychainError) -> ClassKeys {
    do throws(DataProtectionError) {
      return try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey)
    } catch {
      throw ArchivedKeychainError(error)
    }
  }
}
