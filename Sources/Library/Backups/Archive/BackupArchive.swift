public import Basics
package import KeychainCrypto
package import KeychainFormats
import SystemPackage

/// A backup of iOS 4 or later, created by Finder, iTunes, idevicebackup2, or Keyhaul: a directory, or a container file
/// with its content.
///
/// Opening a backup reads its metadata files once, within limits, and keeps private copies. Except for payloads, all
/// later results come from these copies, so they stay consistent if the backup is replaced.
public struct BackupArchive: Sendable {
  /// The content of `Manifest.plist`.
  package let manifest: BackupManifest
  /// The content of `Status.plist`, or `nil` if it is missing or unreadable.
  package let status: BackupStatus?
  /// The format of the list of files and the paths of payloads.
  package let layout: BackupLayout
  /// Anomalies that were tolerated.
  package let notes: [BackupAnomaly]
  /// The optional property lists that cannot be read. They are also in the notes.
  package let unreadablePropertyLists: [UnreadablePropertyList]
  /// The digest of the content: `sha256:` and 64 hexadecimal digits. It is the same for a directory, a tar, and a zip.
  package let digest: String

  /// The seal, or `nil` if the backup has none, so that changes cannot be detected.
  package let seal: BackupSeal?

  package let parts: MetadataFiles
  package let source: PayloadSource
  /// The lock for reading, or `nil` if the caller has locked the backup or its file system does not support locks.
  let lock: BackupLock?
  /// The salt of the records in the list of files, if each record is encrypted.
  let recordSalt: RecordSalt?
  /// Whether the list of files is unencrypted, although the backup has a password or claims to have one.
  private let isListPlaintext: Bool

  /// The keybag with wrapped keys.
  package var keybag: Keybag { manifest.keybag }
  /// The source device, from its own data and the computer's.
  public let device: BackupDevice
  /// The date of the backup.
  package var date: KeychainDate? { manifest.date ?? status?.date }
  /// Whether the backup has a password, without which no part of the keychain can be read.
  ///
  /// This is the manifest's claim, or `false` if all of the backup's content is unencrypted despite the claim.
  public let isEncrypted: Bool
  /// Whether the files are encrypted. A decrypted copy has a password that protects only its keychain items.
  package var areFilesEncrypted: Bool { isEncrypted && !manifest.isDecryptedCopy }
  /// Whether the list of files requires the password: encrypted as a whole since iOS 10.2, or by record in iOS 10.0.
  package var isListEncrypted: Bool { isListFileEncrypted || hasEncryptedRecords }
  /// Whether the list of files is encrypted as a whole.
  package var isListFileEncrypted: Bool {
    areFilesEncrypted && layout == .manifestDB && manifest.manifestKey != nil && !isListPlaintext
  }
  /// Whether each record in the list of files is encrypted, as in iOS 10.0 only.
  package var hasEncryptedRecords: Bool { recordSalt != nil }
  /// Whether the device had a passcode when the backup was created, or `nil` if the manifest does not contain this.
  package var wasPasscodeSet: Bool? { manifest.wasPasscodeSet }
  /// Whether the backup stores a keychain file. No password is required, because its stored name is the same in all
  /// backups.
  public var hasKeychain: Bool { parts.contains(layout.keychainPart) }
  /// The content of `Info.plist`, or `nil` if it is missing or unreadable. The computer writes it, and no result
  /// depends on it.
  package let computerProperties: InfoPlist?

  /// Opens a backup and checks everything that does not require a password.
  ///
  /// This is the first of three steps: `unlock` derives the password's key, and `open(with:)` decrypts the items.
  ///
  /// The backup at a path stays locked for reading until the last copy of the archive is released, so that no other
  /// process that uses Keyhaul changes it. If the file system does not support locks, the backup is opened without one.
  ///
  /// - Parameters:
  ///   - location: A directory, a container file, or a stream. The content determines the format, not the name.
  ///   - limits: The limits, which are checked before memory is allocated. The library offers only `.standard`.
  ///   - storage: The storage for a large manifest or keychain while the archive is open.
  /// - Throws: `.notABackup`; `.truncated` or `.damaged` if the backup is damaged; `.hostile` or `.overLimit` if no
  ///   device creates such a backup; `.busy` if another process is changing it.
  public static func open(
    _ location: BackupLocation, limits: BackupLimits = .standard, storage: ManifestStorage = .temporaryFile
  ) throws(KeyhaulError) -> BackupArchive {
    var lock: BackupLock?
    if case .path(let path) = location { lock = try BackupLock.acquire(path, for: .reading) }
    return try open(location, limits: limits, storage: storage, system: .real, lock: lock)
  }

  /// Opens a backup for a caller that has locked it or needs it only briefly.
  ///
  /// - Parameters:
  ///   - acceptsPartialBackup: Whether to also open a backup without a manifest or a list of files, for inspection.
  ///     Each missing part is a finding.
  ///   - lock: The lock that the archive keeps.
  package static func open(
    _ location: BackupLocation, limits: BackupLimits = .standard, storage: ManifestStorage = .temporaryFile,
    system: FileSystem, acceptsPartialBackup: Bool = false, lock: BackupLock? = nil
  ) throws(KeyhaulError) -> BackupArchive {
    let container = ContainerSource(limits: limits, storage: storage, system: system)
    switch location {
    case .stream(let descriptor):
      let bytes = try FileDescriptorSource(descriptor: FileDescriptor(rawValue: descriptor), system: system)
      let contents = try container.read(bytes, as: try ContainerFormat(bytes))
      return try BackupArchive(
        contents.parts, .stream(contents.payloads), acceptsPartialBackup: acceptsPartialBackup, lock: lock)
    case .path(let path):
      let descriptor = try opened(path) { () throws(Errno) in try system.openForReading(path) }
      let file = descriptor.raw
      let status = try opened(path) { () throws(Errno) in try system.status(of: file) }
      switch status.kind {
      case .directory:
        let source = DirectorySource(system: system, limits: limits, storage: storage)
        let parts = try source.read(descriptor)
        return try BackupArchive(
          parts, .directory(DirectoryHandle(descriptor), source), acceptsPartialBackup: acceptsPartialBackup, lock: lock
        )
      case .file:
        let bytes = try FileDescriptorSource(descriptor: file, system: system)
        let format = try ContainerFormat(bytes)
        let contents = try container.read(bytes, as: format)
        return try BackupArchive(
          contents.parts, .container(ContainerHandle(descriptor, container, format, contents)),
          acceptsPartialBackup: acceptsPartialBackup, lock: lock)
      case .link, .pipe, .other:
        throw KeyhaulError(.notABackup, "\(quoted(path)) is neither a folder nor a regular file")
      }
    }
  }

  private init(
    _ metadata: MetadataFiles, _ source: PayloadSource, acceptsPartialBackup: Bool, lock: BackupLock?
  ) throws(KeyhaulError) {
    var parts = metadata
    var notes: [BackupAnomaly] = []
    let (manifest, manifestFault) = try Self.manifest(of: parts, acceptsPartialBackup: acceptsPartialBackup)
    if let manifestFault {
      notes.append(
        .finding(
          parts.contains(.manifest) ? .manifestUnreadable(reason: manifestFault.reason) : .manifestMissing))
    }
    if parts.layout == nil {
      let absence = KeyhaulError(
        .payloadMissing, "it has neither \(MetadataFile.database.path) nor \(MetadataFile.oldDatabase.path)")
      guard acceptsPartialBackup else { throw absence }
      notes.append(
        .finding(.listUnreadable(name: manifest.expectedLayout.listPart.path, reason: absence.reason)))
    }
    let layout = parts.layout ?? manifest.expectedLayout
    if manifest.isEncrypted == nil, manifestFault == nil { notes.append(.encryptionNotStated) }
    if layout == .manifestDB { notes += try parts.applyJournals() }
    let encryption = try EncryptionStatus(of: parts, manifest, layout) { () throws(KeyhaulError) in
      try Self.storedFiles(of: source, layout)
    }
    // The keychain items of a decrypted copy still require the password.
    isEncrypted = encryption.isEncrypted || manifest.isDecryptedCopy
    isListPlaintext = encryption.isListPlaintext
    recordSalt = encryption.recordSalt
    notes += Self.anomalies(of: manifest, isReadable: manifestFault == nil, falseClaim: encryption.falseClaim)
    var unreadable = parts.unreadable
    status = Self.propertyList(.status, of: parts, &unreadable, BackupStatus.init(parsing:))
    computerProperties = Self.propertyList(.info, of: parts, &unreadable, InfoPlist.init(parsing:))
    notes += try Self.payloadAnomalies(of: source, layout, isKeychainRenamed: parts.isKeychainRenamed)
    if let manifestFault, parts.layout == nil, status == nil, computerProperties == nil { throw manifestFault }
    if let status {
      switch status.snapshotState {
      case nil: notes.append(.finding(.stateMissing))
      case let state?: if !status.isFinished { notes.append(.unfinished(state: state)) }
      }
    } else if !unreadable.contains(where: { $0.name == MetadataFile.status.path }) {
      notes.append(.statusMissing)
    }
    notes += unreadable.map(\.note)
    unreadablePropertyLists = unreadable
    let shouldBeKeyed = isEncrypted && !manifest.isDecryptedCopy && manifest.manifestKey != nil
    // An unreadable manifest does not state whether the backup has a password.
    seal = try BackupSeal(of: parts, layout: layout, shouldBeKeyed: manifestFault == nil ? shouldBeKeyed : nil)
    notes += (seal?.violations ?? []).map { .finding(.sealBroken($0)) }
    digest = try BackupDigest.digest(of: parts, layout: layout)
    device = manifest.device.completed(by: computerProperties?.device)
    self.manifest = manifest
    self.layout = layout
    self.notes = notes
    self.parts = parts.only(layout)
    self.source = source
    self.lock = lock
  }

  /// Returns the anomalies of the manifest, except that it is unreadable or does not state whether there is a password.
  ///
  /// - Parameters:
  ///   - isReadable: Whether the backup has a readable manifest.
  ///   - falseClaim: The evidence against the manifest's claim of a password, if the claim is false.
  private static func anomalies(
    of manifest: BackupManifest, isReadable: Bool, falseClaim: BackupAnomaly?
  ) -> [BackupAnomaly] {
    var anomalies: [BackupAnomaly] = []
    if let falseClaim { anomalies.append(falseClaim) }
    if manifest.isDecryptedCopy {
      anomalies.append(.finding(.decryptedCopy))
    } else if isReadable, falseClaim == nil {
      let claimsEncryption = manifest.isEncrypted ?? (manifest.manifestKey != nil)
      anomalies += ManifestContradictions(in: manifest, isEncrypted: claimsEncryption).findings.map { .finding($0) }
    }
    guard isReadable else { return anomalies }
    if manifest.version == nil { anomalies.append(.finding(.versionMissing)) }
    if let fault = manifest.keybagFault { anomalies.append(.finding(.keybagUnusable(reason: fault))) }
    return anomalies
  }

  /// Returns the anomalies of the payloads' names.
  private static func payloadAnomalies(
    of source: PayloadSource, _ layout: BackupLayout, isKeychainRenamed: Bool
  ) throws(KeyhaulError) -> [BackupAnomaly] {
    switch source {
    case .stream(let payloads): payloads.anomalies
    case .container(let container): container.payloads.anomalies
    // Other renamed payloads are found when the directory is listed.
    case .directory: isKeychainRenamed ? try storedFiles(of: source, layout).anomalies : []
    }
  }

  /// Reads the manifest.
  ///
  /// - Returns: The manifest and no error. If it is unreadable and the caller accepts this, or if only an unencrypted
  ///   list of files exists, an empty manifest and the error.
  private static func manifest(
    of parts: MetadataFiles, acceptsPartialBackup: Bool
  ) throws(KeyhaulError) -> (BackupManifest, fault: KeyhaulError?) {
    guard let bytes = parts[.manifest] else {
      guard parts.database != nil else {
        throw KeyhaulError(.notABackup, "it has no \(MetadataFile.manifest.path)")
      }
      let fault = KeyhaulError(.damaged, "the keybag is in \(MetadataFile.manifest.path), which is missing")
      return (BackupManifest(unreadable: fault), fault)
    }
    do throws(KeyhaulError) {
      return (try BackupManifest(parsing: bytes), nil)
    } catch {
      guard acceptsPartialBackup, error.category == .damaged else { throw error }
      return (BackupManifest(unreadable: error), error)
    }
  }

  /// Reads an optional property list, or returns `nil` if it is missing or unreadable. An unreadable one is added to
  /// `unreadable`.
  private static func propertyList<Value>(
    _ part: MetadataFile, of parts: MetadataFiles, _ unreadable: inout [UnreadablePropertyList],
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

  /// The stored size of the list of files in bytes.
  package var listByteCount: Int? {
    switch layout {
    case .manifestDB: parts.database?.byteCount
    case .mbdb: parts[.oldDatabase]?.count
    }
  }

  /// Whether payloads can be read. Only the metadata files of a stream are kept.
  package var canReadPayloads: Bool {
    switch source {
    case .directory, .container: true
    case .stream: false
    }
  }

  /// Returns the stored payloads of all apps and domains.
  ///
  /// For a directory, this lists the files, which takes a moment if there are hundreds of thousands.
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
  /// The anomalies that are visible without a password.
  package var findings: [BackupFinding] { notes.compactMap(\.finding) }

  /// Whether the manifest is unreadable, so that the password status is unknown.
  package var isManifestUnreadable: Bool { findings.contains { $0.kind == .manifestUnreadable } }

  /// Whether `Manifest.plist` is missing, and the content is that of an unencrypted `Manifest.db`.
  package var isManifestMissing: Bool { findings.contains(.manifestMissing) }

  /// Whether the manifest or the list of files is missing, so that nothing in the backup can be opened.
  package var isPartial: Bool {
    isManifestUnreadable || (findings.contains { $0.kind == .listUnreadable } && listByteCount == nil)
  }

  /// Whether the manifest claims a password, although the stored content is unencrypted. The class keys may require
  /// that password.
  package var hasFalseClaim: Bool { findings.contains { $0.kind == .falseClaim } }

  /// Whether the backup's folder has a keychain file under its original name, as in a folder that a downloader of
  /// iCloud backups or an unpacker of backups wrote. Keyhaul does not read such a folder.
  package var hasFilesByDomain: Bool {
    guard case .directory(let handle, let source) = source else { return false }
    return source.hasFile("\(KeychainPayload.domain)/\(KeychainPayload.relativePath)", in: handle.descriptor)
  }

  /// The text of reports about a folder whose files have their original names.
  package static let filesByDomain =
    "the files are there under their own names, such as \(KeychainPayload.domain)/\(KeychainPayload.relativePath); "
    + "Keyhaul reads backups in the layout of Finder, in which a file's name is a hash"

  /// Whether Keyhaul made the backup from a virtual device. Then it has a seal, and no version of iTunes in its
  /// `Info.plist`. Finder, iTunes, Apple Devices and idevicebackup2 write that version.
  ///
  /// Source: libimobiledevice, `idevicebackup2.c`, which writes a version even without iTunes.
  package var isMadeByKeyhaul: Bool {
    guard seal != nil, let computerProperties else { return false }
    return computerProperties.iTunesVersion == nil
  }

  /// Whether the manifest claims that the keybag has a password.
  package var keybagHasPassword: Bool { isEncrypted || hasFalseClaim }

  /// Checks that the backup can be used for a purpose. Findings can forbid any use. A plan or a restore also requires a
  /// finished backup, and without a password also class keys that are wrapped with the device key.
  ///
  /// - Throws: `.unfinished` with the progress, the error of the first finding, or `.unboundKeychain`.
  package func requireUsable(for use: BackupPurpose) throws(KeyhaulError) {
    let isForRestore =
      switch use {
      case .reading, .exporting, .rewriting, .copying: false
      case .planning, .restoring: true
      }
    if isForRestore { try requireFinished() }
    if let finding = findings.first(where: { $0.blocks(use) }) { throw finding.refusal }
    if isForRestore, let unbound = unboundClassKeys, unbound.blocksRestore { throw KeyhaulError(unbound) }
  }

  /// Checks that the device finished the backup, as a restore on a device does, and that `Status.plist` is plausible.
  ///
  /// - Throws: `.unfinished` with the progress, or the error of `Status.plist`.
  package func requireFinished() throws(KeyhaulError) {
    if let status = unreadablePropertyLists.first(where: { $0.name == MetadataFile.status.path }),
      status.error.category == .refused
    {
      throw status.error
    }
    guard let state = status?.snapshotState, status?.isFinished == false else { return }
    throw KeyhaulError(.unfinished, BackupAnomaly.unfinished(state: state).description)
  }
}

extension BackupArchive {
  /// Opens the keychain file.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password, or with the empty password if it has none.
  /// - Throws: `.noKeychain` if none is stored, `.damaged` if one is stored but not listed, so that its key is lost,
  ///   `.payloadMissing` if one is listed but not stored; the errors of `fileList(with:)`.
  package func keychainFile(with keys: ClassKeys) throws(KeyhaulError) -> KeychainPayload {
    try keychainFile(in: try fileList(with: keys), with: keys)
  }

  /// Opens the keychain file with a list that is already open.
  package func keychainFile(
    in list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> KeychainPayload {
    let record = try keychainRecord(in: list)
    let stored = try storedKeychain()
    guard areFilesEncrypted else {
      return try payload(try stored.bytes(), storedAs: stored, record: record, list: list)
    }
    let key = try keychainKey(record, with: keys)
    return try payload(try plaintext(of: stored, key: key), storedAs: stored, record: record, list: list)
  }

  private func keychainKey(_ record: FileRecord, with keys: ClassKeys) throws(KeyhaulError) -> Secret {
    guard let field = record.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for the keychain file")
    }
    return try fileKey(field, of: "the keychain file", keys: keys)
  }

  /// Returns the encryption key of the keychain file, or `nil` if files are not encrypted.
  package func keychainKey(in list: FileList, with keys: ClassKeys) throws(KeyhaulError) -> Secret? {
    areFilesEncrypted ? try keychainKey(try keychainRecord(in: list), with: keys) : nil
  }

  /// The stored keychain file, if it is too large for memory.
  package var storedLargeKeychain: SpooledData? { parts[large: layout.keychainPart].flatMap { $0.isInFile ? $0 : nil } }

  /// Opens the keychain file of a backup without a password. The items' kinds and classes are visible without a key.
  ///
  /// - Throws: `.keyUnavailable` if the backup has a password, otherwise as `keychainFile(with:)`.
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

  private func storedKeychain() throws(KeyhaulError) -> SpooledData {
    guard let stored = parts[large: layout.keychainPart] else {
      throw KeyhaulError(
        .payloadMissing,
        "the manifest lists \(layout.keychainPart.path), which is missing"
          + (hasFilesByDomain ? "; \(Self.filesByDomain)" : ""))
    }
    return stored
  }

  private func plaintext(of stored: SpooledData, key: borrowing Secret) throws(KeyhaulError) -> [UInt8] {
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

  /// Creates the payload.
  ///
  /// - Parameter stored: The stored bytes, encrypted or not.
  private func payload(
    _ bytes: [UInt8], storedAs stored: SpooledData, record: FileRecord, list: FileList
  ) throws(KeyhaulError) -> KeychainPayload {
    var notes = self.notes + list.notes
    if let digest = record.digest, try stored.sha1() != digest {
      // Some lists of encrypted backups contain the digest of the plaintext.
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

/// The decrypted keychain file of a backup. Each item in it is still encrypted.
public struct KeychainPayload: Sendable {
  /// The property list of the keychain.
  package let bytes: [UInt8]
  /// The encrypted items and their keybag.
  package let file: KeychainBackupFile
  /// The list of files that contains the keychain file.
  package let fileList: FileList
  /// Anomalies that were tolerated.
  package let notes: [BackupAnomaly]

  /// The domain of the file.
  public static let domain = "KeychainDomain"
  /// The path of the file in its domain.
  public static let relativePath = "keychain-backup.plist"
  /// The stored name, the SHA-1 digest of `KeychainDomain-keychain-backup.plist`. It is the same in all backups.
  package static let fileIdentifier = MetadataFile.keychainFileIdentifier
}

/// The digest of a backup's content, independent of its packing.
///
/// The digest is SHA-256 over a line for each of the stored manifest, list of files, and keychain file, and for the
/// list's log and journal if they are not empty, sorted by path. A line contains the path, NUL, the decimal size, NUL,
/// the file's SHA-256 digest in hexadecimal, and a line feed.
enum BackupDigest {
  /// Returns `sha256:` and 64 hexadecimal digits.
  static func digest(of parts: MetadataFiles, layout: BackupLayout) throws(KeyhaulError) -> String {
    var lines: [(path: String, line: String)] = []
    for part in [.manifest, layout.listPart, layout.keychainPart] + layout.journals {
      if let stored = parts[large: part] {
        lines.append((part.path, line(part, stored.byteCount, String(hexadecimal: stored.sha256))))
      } else if let bytes = parts[part] {
        lines.append((part.path, line(part, bytes.count, try sha256(bytes))))
      }
    }
    // The order of bytes does not depend on the locale.
    lines.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    return "sha256:" + (try sha256(lines.flatMap { Array($0.line.utf8) }))
  }

  private static func line(_ part: MetadataFile, _ byteCount: Int, _ sum: String) -> String {
    "\(part.path)\0\(byteCount)\0\(sum)\n"
  }

  private static func sha256(_ bytes: [UInt8]) throws(KeyhaulError) -> String {
    try explained("the digest") { () throws(DataProtectionError) in String(hexadecimal: try Digest.sha256(bytes)) }
  }
}
