import Basics
import KeychainCrypto
import KeychainFormats

/// A backup after its keys were tried on its list of files and its keychain file: all that is known before any item is
/// opened.
struct UnlockedKeychain: Sendable {
  let archive: BackupArchive
  let fileList: FileList
  /// Its items as they are sealed.
  let index: KeychainIndex
  /// What was unusual about the archive, and tolerated.
  let notes: [ArchiveNote]
  /// What is wrong with single class keys.
  let keybagDamage: String?
  let passwordForm: PasswordForm
  /// Whether a password protects it, as far as that opened its keybag.
  let hasPassword: Bool

  /// - Parameters:
  ///   - key: What the password comes to.
  ///   - keys: The class keys that it opens, with the hardware key of a device or without one.
  ///   - use: What the archive is opened for.
  ///   - known: The same archive as it was read before with the same password.
  /// - Throws: Category `damaged` where the list of files cannot be read, and where the use forbids what was found.
  init(
    _ archive: BackupArchive, key: borrowing ArchiveKey, keys: borrowing ClassKeys, for use: ArchiveUse,
    knowing known: UnlockedKeychain? = nil
  ) throws(ArchivedKeychainError) {
    // What was read of the keychain with the same password is not read again.
    if let known, archive.hasKeychain, known.hiddenKeychain == nil, known.isReadWithPasswordAlone(keys) {
      (index, fileList, notes) = (known.index, known.fileList, known.notes)
    } else {
      (index, fileList, notes) = try Self.keychain(of: archive, with: keys, keybagFault: key.keybagFault, for: use)
    }
    self.archive = archive
    keybagDamage = keys.damageReport
    passwordForm = key.passwordForm
    hasPassword = archive.isEncrypted || key.isOfPassword
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
  var findings: [ArchiveFinding] {
    let findings = notes.compactMap(\.finding)
    return findings + fileList.findings.filter { !findings.contains($0) }
  }

  /// Why nothing of its keychain can be read, though there is one; what it holds is not known then.
  var hiddenKeychain: ArchiveFinding? { findings.first(where: \.hidesKeychain) }

  /// Refuses it for a use that one of its findings forbids.
  ///
  /// - Throws: The refusal of the first of them.
  func require(_ use: ArchiveUse) throws(ArchivedKeychainError) {
    guard let finding = findings.first(where: { $0.forbids(use) }) else { return }
    if case .keybagMismatch(let file, let keybag) = finding { throw .keybagMismatch(file: file, keybag: keybag) }
    throw ArchivedKeychainError(finding.refusal)
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
      case .reading, .exporting, .rewriting, .copying: return nil
      case .planning, .restoring: throw error
      }
    case .payloadMissing: self = .keychainMissing(reason: error.reason)
    case .damaged, .truncated, .keyUnavailable, .unsupported: self = .keychainDamaged(reason: error.reason)
    case .notFound, .notABackup, .sealedList, .falseClaim, .passwordDenied, .decryptedCopy, .notStreamable, .hostile,
      .overLimit, .unfinished, .manifestMissing, .changed, .unreadable, .unwritable, .noSpace, .streamBroken,
      .noTemporarySpace, .libraryMissing, .occupied, .interrupted:
      throw error
    }
  }
}
