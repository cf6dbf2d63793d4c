public import Basics
package import KeychainCrypto
package import KeychainFormats
import SystemPackage

/// A backup as Finder, iTunes, idevicebackup2 or this program wrote it, of iOS 4 and later: a directory, or
/// one file made from such a directory.
///
/// Opening reads the parts that matter, once and under limits, and keeps copies of its own. All later questions but for
/// payloads are answered from there, so that a backup which is swapped meanwhile cannot answer one of them differently.
public struct BackupArchive: Sendable {
  /// What `Manifest.plist` says.
  package let manifest: BackupManifest
  /// `nil` if there is no `Status.plist`, or none that can be read.
  package let status: BackupStatus?
  /// What the list of files is, and where payloads lie.
  package let layout: BackupLayout
  /// What was unusual, and tolerated.
  package let notes: [ArchiveNote]
  /// What is there beside the list of files and cannot be read; also among the notes.
  package let unreadablePropertyLists: [UnreadablePropertyList]
  /// The same for the same backup as a directory, a tar or a zip: `sha256:` and 64 hexadecimal digits.
  package let digest: String

  /// What its seal says; `nil` if it has none, so that changes can go unseen.
  package let seal: BackupSeal?

  package let parts: StoredParts
  package let source: PayloadSource
  /// The lock for reading; `nil` if the caller has locked the backup, or if its file system has no locks.
  let lock: BackupLock?
  /// Of the records in its list of files, where each of them is sealed.
  let recordSalt: RecordSalt?
  /// Whether the list of files is a database in clear though there is a password, or is said to be one.
  private let isListClear: Bool

  /// The keybag, with every key wrapped.
  package var keybag: Keybag { manifest.keybag }
  /// The device that it was made from: what the device itself says, completed by what the computer wrote beside it.
  public let device: BackupDevice
  /// When the backup was made.
  package var date: KeychainDate? { manifest.date ?? status?.date }
  /// Whether it has a password. Without that password nothing of the keychain can be seen.
  ///
  /// What its manifest says, but for one that claims a password while everything in it is in clear: see
  /// `ArchiveNote.encryptionClaimed`.
  public let isEncrypted: Bool
  /// Whether its files are encrypted: where it has a password, but for a decrypted copy, whose keychain's items it protects
  /// all the same.
  package var areFilesEncrypted: Bool { isEncrypted && !manifest.isDecryptedCopy }
  /// Whether the list of files needs the password: where there is one, since iOS 10.2 as a whole, and of iOS 10.0 each
  /// record in it.
  package var isListEncrypted: Bool { isListFileEncrypted || hasSealedRecords }
  /// Whether the list of files is encrypted as a file.
  package var isListFileEncrypted: Bool {
    areFilesEncrypted && layout == .manifestDB && manifest.manifestKey != nil && !isListClear
  }
  /// Whether each record in the list of files is sealed with a key of the password, as iOS 10.0 alone wrote it.
  package var hasSealedRecords: Bool { recordSalt != nil }
  /// Whether the device had a passcode when the backup was made; `nil` if the manifest doesn't say.
  package var wasPasscodeSet: Bool? { manifest.wasPasscodeSet }
  /// Whether the keychain's file is stored. Known without a password, because its stored name is the same everywhere.
  public var hasKeychain: Bool { parts.contains(layout.keychainPart) }
  /// What `Info.plist` says; the computer writes it, and nothing depends on it. `nil` if it is not there, or cannot be
  /// read.
  package let computerProperties: ComputerProperties?

  /// Opens a backup and checks everything that needs no password. This is the first of three steps: `unlock` derives the
  /// password's key, and `open(with:)` decrypts the items.
  ///
  /// The backup at a path is locked for reading until the last copy of the archive is gone, so that no other process
  /// that uses `BackupLock` changes it. Where the file system has no locks, it is opened without one.
  ///
  /// - Parameters:
  ///   - location: A directory, one file, or a stream; content decides, never a name.
  ///   - limits: The most that is accepted, checked before memory is taken.
  ///   - storage: The place for a large manifest or keychain while the archive is open.
  /// - Throws: `.notABackup` for anything else; `.truncated` and `.damaged` for one whose bytes are not what was
  ///   written; `.hostile` and `.overLimit` for one that no device makes; `.busy` if another process is changing it.
  public static func open(
    _ location: ArchiveLocation, limits: ArchiveLimits = .standard, storage: ManifestStorage = .temporaryFile
  ) throws(KeyhaulError) -> BackupArchive {
    var lock: BackupLock?
    if case .path(let path) = location { lock = try BackupLock.acquire(path, for: .reading) }
    return try open(location, limits: limits, storage: storage, system: .real, lock: lock)
  }

  /// Opens a backup for a caller that has locked it, or that only looks at it for a moment.
  ///
  /// - Parameters:
  ///   - takesRemains: Whether to also open what is left of a backup without its manifest or its list of files, to show
  ///     it. Each loss is a finding.
  ///   - lock: The lock that the archive keeps.
  package static func open(
    _ location: ArchiveLocation, limits: ArchiveLimits = .standard, storage: ManifestStorage = .temporaryFile,
    system: FileSystem, takesRemains: Bool = false, lock: BackupLock? = nil
  ) throws(KeyhaulError) -> BackupArchive {
    let container = ContainerSource(limits: limits, storage: storage, system: system)
    switch location {
    case .stream(let descriptor):
      let feed = try DescriptorFeed(descriptor: FileDescriptor(rawValue: descriptor), system: system)
      let found = try container.read(feed, as: try ContainerFormat(feed))
      return try BackupArchive(found.parts, .stream(found.payloads), takesRemains: takesRemains, lock: lock)
    case .path(let path):
      let descriptor = try opened(path) { () throws(Errno) in try system.openForReading(path) }
      let file = descriptor.raw
      let status = try opened(path) { () throws(Errno) in try system.status(of: file) }
      switch status.kind {
      case .directory:
        let source = DirectorySource(system: system, limits: limits, storage: storage)
        let parts = try source.read(descriptor)
        return try BackupArchive(
          parts, .directory(DirectoryHandle(descriptor), source), takesRemains: takesRemains, lock: lock)
      case .file:
        let feed = try DescriptorFeed(descriptor: file, system: system)
        let format = try ContainerFormat(feed)
        let found = try container.read(feed, as: format)
        return try BackupArchive(
          found.parts, .container(ContainerHandle(descriptor, container, format, found)), takesRemains: takesRemains,
          lock: lock)
      case .link, .pipe, .other:
        throw KeyhaulError(.notABackup, "\(quoted(path)) is neither a folder nor a regular file")
      }
    }
  }

  private init(
    _ found: StoredParts, _ source: PayloadSource, takesRemains: Bool, lock: BackupLock?
  ) throws(KeyhaulError) {
    var parts = found
    var notes: [ArchiveNote] = []
    let (manifest, manifestFault) = try Self.manifest(of: parts, takesRemains: takesRemains)
    if let manifestFault {
      notes.append(
        .finding(
          parts.contains(.manifest) ? .manifestUnreadable(reason: manifestFault.reason) : .manifestMissing))
    }
    if parts.layout == nil {
      let absence = KeyhaulError(
        .payloadMissing, "it has neither \(StoredPart.database.path) nor \(StoredPart.oldDatabase.path)")
      guard takesRemains else { throw absence }
      notes.append(
        .finding(.listUnreadable(name: manifest.expectedLayout.listPart.path, reason: absence.reason)))
    }
    let layout = parts.layout ?? manifest.expectedLayout
    if manifest.isEncrypted == nil, manifestFault == nil { notes.append(.encryptionNotStated) }
    if layout == .manifestDB { notes += try parts.readJournals() }
    let found = try FoundEncryption(of: parts, manifest, layout) { () throws(KeyhaulError) in
      try Self.storedFiles(of: source, layout)
    }
    // The keychain's items of a decrypted copy are under the password all the same.
    (isEncrypted, isListClear, recordSalt) = (
      found.isEncrypted || manifest.isDecryptedCopy, found.isListClear, found.recordSalt
    )
    if let claim = found.falseClaim { notes.append(claim) }
    if manifest.isDecryptedCopy {
      notes.append(.finding(.decryptedCopy))
    } else if manifestFault == nil, found.falseClaim == nil {
      let claims = manifest.isEncrypted ?? (manifest.manifestKey != nil)
      notes += FoundContradictions(in: manifest, isEncrypted: claims).findings.map { .finding($0) }
    }
    if manifest.version == nil, manifestFault == nil { notes.append(.finding(.versionMissing)) }
    if manifestFault == nil, let fault = manifest.keybagFault { notes.append(.finding(.keybagUnusable(reason: fault))) }
    var unreadable = parts.unreadable
    status = Self.propertyList(.status, of: parts, &unreadable, BackupStatus.init(parsing:))
    computerProperties = Self.propertyList(.info, of: parts, &unreadable, ComputerProperties.init(parsing:))
    switch source {
    case .stream(let payloads): notes += payloads.notes
    case .container(let container): notes += container.payloads.notes
    // What else has another name is seen when the directory is listed.
    case .directory: if parts.isKeychainRenamed { notes += try Self.storedFiles(of: source, layout).notes }
    }
    if let manifestFault, parts.layout == nil, status == nil, computerProperties == nil { throw manifestFault }
    if let status {
      switch status.snapshotState {
      case nil: notes.append(.finding(.stateMissing))
      case let state?: if !status.isFinished { notes.append(.unfinished(state: state)) }
      }
    }
    if status == nil, !unreadable.contains(where: { $0.name == StoredPart.status.path }) {
      notes.append(.statusMissing)
    }
    notes += unreadable.map(\.note)
    unreadablePropertyLists = unreadable
    let takesKey = isEncrypted && !manifest.isDecryptedCopy && manifest.manifestKey != nil
    // Whether there is a password, an unreadable manifest does not say.
    seal = try BackupSeal(of: parts, layout: layout, takesKey: manifestFault == nil ? takesKey : nil)
    notes += (seal?.breaks ?? []).map { .finding(.sealBroken($0)) }
    digest = try ArchiveDigest.digest(of: parts, layout: layout)
    device = manifest.device.completed(by: computerProperties?.device)
    self.manifest = manifest
    self.layout = layout
    self.notes = notes
    self.parts = parts.only(layout)
    self.source = source
    self.lock = lock
  }

  /// What the manifest says, and why nothing of it can be read if that is asked for, or if only an unencrypted list of
  /// files is there.
  private static func manifest(
    of parts: StoredParts, takesRemains: Bool
  ) throws(KeyhaulError) -> (BackupManifest, fault: KeyhaulError?) {
    guard let bytes = parts[.manifest] else {
      guard parts.database != nil else {
        throw KeyhaulError(.notABackup, "it has no \(StoredPart.manifest.path)")
      }
      let fault = KeyhaulError(.damaged, "the keybag is in \(StoredPart.manifest.path), which is missing")
      return (BackupManifest(unreadable: fault), fault)
    }
    do throws(KeyhaulError) {
      return (try BackupManifest(parsing: bytes), nil)
    } catch {
      guard takesRemains, error.category == .damaged else { throw error }
      return (BackupManifest(unreadable: error), error)
    }
  }

  /// What a property list says that nothing depends on; `nil` if it is not there or cannot be read, which is entered.
  private static func propertyList<Value>(
    _ part: StoredPart, of parts: StoredParts, _ unreadable: inout [UnreadablePropertyList],
    _ parse: ([UInt8]) throws(KeyhaulError) -> Value
  ) -> Value? {
    guard let bytes = parts[part] else { return nil }
    do throws(KeyhaulError) {
      return try parse(bytes)
    } catch {
      unreadable.append(UnreadablePropertyList(part, error))
      return nil
    }
  }

  /// The size of the list of files as it is stored, in bytes.
  package var listByteCount: Int? {
    switch layout {
    case .manifestDB: parts.database?.byteCount
    case .mbdb: parts[.oldDatabase]?.count
    }
  }

  /// Whether payloads can still be read: of a stream only what was kept of it is there.
  package var canReadPayloads: Bool {
    switch source {
    case .directory, .container: true
    case .stream: false
    }
  }

  /// The payloads that the backup stores, of all apps and domains.
  ///
  /// Known at once for one file; a directory's payloads are listed now, which takes a moment for hundreds of thousands.
  public func storedFiles() throws(KeyhaulError) -> StoredPayloads {
    try Self.storedFiles(of: source, layout)
  }

  private static func storedFiles(
    of source: PayloadSource, _ layout: BackupLayout
  ) throws(KeyhaulError) -> StoredPayloads {
    switch source {
    case .stream(let payloads): return payloads
    case .container(let container): return container.payloads
    case .directory(let handle, let source): return try source.payloads(of: handle.descriptor, layout: layout)
    }
  }
}

extension BackupArchive {
  /// What of it is not as a device leaves it and was gone around: what shows itself without a password.
  package var findings: [ArchiveFinding] { notes.compactMap(\.finding) }

  /// Whether nothing of its manifest can be read, so that nothing says whether it has a password.
  package var isManifestUnreadable: Bool { findings.contains { $0.kind == .manifestUnreadable } }

  /// Whether it has no `Manifest.plist`, and is what an unencrypted `Manifest.db` lists.
  package var isManifestMissing: Bool { findings.contains(.manifestMissing) }

  /// Whether it is what is left of a backup: without its manifest or its list of files nothing in it can be opened.
  package var isRemainder: Bool {
    isManifestUnreadable || (findings.contains { $0.kind == .listUnreadable } && listByteCount == nil)
  }

  /// Whether its manifest says that it has a password, and what it stores is in clear. The class keys may need that
  /// password all the same.
  package var hasFalseClaim: Bool { findings.contains { $0.kind == .falseClaim } }

  /// Whether the backup's folder has a keychain file under its own name, as in a folder that a downloader of iCloud backups
  /// or an unpacker of backups wrote. Keyhaul does not read such a folder.
  package var hasFilesByDomain: Bool {
    guard case .directory(let handle, let source) = source else { return false }
    return source.hasFile("\(KeychainPayload.domain)/\(KeychainPayload.relativePath)", in: handle.descriptor)
  }

  /// What a report says of such a folder.
  package static let filesByDomain =
    "the files are there under their own names, such as \(KeychainPayload.domain)/\(KeychainPayload.relativePath); "
    + "Keyhaul reads backups in the layout of Finder, in which a file's name is a hash"

  /// Whether Keyhaul made the backup from a virtual device, as far as the backup itself shows: it has a seal, and its
  /// `Info.plist` names no version of iTunes, as that of Finder, iTunes, Apple Devices and idevicebackup2 does.
  ///
  /// Source: libimobiledevice, `idevicebackup2.c`, which writes one where there is no iTunes.
  package var isMadeByKeyhaul: Bool {
    guard seal != nil, let computerProperties else { return false }
    return computerProperties.iTunesVersion == nil
  }

  /// Whether its keybag is one of a backup with a password, as its manifest says.
  package var keybagHasPassword: Bool { isEncrypted || hasFalseClaim }

  /// Refuses what a use does not take: what its device never finished, of all but a look at it, and what a finding
  /// forbids.
  ///
  /// - Throws: `.unfinished`, with how far it had come; the refusal of the first finding.
  package func require(_ use: ArchiveUse) throws(KeyhaulError) {
    switch use {
    case .reading, .exporting, .rewriting, .copying: break
    case .planning, .restoring: try requireFinished()
    }
    if let finding = findings.first(where: { $0.forbids(use) }) { throw finding.refusal }
  }

  /// Refuses a backup that its device never finished, as a restore on a device does, and one whose `Status.plist` is
  /// such as no device makes.
  ///
  /// - Throws: `.unfinished`, with how far it had come; what reading `Status.plist` gave.
  package func requireFinished() throws(KeyhaulError) {
    if let status = unreadablePropertyLists.first(where: { $0.name == StoredPart.status.path }),
      status.error.category == .refused
    {
      throw status.error
    }
    guard let state = status?.snapshotState, status?.isFinished == false else { return }
    throw KeyhaulError(.unfinished, ArchiveNote.unfinished(state: state).description)
  }
}

extension BackupArchive {
  /// Opens the keychain's file.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password, or with the empty one where it has none.
  /// - Throws: `.noKeychain` where none was stored, `.damaged` where one is and the list does not name it, whose key is lost
  ///   with its row, `.payloadMissing` where the list names it but it isn't there, and as `fileList(with:)`.
  package func keychainFile(with keys: ClassKeys) throws(KeyhaulError) -> KeychainPayload {
    try keychainFile(in: try fileList(with: keys), with: keys)
  }

  /// The same with the list of files, where it was opened before.
  package func keychainFile(
    in list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> KeychainPayload {
    let record = try keychainRecord(in: list)
    let stored = try storedKeychain()
    guard areFilesEncrypted else {
      return try payload(try stored.bytes(), storedAs: stored, record: record, list: list)
    }
    let key = try keychainKey(record, with: keys)
    return try payload(try plain(of: stored, key: key), storedAs: stored, record: record, list: list)
  }

  private func keychainKey(_ record: FileRecord, with keys: ClassKeys) throws(KeyhaulError) -> Secret {
    guard let field = record.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for the keychain file")
    }
    return try fileKey(field, of: "the keychain file", keys: keys)
  }

  /// The key that the keychain's file is encrypted with; `nil` if files are not encrypted.
  package func keychainKey(in list: FileList, with keys: ClassKeys) throws(KeyhaulError) -> Secret? {
    areFilesEncrypted ? try keychainKey(try keychainRecord(in: list), with: keys) : nil
  }

  /// The keychain's file as the backup has it, where it is too large to be held.
  package var storedLargeKeychain: StoredBytes? { parts[large: layout.keychainPart].flatMap { $0.isInFile ? $0 : nil } }

  /// Opens the keychain's file of a backup without a password: which items there are can be seen without any key.
  ///
  /// - Throws: `.keyUnavailable` for a backup with a password, otherwise as `keychainFile(with:)`.
  package func keychainFile() throws(KeyhaulError) -> KeychainPayload {
    guard !areFilesEncrypted else { throw KeyhaulError(.keyUnavailable, "the backup has a password") }
    let list = try fileList()
    let stored = try storedKeychain()
    return try payload(try stored.bytes(), storedAs: stored, record: try keychainRecord(in: list), list: list)
  }

  package func keychainRecord(in list: FileList) throws(KeyhaulError) -> FileRecord {
    let file = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    guard let file else {
      guard !hasKeychain else {
        throw KeyhaulError(
          .damaged, "the keychain file \(layout.keychainPart.path) is stored, but the manifest does not list it")
      }
      throw KeyhaulError(.noKeychain, "the manifest has no keychain file")
    }
    guard let record = try file.record() else {
      throw KeyhaulError(.damaged, "the manifest does not describe the keychain file")
    }
    guard file.kind == .file else {
      throw KeyhaulError(.damaged, "the manifest lists the keychain file as something other than a file")
    }
    guard record.relativePath == file.relativePath else {
      throw KeyhaulError(.damaged, "the keychain file's record is for \(quoted(record.relativePath))")
    }
    return record
  }

  private func storedKeychain() throws(KeyhaulError) -> StoredBytes {
    guard let stored = parts[large: layout.keychainPart] else {
      throw KeyhaulError(
        .payloadMissing,
        "the manifest lists \(layout.keychainPart.path), which is missing"
          + (hasFilesByDomain ? "; \(Self.filesByDomain)" : ""))
    }
    return stored
  }

  private func plain(of stored: StoredBytes, key: borrowing Secret) throws(KeyhaulError) -> [UInt8] {
    let part = "the keychain file"
    let decryptor = try explained(part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(stored.byteCount)
    try stored.forEachPortion { (portion) throws(KeyhaulError) in
      do throws(DataProtectionError) {
        bytes.append(contentsOf: try decryptor.plain(of: portion))
      } catch {
        throw KeyhaulError(error, in: part)
      }
    }
    let end = try explained(part) { () throws(DataProtectionError) in try decryptor.finish() }
    guard end.hasValidPadding else { throw KeyhaulError(.damaged, "\(part) does not end with valid padding") }
    bytes += end.bytes
    return bytes
  }

  /// - Parameter stored: The bytes as the backup has them, encrypted or not.
  private func payload(
    _ bytes: [UInt8], storedAs stored: StoredBytes, record: FileRecord, list: FileList
  ) throws(KeyhaulError) -> KeychainPayload {
    var notes = self.notes + list.notes
    if let digest = record.digest, try stored.sha1() != digest {
      // Some lists of encrypted backups have the digest of the plain content.
      let plainDigest =
        areFilesEncrypted
        ? try explained("the keychain file", { () throws(DataProtectionError) in try Digest.sha1(bytes) }) : []
      if plainDigest != digest { notes.append(.digestDiffers) }
    }
    if record.size != Int64(bytes.count) {
      notes.append(.sizeDiffers(recorded: record.size, found: Int64(bytes.count)))
    }
    let file = try explained("the keychain file") { () throws(FormatError) in try KeychainBackupFile(parsing: bytes) }
    if file.isXML { notes.append(.finding(.keychainInXML)) }
    if !file.ignoredKeys.isEmpty { notes.append(.finding(.keychainKeysUnknown(file.ignoredKeys))) }
    return KeychainPayload(bytes: bytes, file: file, fileList: list, notes: notes)
  }
}

/// The keychain file of a backup, decrypted as a file; its items are still sealed, each for itself.
public struct KeychainPayload: Sendable {
  /// The property list as it is stored in the backup's domain.
  package let bytes: [UInt8]
  /// The sealed items, with the keybag that they are for.
  package let file: KeychainBackupFile
  /// The backup's list of files, in which it was found.
  package let fileList: FileList
  /// What was unusual, and tolerated.
  package let notes: [ArchiveNote]

  /// The domain that the file stands in.
  public static let domain = "KeychainDomain"
  /// The file's path inside of its domain.
  public static let relativePath = "keychain-backup.plist"
  /// The name under which it is stored: SHA-1 of `KeychainDomain-keychain-backup.plist`, the same in every backup.
  package static let fileIdentifier = StoredPart.keychainFileIdentifier
}

/// What identifies a backup's content, whatever it is packed in.
///
/// SHA-256 over one line for each of the stored manifest, list of files, keychain file, and log and journal of the list where
/// they are not empty, sorted by path: path, NUL, size in decimal, NUL, the file's SHA-256 in hexadecimal, line feed.
enum ArchiveDigest {
  /// - Returns: `sha256:` and 64 hexadecimal digits.
  static func digest(of parts: StoredParts, layout: BackupLayout) throws(KeyhaulError) -> String {
    var lines: [(path: String, line: String)] = []
    for part in [.manifest, layout.listPart, layout.keychainPart] + layout.journals {
      if let stored = parts[large: part] {
        lines.append((part.path, line(part, stored.byteCount, String(hexadecimal: stored.sha256))))
      } else if let bytes = parts[part] {
        lines.append((part.path, line(part, bytes.count, try sha256(bytes))))
      }
    }
    // By bytes, so that no locale decides.
    lines.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return "sha256:" + (try sha256(lines.flatMap { Array($0.line.utf8) }))
  }

  private static func line(_ part: StoredPart, _ byteCount: Int, _ sum: String) -> String {
    "\(part.path)\0\(byteCount)\0\(sum)\n"
  }

  private static func sha256(_ bytes: [UInt8]) throws(KeyhaulError) -> String {
    try explained("the digest") { () throws(DataProtectionError) in String(hexadecimal: try Digest.sha256(bytes)) }
  }
}
