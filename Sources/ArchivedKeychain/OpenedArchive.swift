public import BackupArchive
public import DataProtection
import KeychainFormats

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

  /// Derives the password's key, unlocks the keybag and tries every item.
  ///
  /// - Parameters:
  ///   - password: Of the backup. Not used where the backup has none; every bag of such a one opens with the empty one.
  ///   - deviceKey: The hardware key of the device that the archive should go to.
  ///   - isGuess: Whether the device key may be another device's. Where no item opens with it, it counts as not given.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: Category `wrongPassword` where none was given and one is needed, or none of the class keys unwraps;
  ///   `refused` over the limit; `damaged` where the archive's bytes are not what was written, or its keychain
  ///   belongs to another keybag.
  public init(
    _ archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?, isGuess: Bool = false,
    acceptingAtMost limit: Int = RoundLimit.standard, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) {
    let fitting = try Self.fittingKey(of: archive, password: password, acceptingAtMost: limit, progress: progress)
    let keys = try Self.unlock(archive.keybag, fitting.passcodeKey, deviceKey)
    let payload: KeychainPayload
    do throws(BackupArchiveError) {
      payload = try archive.keychainFile(with: keys)
    } catch {
      // The password is right by now: a class key that a file needs and that is not there was there once.
      throw ArchivedKeychainError(error.code == .keyUnavailable ? BackupArchiveError(.damaged, error.reason) : error)
    }
    if let named = payload.file.keybagUUID, let own = archive.keybag.uuidText, named != own {
      throw .keybagMismatch(file: named, keybag: own)
    }
    self.archive = archive
    let tried = try ArchivedItem.openAll(in: payload.file, with: keys)
    provesDevice = tried.contains { $0.provesHardware == true }
    if isGuess, !provesDevice, tried.contains(where: { $0.provesHardware == false }) {
      items = try ArchivedItem.openAll(
        in: payload.file, with: try Self.unlock(archive.keybag, fitting.passcodeKey, nil))
    } else {
      items = tried
    }
    passwordForm = fitting.form
    fileList = payload.fileList
    contents = ArchiveContents(payload.file)
    keybagDamage = keys.damageReport
    notes = payload.notes
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
    let fitting = try fittingKey(of: archive, password: password, acceptingAtMost: limit, progress: progress)
    return try unlock(archive.keybag, fitting.passcodeKey, deviceKey)
  }

  private static func fittingKey(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    progress: PasswordDerivation.Progress
  ) throws(ArchivedKeychainError) -> Keybag.FittingKey {
    do throws(DataProtectionError) {
      guard archive.isEncrypted else {
        return try archive.keybag.fittingKey(password: .empty, acceptingAtMost: limit, progress: progress)
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
