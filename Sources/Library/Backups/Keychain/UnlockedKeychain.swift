import Basics
import KeychainCrypto
import KeychainFormats

/// A backup whose file list and keychain file are decrypted. The individual items are still encrypted.
struct UnlockedKeychain: Sendable {
  let archive: BackupArchive
  let fileList: FileList
  /// The encrypted items.
  let index: KeychainIndex
  /// Anomalies of the backup that were tolerated.
  let anomalies: [ToleratedAnomaly]
  /// A clause about damaged class keys, or `nil` if none is damaged.
  let keybagDamage: String?
  let passwordForm: PasswordNormalization
  /// Whether a password protects the keybag.
  let hasPassword: Bool

  /// Decrypts the file list and the keychain file.
  ///
  /// - Parameters:
  ///   - key: The key that is derived from the password.
  ///   - keys: The class keys, with or without a device key.
  ///   - use: The caller's next step with the backup. A finding can forbid it.
  ///   - earlier: The result of an earlier unlock of the same backup with the same password. If possible, its decrypted
  ///     files are reused.
  /// - Throws: An error of category `damaged` if the file list is unreadable, or if a finding forbids the use.
  init(
    _ archive: BackupArchive, key: BackupKey, keys: ClassKeys, for use: BackupPurpose,
    reusing earlier: UnlockedKeychain? = nil
  ) throws(KeyhaulError) {
    if let earlier, archive.hasKeychain, earlier.keychainReadFailure == nil, earlier.canReadFiles(with: keys) {
      (index, fileList, anomalies) = (earlier.index, earlier.fileList, earlier.anomalies)
    } else {
      (index, fileList, anomalies) = try Self.keychain(of: archive, with: keys, keybagFault: key.keybagFault, for: use)
    }
    self.archive = archive
    keybagDamage = keys.damageReport
    passwordForm = key.passwordForm
    hasPassword = archive.isEncrypted || key.wasGivenPassword
    try requireNoBlockingFinding(for: use)
  }

  /// Returns whether `keys` suffice for the file list and the keychain file without a device key. In backups that
  /// devices make, neither file needs a device key.
  private func canReadFiles(with keys: ClassKeys) -> Bool {
    let file = try? fileList.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    for field in [archive.manifest.manifestKey, (try? file?.record())?.encryptionKey?.serialized()] {
      guard let field, let wrapped = try? ClassWrappedKey(parsing: field) else { continue }
      guard keys.availability(of: wrapped.keyClass) == .available else { return false }
    }
    return true
  }

  /// All current findings. A large file list is read in chunks, so more findings can appear later.
  var findings: [BackupFinding] {
    let findings = anomalies.compactMap(\.finding)
    return findings + fileList.findings.filter { !findings.contains($0) }
  }

  /// The finding that makes the keychain file unreadable, or `nil` if there is none.
  var keychainReadFailure: BackupFinding? { findings.first(where: \.preventsReadingKeychain) }

  /// Checks that no finding forbids a use.
  ///
  /// - Throws: The error of the first such finding.
  func requireNoBlockingFinding(for use: BackupPurpose) throws(KeyhaulError) {
    guard let finding = findings.first(where: { $0.blocks(use) }) else { return }
    if case .keybagMismatch(let file, let keybag) = finding { throw .keybagMismatch(file: file, keybag: keybag) }
    throw finding.refusal
  }

  /// Reads the file list and the keychain file, with the anomalies of both.
  private static func keychain(
    of archive: BackupArchive, with keys: ClassKeys, keybagFault: String?, for use: BackupPurpose
  ) throws(KeyhaulError) -> (KeychainIndex, FileList, [ToleratedAnomaly]) {
    do throws(KeyhaulError) {
      let list = try archive.fileList(with: keys)
      // This look-up fails here if the list is damaged.
      _ = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
      var anomalies = archive.anomalies + list.anomalies
      if let violation = try archive.sealViolation(with: keys) {
        anomalies.insert(.finding(.sealBroken(violation)), at: 0)
      }
      if let keybagFault, archive.manifest.keybagFault == nil, archive.hasKeychain {
        anomalies.append(.finding(.keybagUnusable(reason: keybagFault)))
      }
      let index = try keychainIndex(of: archive, in: list, with: keys, for: use, &anomalies)
      return (index, list, anomalies)
    } catch {
      // The password is correct, so a missing class key was lost.
      throw error.code == .keyUnavailable ? KeyhaulError(.damaged, error.reason) : error
    }
  }

  /// Reads the keychain file, and adds its anomalies. Returns no items if the file is unreadable.
  private static func keychainIndex(
    of archive: BackupArchive, in list: FileList, with keys: ClassKeys, for use: BackupPurpose,
    _ anomalies: inout [ToleratedAnomaly]
  ) throws(KeyhaulError) -> KeychainIndex {
    do throws(KeyhaulError) {
      let reading = try KeychainReading(of: archive, in: list, with: keys)
      for anomaly in reading.anomalies where !anomalies.contains(anomaly) { anomalies.append(anomaly) }
      if let mismatch = keybagMismatch(reading.keybagUUID, archive) { anomalies.append(.finding(mismatch)) }
      return reading.index
    } catch {
      if let finding = try BackupFinding(ofKeychain: error, for: use) { anomalies.append(.finding(finding)) }
      return KeychainIndex(KeychainBackupFile(keybagUUID: nil, entries: []))
    }
  }

  /// Returns a finding if the keychain file names a keybag that is not the backup's, otherwise `nil`.
  private static func keybagMismatch(_ fileUUID: String?, _ archive: BackupArchive) -> BackupFinding? {
    guard let fileUUID, let keybagUUID = archive.keybag.uuidText, fileUUID != keybagUUID else { return nil }
    return .keybagMismatch(file: fileUUID, keybag: keybagUUID)
  }
}

extension BackupFinding {
  /// Creates the finding for a failed read of the keychain file, or returns `nil` if the backup has no such file and
  /// `use` requires none.
  ///
  /// - Throws: The given error if no device creates such a file, the system cannot read it, or the keychain is missing
  ///   and `use` requires one.
  fileprivate init?(ofKeychain error: KeyhaulError, for use: BackupPurpose) throws(KeyhaulError) {
    switch error.code {
    case .noKeychain:
      switch use {
      case .reading, .exporting, .rewriting, .copying: return nil
      case .planning, .restoring: throw error
      }
    case .payloadMissing: self = .keychainMissing(reason: error.reason)
    case .damaged, .truncated, .keyUnavailable, .unsupported: self = .keychainDamaged(reason: error.reason)
    default: throw error
    }
  }
}
