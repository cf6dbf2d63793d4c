public import Basics
public import KeychainCrypto
import KeychainFormats

/// The key that is derived from a backup's password. It unlocks the keybag, with or without a device key.
///
/// All reads that require a password start here, so that they try the same forms of the password and refuse the same
/// keybags.
public final class BackupKey: Sendable {
  private let keybag: Keybag
  /// The key that is derived from the password and wraps the class keys (Apple's name: passcode key). It is empty if
  /// `keybagFault` is set.
  package let passcodeKey: Secret
  /// The Unicode form in which the password matched.
  package let passwordForm: PasswordNormalization
  /// The reason why the keybag cannot be unlocked, if the files of the backup do not need its keys; otherwise `nil`.
  package let keybagFault: String?
  /// Whether a password was given.
  package let wasGivenPassword: Bool
  /// The key for the records in a file list of iOS 10.0.
  private let recordKey: ManifestRecordKey?

  fileprivate init(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    remembering cache: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(KeyhaulError) {
    if Self.isGiven(password), !archive.keybagHasPassword { throw .passwordNotNeeded }
    let derived = try Self.derivedKey(
      of: archive, password: password, acceptingAtMost: limit, remembering: cache, progress: progress)
    wasGivenPassword = Self.isGiven(password)
    keybag = archive.keybag
    passwordForm = derived.form
    keybagFault = derived.keybagFault
    passcodeKey = derived.passcodeKey.copy()
    recordKey = derived.recordKey
  }

  /// The derived key, or the reason why the keybag of unencrypted files cannot be unlocked.
  private struct DerivedKey: ~Copyable {
    let form: PasswordNormalization
    let keybagFault: String?
    let passcodeKey: Secret
    let recordKey: ManifestRecordKey?
  }

  private static func derivedKey(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    remembering cache: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(KeyhaulError) -> DerivedKey {
    do throws(DataProtectionError) {
      let key = try matchingKey(
        of: archive, password: password, acceptingAtMost: limit, remembering: cache, progress: progress)
      return DerivedKey(
        form: key.form, keybagFault: nil, passcodeKey: key.passcodeKey.copy(),
        recordKey: try recordKey(of: archive, password: password, in: key.form))
    } catch {
      guard !archive.isEncrypted, error.isKeybagDamage else { throw KeyhaulError(error) }
      let fault = archive.manifest.keybagFault ?? error.reason
      return DerivedKey(form: .asTyped, keybagFault: fault, passcodeKey: .empty, recordKey: nil)
    }
  }

  /// Unlocks the class keys.
  ///
  /// - Parameter deviceKey: The available device key. Only an item can prove that this key belongs to the source device.
  /// - Returns: The keys, or none if the keybag of a backup without a password is damaged, because unencrypted files
  ///   can be read without them.
  /// - Throws: An error of category `damaged` if the keybag is unusable.
  public func classKeys(deviceKey: DeviceKey?) throws(KeyhaulError) -> ClassKeys {
    do throws(DataProtectionError) {
      guard keybagFault == nil else { return ClassKeys.none() }
      let keys = try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey)
      return recordKey == nil ? keys : keys.with(recordKey: recordKey)
    } catch {
      throw KeyhaulError(error)
    }
  }

  /// Refuses a keybag with too many iterations before a password is requested.
  ///
  /// - Throws: An error of category `refused` if the count exceeds the limit, or `damaged` if the keybag has no
  ///   derivation parameters.
  package static func checkIterations(
    of archive: BackupArchive, acceptingAtMost limit: Int = IterationLimit.standard
  ) throws(KeyhaulError) {
    do throws(DataProtectionError) {
      try archive.checkKeybagIsReadable()
      try archive.keybag.derivationParameters().check(acceptingAtMost: limit)
    } catch {
      if archive.isEncrypted || !error.isKeybagDamage { throw KeyhaulError(error) }
    }
  }

  private static func recordKey(
    of archive: BackupArchive, password: borrowing Secret?, in form: PasswordNormalization
  ) throws(DataProtectionError) -> ManifestRecordKey? {
    switch password {
    case .none: nil
    case .some(let password): try archive.recordKey(password: password.normalized(form) ?? password.copy())
    }
  }

  private static func matchingKey(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    remembering cache: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag.MatchedPasscodeKey {
    try archive.checkKeybagIsReadable()
    guard archive.isEncrypted || isGiven(password) else {
      return try keyWithoutPassword(of: archive, acceptingAtMost: limit, progress: progress)
    }
    switch password {
    case .some(let password):
      do throws(DataProtectionError) {
        return try archive.keybag.matchedPasscodeKey(
          password: password, acceptingAtMost: limit, remembering: cache, progress: progress)
      } catch {
        throw archive.keybag.typeError(explaining: error) ?? error
      }
    case .none:
      throw DataProtectionError(.wrongPassword, "the backup is encrypted, but no password was given")
    }
  }

  private static func isGiven(_ password: borrowing Secret?) -> Bool {
    switch password {
    case .some: true
    case .none: false
    }
  }

  /// Derives the key of a keybag without a password.
  ///
  /// - Throws: `.damagedKeybag` if no class key unwraps without a password. The user was not asked for a password, so
  ///   the error cannot be a wrong one.
  private static func keyWithoutPassword(
    of archive: BackupArchive, acceptingAtMost limit: Int, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag.MatchedPasscodeKey {
    do throws(DataProtectionError) {
      return try archive.keybag.matchedPasscodeKey(password: .empty, acceptingAtMost: limit, progress: progress)
    } catch {
      guard error.code == .wrongPassword else { throw error }
      let statement =
        archive.hasFalseClaim
        ? "the files of the backup are unencrypted" : "Manifest.plist says that the backup has no password"
      throw DataProtectionError(.damagedKeybag, "\(statement), but no class key unwraps without one")
    }
  }
}

extension BackupArchive {
  /// Derives the key of the backup's password. This is the second and slowest of the three steps: opening the backup,
  /// unlocking it, and decrypting its items. If the password does not match, the password's other Unicode
  /// forms are tried.
  ///
  /// - Parameters:
  ///   - password: The backup's password, or `nil` if it has none.
  ///   - limit: The maximum number of PBKDF2 iterations, checked in advance.
  ///   - progress: Called with the progress of the derivation, which ends if it returns `false`.
  /// - Returns: The key, which is shared by reference and overwritten when it is released.
  /// - Throws: An error of one of these categories:
  ///   - `wrongPassword` if a password is missing or unwraps no class key.
  ///   - `refused` if the iteration count exceeds the limit, or if a password is given for a backup without one.
  ///   - `damaged` if files are encrypted and the keybag is damaged. If the files are unencrypted, a damaged keybag is
  ///     not an error, and the key has no class keys.
  public func unlock(
    password: borrowing Secret?, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(KeyhaulError) -> BackupKey {
    try unlock(password: password, acceptingAtMost: limit, remembering: nil, progress: progress)
  }

  /// Derives the key as `unlock(password:acceptingAtMost:progress:)` does, or returns a cached one.
  ///
  /// - Parameter cache: The keys derived from this password, to which a new key is added.
  package func unlock(
    password: borrowing Secret?, acceptingAtMost limit: Int = IterationLimit.standard,
    remembering cache: DerivedKeyCache?,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(KeyhaulError) -> BackupKey {
    try BackupKey(of: self, password: password, acceptingAtMost: limit, remembering: cache, progress: progress)
  }
}

extension DataProtectionError {
  /// Whether the keybag is damaged.
  fileprivate var isKeybagDamage: Bool { code == .damagedKeybag || code == .missingField }
}

extension Keybag {
  /// Returns an error that explains the given error with the keybag's type. Returns `nil` if the type is unknown, if it
  /// is the type of a backup's keybag, or if it cannot be the cause.
  fileprivate func typeError(explaining error: DataProtectionError) -> DataProtectionError? {
    guard let type, type != .backup, error.code == .wrongPassword || error.code == .damagedKeybag else { return nil }
    return DataProtectionError(
      .unsupported,
      "the keybag's type is \(type.rawValue) (\(type.displayName)), but a backup keybag's is \(BagType.backup.rawValue); "
        + error.reason)
  }
}

extension BackupArchive {
  /// Checks that the keybag is readable.
  ///
  /// - Throws: `.damagedKeybag` if it is not.
  fileprivate func checkKeybagIsReadable() throws(DataProtectionError) {
    if let fault = manifest.keybagFault { throw DataProtectionError(.damagedKeybag, fault) }
  }
}
