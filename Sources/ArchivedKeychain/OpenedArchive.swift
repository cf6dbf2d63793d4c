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
  /// Whether a password protects it, as far as that opened its keybag.
  public let hasPassword: Bool
  /// Its items as they are sealed.
  private let index: KeychainIndex
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
    try self.init(archive, key: key, deviceKey: deviceKey, makerKey: makerKey, for: use, again: nil)
  }

  /// The same archive with the same key of its password, as other hardware opens it.
  package init(
    _ opened: OpenedArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?, for use: ArchiveUse
  ) throws(ArchivedKeychainError) {
    try self.init(opened.archive, key: key, deviceKey: deviceKey, makerKey: nil, for: use, again: opened)
  }

  private init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, deviceKey: borrowing DeviceKey?,
    makerKey: borrowing DeviceKey?, for use: ArchiveUse, again opened: OpenedArchive?
  ) throws(ArchivedKeychainError) {
    let keys = try key.classKeys(deviceKey: deviceKey)
    let list: FileList
    let notes: [ArchiveNote]
    // What was read of the keychain with the same password is not read again.
    if let opened, archive.hasKeychain, opened.hiddenKeychain == nil, opened.isReadWithPasswordAlone(keys) {
      (index, list, notes) = (opened.index, opened.fileList, opened.notes)
    } else {
      (index, list, notes) = try Self.keychain(of: archive, with: keys, keybagFault: key.keybagFault, for: use)
    }
    self.archive = archive
    items = try ArchivedItem.openAll(in: index, with: keys, knowing: opened?.items ?? [])
    hardware = HardwareProof(items)
    switch makerKey {
    case .some(let makerKey):
      knownSealed = try ArchivedItem.known(of: items, in: index, with: try key.classKeys(deviceKey: makerKey.copy()))
    case .none: knownSealed = [:]
    }
    passwordForm = key.passwordForm
    fileList = list
    contents = ArchiveContents(items)
    keybagDamage = keys.damageReport
    hasPassword = archive.isEncrypted || key.isOfPassword
    self.notes = notes
    try require(use)
  }

  /// Whether no hardware had a part in reading its list and its keychain file, as none has in what a device writes.
  private func isReadWithPasswordAlone(_ keys: borrowing ClassKeys) -> Bool {
    let file = try? fileList.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    for field in [archive.manifest.manifestKey, (try? file?.record())?.encryptionKey?.serialized()] {
      guard let field, let wrapped = try? ClassWrappedKey(parsing: field) else { continue }
      guard keys.availability(of: wrapped.keyClass) == .available else { return false }
    }
    return true
  }

  /// What of it is not as a device leaves it, and was gone around; of a large list also what was met since.
  public var findings: [ArchiveFinding] {
    let findings = notes.compactMap(\.finding)
    return findings + fileList.findings.filter { !findings.contains($0) }
  }

  /// Why nothing of its keychain can be read, though there is one; what it holds is not known then.
  public var hiddenKeychain: ArchiveFinding? { findings.first(where: \.hidesKeychain) }

  /// Refuses it for a use that one of its findings forbids.
  ///
  /// - Throws: The refusal of the first of them.
  public func require(_ use: ArchiveUse) throws(ArchivedKeychainError) {
    guard let finding = findings.first(where: { $0.forbids(use) }) else { return }
    if case .keybagMismatch(let file, let keybag) = finding { throw .keybagMismatch(file: file, keybag: keybag) }
    throw ArchivedKeychainError(finding.refusal)
  }

  /// Whether the device key that was tried is of the device that made the backup: `true` that it is, `false` that it is
  /// not, as far as the items tell (`HardwareProof.isSameDevice`).
  public var isSameDevice: Bool? { hardware.isSameDevice }

  /// Why an item does not open here; `nil` where it opens.
  public func reason(of item: ArchivedItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: hasPassword)
  }

  private static func keychain(
    of archive: BackupArchive, with keys: borrowing ClassKeys, keybagFault: String?, for use: ArchiveUse
  ) throws(ArchivedKeychainError) -> (KeychainIndex, FileList, [ArchiveNote]) {
    do throws(BackupArchiveError) {
      let list = try archive.fileList(with: keys)
      // What keeps a file from being looked up is a fault of the list.
      _ = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
      var notes = archive.notes + list.notes
      if let fault = try archive.sealBreak(with: keys) { notes.insert(.finding(.sealBroken(fault)), at: 0) }
      if let keybagFault, archive.manifest.keybagFault == nil, archive.hasKeychain {
        notes.append(.finding(.keybagUnusable(reason: keybagFault)))
      }
      do throws(BackupArchiveError) {
        let reading = try KeychainReading(of: archive, in: list, with: keys)
        notes += reading.notes.filter { !notes.contains($0) }
        if let mismatch = mismatch(of: reading.keybagUUID, archive) { notes.append(.finding(mismatch)) }
        return (reading.index, list, notes)
      } catch {
        if let finding = try ArchiveFinding(ofKeychain: error, for: use) { notes.append(.finding(finding)) }
        return (KeychainIndex(KeychainBackupFile(keybagUUID: nil, entries: [])), list, notes)
      }
    } catch {
      // The password is right by now: a class key that a file needs and that is not there was there once.
      throw ArchivedKeychainError(error.code == .keyUnavailable ? BackupArchiveError(.damaged, error.reason) : error)
    }
  }

  private static func mismatch(of named: String?, _ archive: BackupArchive) -> ArchiveFinding? {
    guard let named, let own = archive.keybag.uuidText, named != own else { return nil }
    return .keybagMismatch(file: named, keybag: own)
  }
}

extension ArchiveFinding {
  /// What an error in reading the keychain file comes to; `nil` where none was stored, and none is needed.
  ///
  /// - Throws: The error, where no device makes such a file, or the system does not give it; and for a use that cannot do
  ///   without a keychain, where none was stored.
  fileprivate init?(ofKeychain error: BackupArchiveError, for use: ArchiveUse) throws(BackupArchiveError) {
    switch error.code {
    case .noKeychain:
      switch use {
      case .reading, .exporting, .rewriting: return nil
      case .planning, .restoring: throw error
      }
    case .payloadMissing: self = .keychainMissing(reason: error.reason)
    case .damaged, .truncated, .keyUnavailable, .unsupported: self = .keychainDamaged(reason: error.reason)
    case .notFound, .notABackup, .sealedList, .falseClaim, .passwordDenied, .decryptedCopy, .notStreamable, .hostile,
      .overLimit, .unfinished, .changed, .unreadable, .unwritable, .noSpace, .streamBroken,
      .noTemporarySpace, .occupied,
      .interrupted:
      throw error
    }
  }
}
