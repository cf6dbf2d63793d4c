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
  public let database: ManifestDatabase
  /// What is wrong with single class keys: "10 of 11 class keys unwrap, class 7 does not". The others are usable.
  public let keybagDamage: String?
  /// What was unusual about the archive, and tolerated.
  public let notes: [ArchiveNote]

  /// Derives the password's key, unlocks the keybag and tries every item.
  ///
  /// - Parameters:
  ///   - password: Of the backup. Not used where the backup has none; every bag of such a one opens with the empty one.
  ///   - deviceKey: The hardware key of the device that the archive should go to.
  ///   - limit: The most PBKDF2 rounds to accept, checked before any work.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends.
  /// - Throws: Category `wrongPassword` where none was given and one is needed, or none of the class keys unwraps;
  ///   `refused` over the limit; `damaged` where the archive's bytes are not what was written, or its keychain
  ///   belongs to another keybag.
  public init(
    _ archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?,
    acceptingAtMost limit: Int = RoundLimit.standard, progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(ArchivedKeychainError) {
    let keys = try Self.unlock(
      archive, password: password, deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
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
    items = try ArchivedItem.openAll(in: payload.file, with: keys)
    database = payload.database
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

  private static func unlock(
    _ archive: BackupArchive, password: borrowing Secret?, deviceKey: borrowing DeviceKey?,
    acceptingAtMost limit: Int, progress: PasswordDerivation.Progress
  ) throws(ArchivedKeychainError) -> ClassKeys {
    do throws(DataProtectionError) {
      guard archive.isEncrypted else {
        return try archive.keybag.unlock(
          password: Secret(utf8: ""), deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
      }
      switch password {
      case .some(let password):
        return try archive.keybag.unlock(
          password: password.copy(), deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
      case .none:
        throw DataProtectionError(.wrongPassword, "the backup is encrypted and no password was given")
      }
    } catch {
      throw ArchivedKeychainError(error)
    }
  }
}
