package import Basics
package import KeychainCrypto
import KeychainFormats

/// Runs the checks of a `BackupVerification`.
struct BackupVerifier {
  let archive: BackupArchive
  /// The result, to which each check adds its part.
  var verification: BackupVerification
  /// The check of the seal, or `nil` if the backup has no readable seal.
  var sealVerifier: SealVerifier?
  /// Whether all payloads were compared with the seal.
  var arePayloadsComparedWithSeal = false
  /// The number of payloads that are read concurrently.
  var jobs: Int

  static let cancelled = KeyhaulError(.interrupted, "it was stopped")

  /// Checks the property lists that were read when the backup was opened. A faulty manifest was detected then.
  mutating func checkStructure() {
    var readableNames = archive.isManifestMissing ? [] : ["Manifest.plist"]
    if archive.status != nil { readableNames.append("Status.plist") }
    for anomaly in archive.anomalies {
      switch anomaly {
      case .unfinished(let state):
        verification.add(.init(.structure, .unfinished, file: "Status.plist", ToleratedAnomaly.unfinishedClause(state)))
      // Reported as faults below.
      case .propertyListUnreadable: continue
      case .encryptionClaimed:
        verification.add(.init(.structure, .falseClaim, file: "Manifest.plist", anomaly.description))
      case .statusMissing:
        verification.statesSnapshotState = false
        verification.notes.append(anomaly.description)
      case .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .listJournalRead, .sizeDiffers,
        .digestDiffers:
        verification.notes.append(anomaly.description)
      case .finding(let finding): record(finding, in: .structure)
      }
    }
    verification.findings += archive.findings.filter { !verification.findings.contains($0) }
    for propertyList in archive.unreadablePropertyLists {
      verification.add(
        .init(.structure, .structureDamaged, file: propertyList.name, propertyList.reason), because: propertyList.error)
    }
    let readable = readableNames.isEmpty ? "" : "\(readableNames.joined(separator: " and ")) readable, "
    verification.conclude(.structure, "\(readable)\(archive.layout.listName) present")
  }

  /// Adds a finding as a fault of its check, or as a note if nothing is lost and a restore is possible.
  mutating func record(_ finding: BackupFinding, in check: BackupVerification.CheckID) {
    guard !verification.findings.contains(finding) else { return }
    verification.findings.append(finding)
    switch finding.kind {
    // The backup may still be complete.
    case .stateMissing:
      verification.statesSnapshotState = false
      verification.notes.append(finding.description)
    // Reported by the checks of the keybag, the keychain, and the seal.
    case .keybagUnusable, .classKeysDamaged, .keybagMismatch, .keychainMissing, .keychainDamaged, .sealBroken: break
    case .keychainInXML, .keychainKeysUnknown, .decryptedCopy, .listNamesNotUTF8, .payloadsRenamed:
      verification.notes.append(finding.description)
    case .falseClaim: verification.add(.init(check, .falseClaim, file: finding.file, finding.fact))
    case .passwordDenied: verification.add(.init(check, .passwordDenied, file: finding.file, finding.fact))
    case .wrapsUnusual: verification.add(.init(.keybag, .wrapsUnusual, file: finding.file, finding.fact))
    case .manifestUnreadable, .manifestMissing, .versionMissing, .propertyListUnreadable:
      verification.add(.init(check, .structureDamaged, file: finding.file, finding.fact))
    case .listTrailingBytes, .listJournalUnread, .listDamaged, .listUnreadable:
      verification.add(.init(check, .databaseDamaged, file: finding.file, finding.fact))
    }
  }

  // MARK: With keys

  /// Runs the checks that require keys, if keys are available.
  mutating func check(
    with classKeys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    switch classKeys {
    case .none: return
    case .some(let keys):
      let archive = archive
      let list = try openList { () throws(KeyhaulError) in try archive.fileList(with: keys) }
      let listing = try checkFiles(ifOpen: list, with: classKeys, progress: progress)
      checkKeybag(with: keys)
      checkDatabase(list, listing)
      let keychain = try checkKeychain(in: list, with: keys)
      try checkItems(of: keychain, with: keys)
      try checkSeal(with: classKeys, progress: progress)
    }
  }

  /// Opens the file list.
  ///
  /// - Throws: A system error, which is not a fault of the backup.
  private mutating func openList(
    _ open: () throws(KeyhaulError) -> FileList
  ) throws(KeyhaulError) -> FileList? {
    do throws(KeyhaulError) {
      return try open()
    } catch {
      guard error.category != .failed else { throw error }
      verification.findings.append(.listUnreadable(name: archive.layout.listName, reason: error.reason))
      verification.add(.init(.database, .databaseDamaged, file: archive.layout.listName, error.reason), because: error)
      return nil
    }
  }

  /// Checks the files if the list could be opened, or skips the check.
  private mutating func checkFiles(
    ifOpen list: FileList?, with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) -> FileList.Listing? {
    if let list { return try checkFiles(of: list, with: keys, progress: progress) }
    verification.skip(.files, reason: "the manifest cannot be read")
    return nil
  }

  private mutating func checkKeybag(with keys: ClassKeys) {
    if let fault = archive.manifest.keybagFault {
      addKeybagFault(fault)
    } else if let damage = keys.damageReport {
      verification.add(.init(.keybag, .keybagDamaged, file: "Manifest.plist", damage))
    } else {
      checkKeybagFields()
    }
    checkDeviceKeyWraps()
    verification.conclude(.keybag, keys.summary)
  }

  /// Checks that the class keys are wrapped with the device key. Their flags show this, so no key is needed.
  private mutating func checkDeviceKeyWraps() {
    guard let unbound = archive.unboundClassKeys else { return }
    if unbound.blocksRestore { verification.isHostile = true }
    verification.add(
      .init(.keybag, .hardwareLayerMissing, file: "Manifest.plist", "\(unbound.summary): \(unbound.consequence)"))
  }

  /// Checks the file list. If it could not be read completely, its fault was already reported.
  private mutating func checkDatabase(_ list: FileList?, _ listing: FileList.Listing?) {
    guard let list, let listing else {
      verification.conclude(.database, "\(archive.layout.listName) cannot be read")
      return
    }
    for anomaly in list.anomalies {
      if let finding = anomaly.finding {
        record(finding, in: .database)
      } else {
        verification.notes.append(anomaly.description)
      }
    }
    if listing.inconsistentRowCount > 0 {
      verification.isHostile = true
      verification.add(
        .init(
          .database, .recordMalformed, file: archive.layout.listName,
          "\(HumanReadable.count(listing.inconsistentRowCount, "row")) whose path leaves its domain or whose identifier is not the hash of domain and path"
        ))
    }
    let journals = archive.anomalies.filter { if case .listJournalRead = $0 { true } else { false } }
    verification.conclude(
      .database, ([archive.layout.checkName] + journals.map(\.description)).joined(separator: "; "))
  }

  // MARK: Without keys

  /// Runs the checks without keys.
  ///
  /// - Parameter keybagFault: The reason why a given password could not be tried.
  mutating func checkWithoutKeys(
    keybagFault: String?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    let reason = keybagFault == nil ? "needs the password" : "needs the keybag's keys"
    let archive = archive
    let list = isListPlaintext ? try openList { () throws(KeyhaulError) in try archive.fileList() } : nil
    var listing: FileList.Listing?
    if list == nil, archive.isEncrypted {
      try checkStoredSizes()
    } else {
      listing = try checkFiles(ifOpen: list, with: nil, progress: progress)
    }
    checkKeybagWithoutKeys(keybagFault)
    if isListPlaintext { checkDatabase(list, listing) } else { checkEncryptedListSize(orSkipBecause: reason) }
    try checkPlaintextKeychain(orSkipBecause: reason)
    verification.skip(.items, reason: reason)
    try checkSeal(with: nil, progress: progress)
  }

  /// Whether the file list is unencrypted. In old backups, the list is always unencrypted and contains digests of the
  /// stored bytes.
  private var isListPlaintext: Bool { !archive.isListEncrypted }

  /// Checks the size of an encrypted file list, which must be a multiple of the block size.
  private mutating func checkEncryptedListSize(orSkipBecause reason: String) {
    let blockSize = RandomAccessDecryptor.blockByteCount
    if let byteCount = archive.listByteCount, byteCount == 0 || !byteCount.isMultiple(of: blockSize) {
      let fault =
        "an encrypted file consists of blocks of \(blockSize) bytes, but this one has "
        + HumanReadable.count(byteCount, "byte")
      verification.add(
        .init(.database, .databaseDamaged, file: archive.layout.listName, byteCount: byteCount, fault))
      verification.conclude(.database, "\(archive.layout.listName) cannot be read")
    } else {
      verification.skip(.database, reason: reason)
    }
  }

  private mutating func addKeybagFault(_ fault: String) {
    let finding = BackupFinding.keybagUnusable(reason: fault)
    // A missing manifest was already reported.
    if !verification.findings.contains(where: { $0 == finding || $0 == .manifestMissing }) {
      verification.findings.append(finding)
    }
    verification.add(.init(.keybag, .keybagDamaged, file: finding.file, fault))
  }

  /// Checks the keybag.
  ///
  /// - Parameter fault: The reason why a given password could not be tried.
  private mutating func checkKeybagWithoutKeys(_ fault: String?) {
    if let fault = fault ?? archive.manifest.keybagFault {
      addKeybagFault(fault)
      verification.conclude(.keybag, fault)
      return
    }
    checkDeviceKeyWraps()
    let fault = checkKeybagFields()
    verification.conclude(
      .keybag, fault ?? "\(HumanReadable.count(archive.keybag.classKeys.count, "class key")), none of them checked")
  }

  /// Checks the keybag for faults that are visible without a key: missing or duplicate fields, and wrong lengths.
  ///
  /// - Returns: The fault, or `nil` if there is none.
  @discardableResult
  private mutating func checkKeybagFields() -> String? {
    do throws(FormatError) {
      try archive.keybag.validate()
      return nil
    } catch {
      verification.add(.init(.keybag, .keybagDamaged, file: "Manifest.plist", offset: error.offset, error.reason))
      return error.reason
    }
  }
}

extension BackupLayout {
  /// The name of the file list.
  package var listName: String {
    switch self {
    case .manifestDB: "Manifest.db"
    case .mbdb: "Manifest.mbdb"
    }
  }

  /// The result of the file list's check in reports.
  fileprivate var checkName: String {
    switch self {
    case .manifestDB: "integrity check passed, schema as expected"
    case .mbdb: "records fill it completely"
    }
  }
}

extension BackupVerification {
  /// Receives the number of bytes that were read, and the number of all stored bytes. Returns `false` to stop.
  public typealias Progress = (_ done: Int64, _ total: Int64) -> Bool

  /// Verifies a backup: all files, class keys, and items that the keys can decrypt.
  ///
  /// Faults are part of the result, not errors, and do not stop further checks.
  ///
  /// - Parameters:
  ///   - archive: The backup.
  ///   - keys: The class keys of a `BackupKey`, or `nil` to run only the checks that need no keys. For a backup without
  ///     a password, these are all checks except the item check. With the source device's key, device-bound items
  ///     are checked as well.
  ///   - keybagFault: The reason why a damaged keybag could not be unlocked with the password.
  ///   - jobs: The number of payloads that are read concurrently, by default one for each core. The result does not
  ///     depend on this number.
  ///   - progress: Receives the progress of reading payloads. If it returns `false`, the verification ends with
  ///     `.interrupted`.
  /// - Throws: An error if payloads cannot be listed, the cryptography fails, or `progress` returns `false`.
  package init(
    _ archive: BackupArchive, keys: ClassKeys?, keybagFault: String? = nil, jobs: Int? = nil,
    progress: Progress = { _, _ in true }
  ) throws(KeyhaulError) {
    let isQuick =
      switch keys {
      case .none: keybagFault == nil
      case .some: false
      }
    self.init(isQuick: isQuick)
    var verifier = BackupVerifier(archive: archive, verification: self, jobs: jobs ?? ParallelMap.standardJobCount)
    verifier.checkStructure()
    verifier.verification.hasSeal = archive.seal != nil
    try verifier.beginSeal()
    switch keys {
    case .none: try verifier.checkWithoutKeys(keybagFault: keybagFault, progress: progress)
    case .some: try verifier.check(with: keys, progress: progress)
    }
    self = verifier.verification
  }

  /// Creates the result for a backup that is too damaged to be opened.
  package init(unopened error: KeyhaulError, isQuick: Bool) {
    self.init(isQuick: isQuick)
    add(Fault(.structure, .structureDamaged, error.reason))
    conclude(.structure, error.reason)
    for id in CheckID.allCases where id != .structure { skip(id, reason: "the backup cannot be opened") }
  }
}
