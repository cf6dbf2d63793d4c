package import Basics
package import KeychainCrypto
import KeychainFormats

/// Makes the checks of a `BackupVerification` one after the other.
struct BackupVerifier {
  let archive: BackupArchive
  var findings: BackupVerification
  /// `nil` for a backup without a seal that can be read.
  var sealCheck: SealCheck?
  var arePayloadsSealChecked = false
  /// How many payloads are read at once.
  var jobs: Int

  static let cancelled = KeyhaulError(.interrupted, "it was stopped")

  /// The property lists were read when the backup was opened; one with a fault in its manifest has not come so far.
  mutating func checkStructure() {
    var names = archive.isManifestMissing ? [] : ["Manifest.plist"]
    if archive.status != nil { names.append("Status.plist") }
    for note in archive.notes {
      switch note {
      case .unfinished: findings.add(.init(.structure, .unfinished, file: "Status.plist", note.description))
      // Faults, below.
      case .propertyListUnreadable: continue
      case .encryptionClaimed:
        findings.add(.init(.structure, .falseClaim, file: "Manifest.plist", note.description))
      case .statusMissing:
        findings.statesSnapshotState = false
        findings.notes.append(note.description)
      case .encryptionNotStated, .databaseUnpadded, .databaseInWriteAheadMode, .listJournalRead, .sizeDiffers,
        .digestDiffers:
        findings.notes.append(note.description)
      case .finding(let finding): take(finding, in: .structure)
      }
    }
    findings.found += archive.findings.filter { !findings.found.contains($0) }
    for propertyList in archive.unreadablePropertyLists {
      findings.add(
        .init(.structure, .structureDamaged, file: propertyList.name, propertyList.reason), because: propertyList.error)
    }
    let readable = names.isEmpty ? "" : "\(names.joined(separator: " and ")) readable, "
    findings.conclude(.structure, "\(readable)\(archive.layout.listName) present")
  }

  /// What was gone around is a fault of the check that it belongs to, or a note where nothing is lost by it and a restore
  /// takes it.
  mutating func take(_ finding: ArchiveFinding, in check: BackupVerification.CheckID) {
    guard !findings.found.contains(finding) else { return }
    findings.found.append(finding)
    switch finding.kind {
    // Nothing says that anything is missing.
    case .stateMissing:
      findings.statesSnapshotState = false
      findings.notes.append(finding.description)
    // Entered by the check of the keybag, by that of the keychain, and by that of the seal.
    case .keybagUnusable, .classKeysDamaged, .keybagMismatch, .keychainMissing, .keychainDamaged, .sealBroken: break
    case .keychainInXML, .keychainKeysUnknown, .decryptedCopy, .listNamesNotUTF8, .payloadsRenamed:
      findings.notes.append(finding.description)
    case .falseClaim: findings.add(.init(check, .falseClaim, file: finding.place, finding.fact))
    case .passwordDenied: findings.add(.init(check, .passwordDenied, file: finding.place, finding.fact))
    case .wrapsUnusual: findings.add(.init(.keybag, .wrapsUnusual, file: finding.place, finding.fact))
    case .manifestUnreadable, .manifestMissing, .versionMissing, .propertyListUnreadable:
      findings.add(.init(check, .structureDamaged, file: finding.place, finding.fact))
    case .listTrailingBytes, .listJournalUnread, .listDamaged, .listUnreadable:
      findings.add(.init(check, .databaseDamaged, file: finding.place, finding.fact))
    }
  }

  // MARK: With the password

  /// Makes every check. Without keys there is nothing that this could do.
  mutating func check(
    with unlocked: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    switch unlocked {
    case .none: return
    case .some(let keys):
      let archive = archive
      let list = try openList { () throws(KeyhaulError) in try archive.fileList(with: keys) }
      let listing = try checkFiles(ifOpen: list, with: unlocked, progress: progress)
      checkKeybag(with: keys)
      checkDatabase(list, listing)
      let file = try checkKeychain(in: list, with: keys)
      try checkItems(of: file, with: keys)
      try checkSeal(with: unlocked, progress: progress)
    }
  }

  /// - Throws: What the system did not give, which is no fault of the backup.
  private mutating func openList(
    _ open: () throws(KeyhaulError) -> FileList
  ) throws(KeyhaulError) -> FileList? {
    do throws(KeyhaulError) {
      return try open()
    } catch {
      guard error.category != .failed else { throw error }
      findings.found.append(.listUnreadable(name: archive.layout.listName, reason: error.reason))
      findings.add(.init(.database, .databaseDamaged, file: archive.layout.listName, error.reason), because: error)
      return nil
    }
  }

  private mutating func checkFiles(
    ifOpen list: FileList?, with keys: ClassKeys?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) -> FileList.Listing? {
    if let list { return try checkFiles(of: list, with: keys, progress: progress) }
    findings.leaveOut(.files, "the manifest cannot be read")
    return nil
  }

  private mutating func checkKeybag(with keys: ClassKeys) {
    if let fault = archive.manifest.keybagFault {
      addKeybagFault(fault)
    } else if let damage = keys.damageReport {
      findings.add(.init(.keybag, .keybagDamaged, file: "Manifest.plist", damage))
    } else {
      checkRecords()
    }
    checkHardwareLayers()
    findings.conclude(.keybag, keys.summary)
  }

  /// What WRAP says needs no key.
  private mutating func checkHardwareLayers() {
    guard let unbound = archive.unboundKeychain else { return }
    if unbound.isRefused { findings.isHostile = true }
    findings.add(
      .init(.keybag, .hardwareLayerMissing, file: "Manifest.plist", "\(unbound.fact): \(unbound.meaning)"))
  }

  /// What was not read to its end has its fault already.
  private mutating func checkDatabase(_ list: FileList?, _ listing: FileList.Listing?) {
    guard let list, let listing else {
      findings.conclude(.database, "\(archive.layout.listName) cannot be read")
      return
    }
    for note in list.notes {
      if let finding = note.finding { take(finding, in: .database) } else { findings.notes.append(note.description) }
    }
    if listing.unreadableRowCount > 0 {
      findings.isHostile = true
      findings.add(
        .init(
          .database, .recordMalformed, file: archive.layout.listName,
          "\(HumanReadable.count(listing.unreadableRowCount, "row")) whose path leaves its domain or whose identifier is not the hash of domain and path"
        ))
    }
    let journals = archive.notes.filter { if case .listJournalRead = $0 { true } else { false } }
    findings.conclude(
      .database, ([archive.layout.checkName] + journals.map(\.description)).joined(separator: "; "))
  }

  // MARK: Without it

  /// - Parameter keybagFault: Why the password could not be tried, where it was given.
  mutating func checkWithoutKeys(
    keybagFault: String?, progress: BackupVerification.Progress
  ) throws(KeyhaulError) {
    let reason = keybagFault == nil ? "needs the password" : "needs the keybag's keys"
    let archive = archive
    let list = isListInClear ? try openList { () throws(KeyhaulError) in try archive.fileList() } : nil
    var listing: FileList.Listing?
    if list == nil, archive.isEncrypted {
      try checkStoredSizes()
    } else {
      listing = try checkFiles(ifOpen: list, with: nil, progress: progress)
    }
    checkKeybagRecords(keybagFault)
    if isListInClear { checkDatabase(list, listing) } else { checkSealedList(reason) }
    try checkKeychainInClear(reason)
    findings.leaveOut(.items, reason)
    try checkSeal(with: nil, progress: progress)
  }

  /// The list of old backups is never encrypted, and has a digest of what is stored of every file.
  private var isListInClear: Bool { !archive.isListEncrypted }

  /// What can be said of an encrypted list of files: like every file of such a backup it is whole blocks.
  private mutating func checkSealedList(_ reason: String) {
    if let count = archive.listByteCount, count == 0 || !count.isMultiple(of: 16) {
      let fact =
        "an encrypted file consists of blocks of 16 bytes, but this one has \(HumanReadable.count(count, "byte"))"
      findings.add(
        .init(.database, .databaseDamaged, file: archive.layout.listName, byteCount: count, fact))
      findings.conclude(.database, "\(archive.layout.listName) cannot be read")
    } else {
      findings.leaveOut(.database, reason)
    }
  }

  private mutating func addKeybagFault(_ fault: String) {
    let finding = ArchiveFinding.keybagUnusable(reason: fault)
    // A missing manifest says so already.
    if !findings.found.contains(where: { $0 == finding || $0 == .manifestMissing }) { findings.found.append(finding) }
    findings.add(.init(.keybag, .keybagDamaged, file: finding.place, fault))
  }

  private mutating func checkKeybagRecords(_ fault: String?) {
    if let fault = fault ?? archive.manifest.keybagFault {
      addKeybagFault(fault)
      findings.conclude(.keybag, fault)
      return
    }
    checkHardwareLayers()
    let fault = checkRecords()
    findings.conclude(
      .keybag, fault ?? "\(HumanReadable.count(archive.keybag.classKeys.count, "class key")), none of them checked")
  }

  /// Checks the keybag for faults that can be found without a key: a field that is missing, duplicated, or of the wrong
  /// length.
  ///
  /// - Returns: The fault that was recorded; `nil` if the keybag has none.
  @discardableResult
  private mutating func checkRecords() -> String? {
    do throws(FormatError) {
      try archive.keybag.validate()
      return nil
    } catch {
      findings.add(.init(.keybag, .keybagDamaged, file: "Manifest.plist", offset: error.offset, error.reason))
      return error.reason
    }
  }
}

extension BackupLayout {
  /// The name of its list of files.
  package var listName: String {
    switch self {
    case .manifestDB: "Manifest.db"
    case .mbdb: "Manifest.mbdb"
    }
  }

  /// What was looked at in the list.
  fileprivate var checkName: String {
    switch self {
    case .manifestDB: "integrity check passed, schema as expected"
    case .mbdb: "records fill it completely"
    }
  }
}

extension BackupVerification {
  /// Is told how many of how many stored bytes were read, and answers whether to go on.
  public typealias Progress = (_ done: Int64, _ total: Int64) -> Bool

  /// Checks a backup with its keybag unlocked: every file, every class key, every item.
  ///
  /// Faults are findings, never errors: the checks go on wherever they can.
  ///
  /// - Parameters:
  ///   - archive: The backup as it was opened.
  ///   - keys: Of an `ArchiveKey`; with the hardware key of the device that made the backup its own items can be
  ///     checked too. `nil` for what can be checked without: of a backup that has no password everything but the items.
  ///   - keybagFault: Why there are no keys though there is a password: what that said of a damaged keybag.
  ///   - jobs: How many payloads are read at once; `nil` for one on each core. What is found is the same.
  ///   - progress: Told how far the reading of payloads is; where it answers `false` the whole ends with `.cancelled`.
  /// - Throws: Only where payloads cannot be listed, the cryptographic library fails, or `progress` ends it.
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
    var verifier = BackupVerifier(archive: archive, findings: self, jobs: jobs ?? ParallelMap.standardJobCount)
    verifier.checkStructure()
    verifier.findings.hasSeal = archive.seal != nil
    try verifier.beginSeal()
    switch keys {
    case .none: try verifier.checkWithoutKeys(keybagFault: keybagFault, progress: progress)
    case .some: try verifier.check(with: keys, progress: progress)
    }
    self = verifier.findings
  }

  /// What there is to say of a backup that is too damaged to be opened at all.
  package init(unopened error: KeyhaulError, isQuick: Bool) {
    self.init(isQuick: isQuick)
    add(Fault(.structure, .structureDamaged, error.reason))
    conclude(.structure, error.reason)
    for id in CheckID.allCases where id != .structure { leaveOut(id, "the backup cannot be opened") }
  }
}
