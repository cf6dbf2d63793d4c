package import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// The keychain file of a backup after parsing: the positions of its items, and anomalies.
struct KeychainReading: Sendable {
  let index: KeychainIndex
  /// The identifier of the file's keybag.
  let keybagUUID: String?
  /// The size of the plaintext in bytes.
  let byteCount: Int
  /// The anomalies of the backup, its list, and the file.
  let anomalies: [BackupAnomaly]

  /// Reads the file. A large regular file is never completely in memory.
  ///
  /// - Parameters:
  ///   - list: The backup's list of files.
  ///   - keys: The class keys of its keybag.
  /// - Throws: The errors of `keychainFile(in:with:)`, or `.unreadable` if the private copy cannot be read.
  init(of archive: BackupArchive, in list: FileList, with keys: ClassKeys) throws(KeyhaulError) {
    let decryptor = try Self.decryptor(of: archive, list, with: keys)
    if let decryptor, let reading = try Self(indexing: decryptor, of: archive, list) {
      self = reading
      return
    }
    let payload = try archive.keychainFile(in: list, with: keys)
    // In an XML file, the data of items is encoded in Base64, so it cannot be read by its position.
    if let decryptor, !payload.file.isXML {
      index = KeychainIndex(payload.file.entries.map { .init($0, in: []) }, in: decryptor)
    } else {
      index = KeychainIndex(payload.file)
    }
    keybagUUID = payload.file.keybagUUID
    byteCount = payload.bytes.count
    anomalies = payload.anomalies
  }

  /// Returns the decryptor of the file in the private copy, or `nil` if the file is in memory anyway.
  private static func decryptor(
    of archive: BackupArchive, _ list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> RandomAccessDecryptor? {
    guard let stored = archive.storedLargeKeychain else { return nil }
    return RandomAccessDecryptor(
      of: stored, key: try archive.keychainKey(in: list, with: keys), called: "the keychain file")
  }

  /// Finds the positions of the items in the private copy, page by page.
  ///
  /// - Returns: The result, or `nil` if there is an anomaly, which reading the complete file reports.
  private init?(
    indexing decryptor: RandomAccessDecryptor, of archive: BackupArchive, _ list: FileList
  ) throws(KeyhaulError) {
    let record = try archive.keychainRecord(in: list)
    let reader = try decryptor.reader()
    guard let byteCount = try Self.plainByteCount(reader), record.size == Int64(byteCount) else { return nil }
    if let digest = record.digest, try reader.stored.sha1() != digest { return nil }
    guard !XMLPlist.isXML(try reader.bytes(0..<min(64, byteCount))) else { return nil }

    var failure: KeyhaulError?
    let pages = PagedBytes(count: byteCount) { offset, page in
      do throws(KeyhaulError) {
        try reader.read(at: offset, into: page)
        return true
      } catch {
        failure = error
        return false
      }
    }
    let file = try? KeychainBackupFile(indexing: pages)
    if let failure { throw failure }
    guard let file, file.ignoredKeys.isEmpty else { return nil }
    index = KeychainIndex(file.entries, in: decryptor)
    keybagUUID = file.keybagUUID
    self.byteCount = byteCount
    anomalies = archive.anomalies + list.anomalies
  }

  /// Returns the size of the plaintext, or `nil` if the padding is invalid.
  private static func plainByteCount(_ reader: RandomAccessDecryptor.Reader) throws(KeyhaulError) -> Int? {
    let count = reader.stored.byteCount
    guard reader.isEncrypted else { return count }
    guard count > 0, count.isMultiple(of: RandomAccessDecryptor.blockByteCount) else { return nil }
    return try reader.paddingByteCount(endingAt: count).map { count - $0 }
  }
}

/// The items of a keychain file. For a large file, only their positions are in memory, and the items are read from the
/// private copy and decrypted in portions.
struct KeychainIndex: Sendable {
  private let contents: Contents

  private enum Contents {
    case loaded([KeychainBackupFile.Entry])
    /// Entries without the bytes at their positions.
    case deferred([KeychainBackupFile.Entry], RandomAccessDecryptor)
  }

  /// Creates the index of a file in memory.
  init(_ file: KeychainBackupFile) { contents = .loaded(file.entries) }

  /// Creates the index of items at known positions in the plaintext.
  init(_ entries: [KeychainBackupFile.Entry], in decryptor: RandomAccessDecryptor) {
    contents = .deferred(entries, decryptor)
  }

  var count: Int {
    switch contents {
    case .loaded(let entries), .deferred(let entries, _): entries.count
    }
  }

  /// Returns a range of items with their data.
  ///
  /// - Throws: `.unreadable` if the private copy cannot be read.
  func entries(_ positions: Range<Int>) throws(KeyhaulError) -> [KeychainBackupFile.Entry] {
    switch contents {
    case .loaded(let entries): return Array(entries[positions])
    case .deferred(let entries, let decryptor):
      return try Self.entriesWithData(Array(entries[positions]), readBy: try decryptor.reader())
    }
  }

  /// The maximum number of bytes between items that are read together.
  private static let maximumGapByteCount = 1 << 16

  /// Reads the data of entries. Items are usually adjacent and read together. Scattered items are read separately to
  /// save memory.
  private static func entriesWithData(
    _ entries: [KeychainBackupFile.Entry], readBy reader: RandomAccessDecryptor.Reader
  ) throws(KeyhaulError) -> [KeychainBackupFile.Entry] {
    let ranges = entries.flatMap(\.ranges)
    let byteCount = ranges.reduce(0) { $0 + $1.count }
    if let start = ranges.map(\.lowerBound).min(), let end = ranges.map(\.upperBound).max(), start < end,
      end - start <= 2 * byteCount + maximumGapByteCount
    {
      let bytes = try reader.bytes(start..<end)
      return entries.map { .init($0, in: bytes, beginningAt: start) }
    }
    var result: [KeychainBackupFile.Entry] = []
    for entry in entries {
      var parts: [[UInt8]] = []
      for range in entry.ranges { parts.append(try reader.bytes(range)) }
      result.append(.init(entry, of: parts))
    }
    return result
  }
}

/// A backup with its keys, like `UnlockedBackup`, but without items in memory. They are decrypted in portions.
package struct BackupItemReader: Sendable {
  private let keychain: UnlockedKeychain
  let keys: ClassKeys
  /// The evidence from the items about the device key. Empty if none was used, or if no item needs one.
  package let hardware: DeviceKeyEvidence

  fileprivate init(
    _ archive: BackupArchive, key: BackupKey, deviceKey: DeviceKey?, for use: BackupPurpose
  ) throws(KeyhaulError) {
    keys = try key.classKeys(deviceKey: deviceKey)
    keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use)
    hardware = try Self.deviceKeyEvidence(of: keychain.index, with: keys)
  }

  private static func deviceKeyEvidence(
    of file: KeychainIndex, with keys: ClassKeys
  ) throws(KeyhaulError) -> DeviceKeyEvidence {
    var evidence = DeviceKeyEvidence()
    guard keys.classes.contains(where: { keys.availability(of: $0) == .availableThroughDevice }) else {
      return evidence
    }
    try BackupItem.openPortions(of: file, with: keys, only: .availableThroughDevice) { evidence.add($0) }
    return evidence
  }

  /// The damage of individual class keys.
  package var keybagDamage: String? { keychain.keybagDamage }
  /// Anomalies of the backup that were tolerated.
  package var anomalies: [BackupAnomaly] { keychain.anomalies }
  /// The backup's manifest.
  var fileList: FileList { keychain.fileList }

  /// Decrypts the items in the backup's order and in portions, which are then released.
  ///
  /// - Parameters:
  ///   - translate: Converts an error of the backup to the caller's type.
  ///   - body: Receives a portion. Its error stops the iteration.
  /// - Throws: The errors of `body`, or a converted error of the backup.
  package func forEachPortion<Failure: Error>(
    translating translate: (KeyhaulError) -> Failure, _ body: ([BackupItem]) throws(Failure) -> Void
  ) throws(Failure) {
    var failure: Failure?
    func shouldContinue() -> Bool { failure == nil }
    do throws(KeyhaulError) {
      try BackupItem.openPortions(of: keychain.index, with: keys, shouldContinue: shouldContinue) { items in
        do throws(Failure) { try body(items) } catch { failure = error }
      }
    } catch {
      throw failure ?? translate(error)
    }
    if let failure { throw failure }
  }

  /// Returns the reason why an item cannot be decrypted, or `nil` if it can.
  package func reason(of item: BackupItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: keychain.hasPassword)
  }
}

extension BackupArchive {
  /// Prepares to decrypt the items in portions, for callers that keep none of them. Items that need a device key are
  /// tried immediately.
  ///
  /// - Parameters:
  ///   - key: The key of the backup's password, from `unlock`.
  ///   - deviceKey: The device key of the possible source device.
  ///   - use: The purpose, as for `open(with:)`.
  /// - Throws: The errors of `open(with:)`.
  package func reader(
    with key: BackupKey, deviceKey: DeviceKey? = nil, for use: BackupPurpose
  ) throws(KeyhaulError) -> BackupItemReader {
    try BackupItemReader(self, key: key, deviceKey: deviceKey, for: use)
  }
}

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
