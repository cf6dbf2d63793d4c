public import Basics
public import KeychainCrypto
package import KeychainFormats

/// What an archive's password comes to, derived once: the key that opens the keybag, with the hardware key of one device
/// or another or with none.
///
/// Every reading that needs a password begins here, so that all of them try the same forms of it and refuse the same
/// keybags.
public final class ArchiveKey: Sendable {
  private let keybag: Keybag
  /// What the class keys are wrapped with, to wrap them again.
  package let passcodeKey: Secret
  /// In which of its Unicode forms the password fitted.
  package let passwordForm: PasswordNormalization
  /// Why the keybag opens nothing, of a backup whose files need none of its keys; `nil` if it opens.
  package let keybagFault: String?
  /// Whether a password opened the keybag.
  package let isOfPassword: Bool
  /// Of the records in a list of files of iOS 10.0.
  private let recordKey: ManifestRecordKey?

  fileprivate init(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    remembering keys: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(KeyhaulError) {
    if Self.isGiven(password), !archive.keybagHasPassword { throw .passwordNotNeeded }
    let found = try Self.found(
      of: archive, password: password, acceptingAtMost: limit, remembering: keys, progress: progress)
    isOfPassword = Self.isGiven(password)
    keybag = archive.keybag
    passwordForm = found.form
    keybagFault = found.fault
    passcodeKey = found.passcodeKey.copy()
    recordKey = found.recordKey
  }

  /// What a password comes to, or why the keybag of unencrypted files opens nothing.
  private struct Found: ~Copyable {
    let form: PasswordNormalization
    let fault: String?
    let passcodeKey: Secret
    let recordKey: ManifestRecordKey?
  }

  private static func found(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    remembering keys: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(KeyhaulError) -> Found {
    do throws(DataProtectionError) {
      let key = try fittingKey(
        of: archive, password: password, acceptingAtMost: limit, remembering: keys, progress: progress)
      return Found(
        form: key.form, fault: nil, passcodeKey: key.passcodeKey.copy(),
        recordKey: try recordKey(of: archive, password: password, in: key.form))
    } catch {
      guard !archive.isEncrypted, error.isOfKeybag else { throw KeyhaulError(error) }
      let fault = archive.manifest.keybagFault ?? error.reason
      return Found(form: .asTyped, fault: fault, passcodeKey: .empty, recordKey: nil)
    }
  }

  /// Opens the class keys.
  ///
  /// - Parameter deviceKey: Of the device whose hardware is available. Nothing but an item that opens proves that it is the
  ///   one that made the backup.
  /// - Throws: Category `damaged` where the keybag cannot be used.
  public func classKeys(deviceKey: DeviceKey?) throws(KeyhaulError) -> ClassKeys {
    do throws(DataProtectionError) {
      guard keybagFault == nil else { return ClassKeys.none() }
      let keys = try keybag.unlock(passcodeKey: passcodeKey.copy(), deviceKey: deviceKey)
      return recordKey == nil ? keys : keys.with(recordKey: recordKey)
    } catch {
      throw KeyhaulError(error)
    }
  }

  /// Refuses a keybag that asks for more work than is accepted, before anyone is asked for a password.
  ///
  /// - Throws: Category `refused` over the limit, `damaged` where the keybag does not say how to derive its key.
  package static func checkRounds(
    of archive: BackupArchive, acceptingAtMost limit: Int = IterationLimit.standard
  ) throws(KeyhaulError) {
    do throws(DataProtectionError) {
      try archive.requireReadableKeybag()
      try archive.keybag.derivationParameters().check(acceptingAtMost: limit)
    } catch {
      if archive.isEncrypted || !error.isOfKeybag { throw KeyhaulError(error) }
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

  private static func fittingKey(
    of archive: BackupArchive, password: borrowing Secret?, acceptingAtMost limit: Int,
    remembering keys: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag.MatchedPasscodeKey {
    try archive.requireReadableKeybag()
    guard archive.isEncrypted || isGiven(password) else {
      return try keyWithoutPassword(of: archive, acceptingAtMost: limit, progress: progress)
    }
    switch password {
    case .some(let password):
      do throws(DataProtectionError) {
        return try archive.keybag.matchedPasscodeKey(
          password: password, acceptingAtMost: limit, remembering: keys, progress: progress)
      } catch {
        throw archive.keybag.wrongType(for: error) ?? error
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

  /// - Throws: `.damagedKeybag` where the keybag has a password after all: nobody was asked for one that could be wrong.
  private static func keyWithoutPassword(
    of archive: BackupArchive, acceptingAtMost limit: Int, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Keybag.MatchedPasscodeKey {
    do throws(DataProtectionError) {
      return try archive.keybag.matchedPasscodeKey(password: .empty, acceptingAtMost: limit, progress: progress)
    } catch {
      guard error.code == .wrongPassword else { throw error }
      let claim =
        archive.hasFalseClaim
        ? "the files of the backup are unencrypted" : "Manifest.plist says that the backup has no password"
      throw DataProtectionError(.damagedKeybag, "\(claim), but no class key unwraps without one")
    }
  }
}

extension BackupArchive {
  /// Derives the key of the backup's password: the second of the three steps to its items, and the slow one. The
  /// password's other Unicode forms are tried if it does not fit as given.
  ///
  /// - Parameters:
  ///   - password: The backup's password; `nil` if it has none.
  ///   - limit: The largest number of PBKDF2 iterations to accept, checked before any work.
  ///   - progress: Called with the progress of the derivation, which ends if it returns `false`.
  /// - Returns: The key, shared by reference and overwritten once nothing refers to it.
  /// - Throws: Category `wrongPassword` if a password is missing, or none of the class keys unwraps; `refused` over the
  ///   limit, and if a password is given for a backup without one; `damaged` if files are encrypted and the keybag is
  ///   damaged. If the files are unencrypted, `ArchiveKey.keybagFault` has the damage.
  public func unlock(
    password: borrowing Secret?, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(KeyhaulError) -> ArchiveKey {
    try unlock(password: password, acceptingAtMost: limit, remembering: nil, progress: progress)
  }

  /// Derives the key like the method above, unless it was derived before.
  ///
  /// - Parameter keys: The keys that were derived from this password before; a new one is added.
  package func unlock(
    password: borrowing Secret?, acceptingAtMost limit: Int = IterationLimit.standard,
    remembering keys: DerivedKeyCache?,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(KeyhaulError) -> ArchiveKey {
    try ArchiveKey(of: self, password: password, acceptingAtMost: limit, remembering: keys, progress: progress)
  }
}

extension DataProtectionError {
  /// Whether it is the keybag that is not what was written.
  fileprivate var isOfKeybag: Bool { code == .damagedKeybag || code == .missingField }
}

extension Keybag {
  /// What keeps a password from opening a bag of another type than a backup's; `nil` for a backup's, and for an error that
  /// does not come of it.
  fileprivate func wrongType(for error: DataProtectionError) -> DataProtectionError? {
    guard let type, type != .backup, error.code == .wrongPassword || error.code == .damagedKeybag else { return nil }
    return DataProtectionError(
      .unsupported,
      "the keybag's type is \(type.rawValue) (\(type.words)), but a backup keybag's is \(BagType.backup.rawValue); "
        + error.reason)
  }
}

extension BackupArchive {
  /// - Throws: `.damagedKeybag` where there is none that can be read.
  fileprivate func requireReadableKeybag() throws(DataProtectionError) {
    if let fault = manifest.keybagFault { throw DataProtectionError(.damagedKeybag, fault) }
  }
}

/// What the items of an archive prove about the hardware key that was tried on them, class by class.
///
/// The hardware's layer has no check value, and each class key has a layer of its own. An item that opens proves the key
/// of its class and of no other: whoever knows a device's hardware key can wrap the key of one class with it, so that the
/// items of this class alone open there.
public struct HardwareProof: Sendable, Hashable {
  /// Classes of which at least one item's key came off.
  package private(set) var proven: Set<KeyClass> = []
  /// Classes that went through the hardware key, and of whose items no key came off: they are of other hardware, or
  /// changed. Nothing tells which.
  package private(set) var unproven: Set<KeyClass> = []

  /// Of no item at all.
  package init() {}

  /// Collects the proof of items to which a hardware key, or none, was applied.
  package init(_ items: some Sequence<ArchivedItem>) { take(items) }

  /// Adds the proof of further items.
  mutating func take(_ items: some Sequence<ArchivedItem>) {
    for item in items {
      guard let keyClass = item.keyClass, let own = item.provesHardware else { continue }
      if own { proven.insert(keyClass) } else { unproven.insert(keyClass) }
    }
    unproven.subtract(proven)
  }

  /// Whether the key belongs to the device that made the archive: `true` if every class with items that need the
  /// hardware key is proven, `false` if no such class is; `nil` if there are no such classes, or only some are proven.
  package var isSameDevice: Bool? {
    if isDivided { return nil }
    return proven.isEmpty ? (unproven.isEmpty ? nil : false) : true
  }

  /// Whether some classes are proven and others are not. No device writes such a backup, unless bytes of it were changed.
  package var isDivided: Bool { !proven.isEmpty && !unproven.isEmpty }

  /// Whether the key of the item's class is proven to be right.
  package func proves(_ item: ArchivedItem) -> Bool { item.keyClass.map(proven.contains) ?? false }
}

/// What an archive says of the hardware key that it was opened with, for whoever is about to wrap keys with it: what is
/// wrapped with a wrong one, no device opens again.
package enum HardwareVerdict: Sendable, Hashable {
  /// At least one item opens with it, and none of another class speaks against it.
  case proven
  /// It opens items of some classes, and none of these.
  case divided(unproven: [KeyClass])
  /// None of this many items that need it opens with it.
  case foreign(itemCount: Int)
  /// No item needs it, so none shows anything.
  case unshown
  /// There are no items that could be lost.
  case noItems

  /// Of the items that it was tried on.
  init(_ items: [ArchivedItem]) {
    let (proof, answers) = (HardwareProof(items), items.compactMap(\.provesHardware))
    if proof.isDivided {
      self = .divided(unproven: proof.unproven.sorted())
    } else if answers.contains(true) {
      self = .proven
    } else if items.isEmpty {
      self = .noItems
    } else {
      self = answers.isEmpty ? .unshown : .foreign(itemCount: answers.count)
    }
  }
}

extension OpenedArchive {
  /// What the items say of the hardware key that was tried on them.
  package var hardwareVerdict: HardwareVerdict { HardwareVerdict(items) }
}
