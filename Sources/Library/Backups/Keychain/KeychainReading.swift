package import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

/// A backup's keychain file after it was read: where its items are, and what of it was unusual.
struct KeychainReading: Sendable {
  let index: KeychainIndex
  /// The keybag that it names.
  let keybagUUID: String?
  /// The length of the plain file, in bytes.
  let byteCount: Int
  /// Of the archive, its list and the file.
  let notes: [ArchiveNote]

  /// Reads the file. A large one that is as devices write it is held at no time.
  ///
  /// - Parameters:
  ///   - list: The archive's list of files.
  ///   - keys: Of its keybag.
  /// - Throws: As `keychainFile(in:with:)`, and `.unreadable` where the system does not give the private copy.
  init(of archive: BackupArchive, in list: FileList, with keys: ClassKeys) throws(KeyhaulError) {
    let sections = try Self.sections(of: archive, list, with: keys)
    if let sections, let reading = try Self(placedIn: sections, of: archive, list) {
      self = reading
      return
    }
    let payload = try archive.keychainFile(in: list, with: keys)
    // What was written in XML has no bytes of its own in the file.
    if let sections, !payload.file.isXML {
      index = KeychainIndex(payload.file.entries.map { .init($0, in: []) }, in: sections)
    } else {
      index = KeychainIndex(payload.file)
    }
    keybagUUID = payload.file.keybagUUID
    byteCount = payload.bytes.count
    notes = payload.notes
  }

  /// The file in the archive's private copy; `nil` if it is in memory anyway.
  private static func sections(
    of archive: BackupArchive, _ list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> StoredSections? {
    guard let stored = archive.storedLargeKeychain else { return nil }
    return StoredSections(of: stored, key: try archive.keychainKey(in: list, with: keys), called: "the keychain file")
  }

  /// Finds the places of the items in the archive's private copy, which is read a page at a time.
  ///
  /// - Returns: `nil` for one of which anything is to be said: whoever reads it as a whole says it.
  private init?(
    placedIn sections: StoredSections, of archive: BackupArchive, _ list: FileList
  ) throws(KeyhaulError) {
    let record = try archive.keychainRecord(in: list)
    let reader = try sections.reader()
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
    index = KeychainIndex(file.entries, in: sections)
    keybagUUID = file.keybagUUID
    self.byteCount = byteCount
    notes = archive.notes + list.notes
  }

  /// The length of the plain file; `nil` for one that does not end in its padding.
  private static func plainByteCount(_ reader: StoredSections.Reader) throws(KeyhaulError) -> Int? {
    let count = reader.stored.byteCount
    guard reader.isEncrypted else { return count }
    guard count > 0, count.isMultiple(of: StoredSections.blockByteCount) else { return nil }
    return try reader.paddingByteCount(endingAt: count).map { count - $0 }
  }
}

/// The items of a keychain file. Of a large one of a backup their places alone are held: the items are read out of the
/// archive's private copy, and decrypted, some at a time.
struct KeychainIndex: Sendable {
  private let contents: Contents

  private enum Contents {
    case held([KeychainBackupFile.Entry])
    /// Without the bytes that lie at their places.
    case placed([KeychainBackupFile.Entry], StoredSections)
  }

  /// Items of a file at hand.
  init(_ file: KeychainBackupFile) { contents = .held(file.entries) }

  /// Items of which their places in the plain file are known.
  init(_ places: [KeychainBackupFile.Entry], in sections: StoredSections) { contents = .placed(places, sections) }

  var count: Int {
    switch contents {
    case .held(let entries), .placed(let entries, _): entries.count
    }
  }

  /// Some of the items, with their bytes.
  ///
  /// - Throws: `.unreadable` where the system does not give the copy.
  func entries(_ positions: Range<Int>) throws(KeyhaulError) -> [KeychainBackupFile.Entry] {
    switch contents {
    case .held(let entries): return Array(entries[positions])
    case .placed(let places, let sections):
      let reader = try sections.reader()
      let ranges = places[positions].flatMap(\.ranges)
      let start = ranges.reduce(Int.max) { min($0, $1.lowerBound) }
      let end = ranges.reduce(0) { max($0, $1.upperBound) }
      let byteCount = ranges.reduce(0) { $0 + $1.count }
      // As they are written they lie side by side. Scattered ones are read each for itself, so that no more is held.
      if start < end, end - start <= 2 * byteCount + (1 << 16) {
        let bytes = try reader.bytes(start..<end)
        return places[positions].map { .init($0, in: bytes, beginningAt: start) }
      }
      var entries: [KeychainBackupFile.Entry] = []
      for entry in places[positions] {
        var parts: [[UInt8]] = []
        for range in entry.ranges { parts.append(try reader.bytes(range)) }
        entries.append(.init(entry, of: parts))
      }
      return entries
    }
  }
}

/// A backup after its keys were tried on it, as `OpenedArchive` is, but that no item is held: each is opened when it is
/// its turn, for whoever looks at it and goes on.
package struct ArchivedItemReader: Sendable {
  private let keychain: UnlockedKeychain
  let keys: ClassKeys
  /// What the items prove about the device key that was tried on them; nothing where none was tried, or no item needs one.
  package let hardware: HardwareProof

  fileprivate init(
    _ archive: BackupArchive, key: ArchiveKey, deviceKey: DeviceKey?, for use: ArchiveUse
  ) throws(KeyhaulError) {
    keys = try key.classKeys(deviceKey: deviceKey)
    keychain = try UnlockedKeychain(archive, key: key, keys: keys, for: use)
    hardware = try Self.proof(of: keychain.index, with: keys)
  }

  private static func proof(
    of file: KeychainIndex, with keys: ClassKeys
  ) throws(KeyhaulError) -> HardwareProof {
    var proof = HardwareProof()
    guard keys.classes.contains(where: { keys.availability(of: $0) == .availableThroughDevice }) else { return proof }
    try ArchivedItem.openPortions(of: file, with: keys, only: .availableThroughDevice) { proof.take($0) }
    return proof
  }

  /// What is wrong with single class keys.
  package var keybagDamage: String? { keychain.keybagDamage }
  /// What was unusual about the archive, and tolerated.
  package var notes: [ArchiveNote] { keychain.notes }
  /// The backup's manifest.
  var fileList: FileList { keychain.fileList }

  /// Opens every item, some at a time and in the archive's order. They are gone with their portion.
  ///
  /// - Parameters:
  ///   - translate: Makes an error of the archive one of the caller's.
  ///   - body: Takes a portion; where it throws, no further one comes.
  /// - Throws: What `body` throws, and what the system did not give of the archive.
  package func forEachPortion<Failure: Error>(
    translating translate: (KeyhaulError) -> Failure, _ body: ([ArchivedItem]) throws(Failure) -> Void
  ) throws(Failure) {
    var failure: Failure?
    func goesOn() -> Bool { failure == nil }
    do throws(KeyhaulError) {
      try ArchivedItem.openPortions(of: keychain.index, with: keys, shouldContinue: goesOn) { items in
        do throws(Failure) { try body(items) } catch { failure = error }
      }
    } catch {
      throw failure ?? translate(error)
    }
    if let failure { throw failure }
  }

  /// Why an item does not open here; `nil` if it opens.
  package func reason(of item: ArchivedItem) -> Reason? {
    item.reason(hardware: hardware, backupHasPassword: keychain.hasPassword)
  }
}

extension BackupArchive {
  /// Prepares to decrypt the items a few at a time, for callers that keep none of them. The items that need a hardware
  /// key are tried with it at once.
  ///
  /// - Parameters:
  ///   - key: The key of the backup's password, from `unlock`.
  ///   - deviceKey: The hardware key of the possible source device.
  ///   - use: The purpose, as for `open(with:)`.
  /// - Throws: As `open(with:)`.
  package func reader(
    with key: ArchiveKey, deviceKey: DeviceKey? = nil, for use: ArchiveUse
  ) throws(KeyhaulError) -> ArchivedItemReader {
    try ArchivedItemReader(self, key: key, deviceKey: deviceKey, for: use)
  }
}

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
  let passwordForm: PasswordNormalization
  /// Whether a password protects it, as far as that opened its keybag.
  let hasPassword: Bool

  /// - Parameters:
  ///   - key: What the password comes to.
  ///   - keys: The class keys that it opens, with the hardware key of a device or without one.
  ///   - use: What the archive is opened for.
  ///   - known: The same archive as it was read before with the same password.
  /// - Throws: Category `damaged` where the list of files cannot be read, and where the use forbids what was found.
  init(
    _ archive: BackupArchive, key: ArchiveKey, keys: ClassKeys, for use: ArchiveUse,
    knowing known: UnlockedKeychain? = nil
  ) throws(KeyhaulError) {
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
  private func isReadWithPasswordAlone(_ keys: ClassKeys) -> Bool {
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
  func require(_ use: ArchiveUse) throws(KeyhaulError) {
    guard let finding = findings.first(where: { $0.forbids(use) }) else { return }
    if case .keybagMismatch(let file, let keybag) = finding { throw .keybagMismatch(file: file, keybag: keybag) }
    throw finding.refusal
  }

  private static func keychain(
    of archive: BackupArchive, with keys: ClassKeys, keybagFault: String?, for use: ArchiveUse
  ) throws(KeyhaulError) -> (KeychainIndex, FileList, [ArchiveNote]) {
    do throws(KeyhaulError) {
      let list = try archive.fileList(with: keys)
      // What keeps a file from being looked up is a fault of the list.
      _ = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
      var notes = archive.notes + list.notes
      if let fault = try archive.sealBreak(with: keys) { notes.insert(.finding(.sealBroken(fault)), at: 0) }
      if let keybagFault, archive.manifest.keybagFault == nil, archive.hasKeychain {
        notes.append(.finding(.keybagUnusable(reason: keybagFault)))
      }
      do throws(KeyhaulError) {
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
      throw error.code == .keyUnavailable ? KeyhaulError(.damaged, error.reason) : error
    }
  }

  private static func mismatch(of named: String?, _ archive: BackupArchive) -> ArchiveFinding? {
    guard let named, let own = archive.keybag.uuidText, named != own else { return nil }
    return .keybagMismatch(file: named, keybag: own)
  }
}

extension ArchiveFinding {
  /// The finding for an error in reading the keychain file; `nil` if the backup has no such file and `use` needs none.
  ///
  /// - Throws: `error` itself if no device makes such a file or the system fails to read it. Also if no keychain was
  ///   stored and `use` requires one.
  fileprivate init?(ofKeychain error: KeyhaulError, for use: ArchiveUse) throws(KeyhaulError) {
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
