import Basics
import KeychainCrypto
import KeychainFormats

/// A backup with a decrypted list of files and keychain file, before items are decrypted.
struct UnlockedKeychain: Sendable {
  let archive: BackupArchive
  let fileList: FileList
  /// The encrypted items.
  let index: KeychainIndex
  /// Anomalies of the backup that were tolerated.
  let anomalies: [BackupAnomaly]
  /// The damage of individual class keys.
  let keybagDamage: String?
  let passwordForm: PasswordNormalization
  /// Whether a password protects the keybag.
  let hasPassword: Bool

  /// Decrypts the list and the keychain file.
  ///
  /// - Parameters:
  ///   - key: The key that is derived from the password.
  ///   - keys: The class keys, with or without a device key.
  ///   - use: The purpose.
  ///   - earlier: The same backup, opened before with the same password.
  /// - Throws: An error of category `damaged` if the list of files is unreadable, or if a finding forbids the purpose.
  init(
    _ archive: BackupArchive, key: BackupKey, keys: ClassKeys, for use: BackupPurpose,
    reusing earlier: UnlockedKeychain? = nil
  ) throws(KeyhaulError) {
    // The keychain that was read with the same password is reused.
    if let earlier, archive.hasKeychain, earlier.hiddenKeychain == nil, earlier.needsNoDeviceKey(keys) {
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

  /// Returns whether the list and the keychain file can be read without a device key, as in all backups of devices.
  private func needsNoDeviceKey(_ keys: ClassKeys) -> Bool {
    let file = try? fileList.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    for field in [archive.manifest.manifestKey, (try? file?.record())?.encryptionKey?.serialized()] {
      guard let field, let wrapped = try? ClassWrappedKey(parsing: field) else { continue }
      guard keys.availability(of: wrapped.keyClass) == .available else { return false }
    }
    return true
  }

  /// The findings, including those of a large list so far.
  var findings: [BackupFinding] {
    let findings = anomalies.compactMap(\.finding)
    return findings + fileList.findings.filter { !findings.contains($0) }
  }

  /// The reason why an existing keychain is unreadable, so that its content is unknown.
  var hiddenKeychain: BackupFinding? { findings.first(where: \.preventsReadingKeychain) }

  /// Checks that no finding forbids a use.
  ///
  /// - Throws: The error of the first such finding.
  func requireNoBlockingFinding(for use: BackupPurpose) throws(KeyhaulError) {
    guard let finding = findings.first(where: { $0.blocks(use) }) else { return }
    if case .keybagMismatch(let file, let keybag) = finding { throw .keybagMismatch(file: file, keybag: keybag) }
    throw finding.refusal
  }

  /// Reads the list and the keychain file, with the anomalies of both.
  private static func keychain(
    of archive: BackupArchive, with keys: ClassKeys, keybagFault: String?, for use: BackupPurpose
  ) throws(KeyhaulError) -> (KeychainIndex, FileList, [BackupAnomaly]) {
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
    _ anomalies: inout [BackupAnomaly]
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

  /// Returns the finding if the keychain file names another keybag than the backup's, otherwise `nil`.
  private static func keybagMismatch(_ fileUUID: String?, _ archive: BackupArchive) -> BackupFinding? {
    guard let fileUUID, let keybagUUID = archive.keybag.uuidText, fileUUID != keybagUUID else { return nil }
    return .keybagMismatch(file: fileUUID, keybag: keybagUUID)
  }
}

extension BackupFinding {
  /// Creates the finding for an error of reading the keychain file, or returns `nil` if the backup has no such file and
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
