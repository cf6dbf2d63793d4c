public import Basics
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
  package let anomalies: [ToleratedAnomaly]
  /// The optional property lists that cannot be read. They are also among the anomalies.
  package let unreadablePropertyLists: [UnreadablePropertyList]
  /// The digest of the content: `sha256:` and 64 hexadecimal digits. It is the same for a directory, a tar, and a zip.
  package let digest: String

  /// The seal, or `nil` if the backup has none, so that changes cannot be detected.
  package let seal: BackupSeal?

  /// The private copies of the metadata files.
  package let parts: MetadataFiles
  package let source: PayloadSource
  /// The file lock for reading, or `nil` if the caller holds one or the file system does not support file locks.
  let lock: BackupLock?
  /// The salt of the records in the list of files, if each record is encrypted.
  let recordSalt: RecordSalt?
  /// Whether the list of files is unencrypted, although the backup has a password or claims to have one.
  private let isListPlaintext: Bool

  /// The keybag with wrapped keys.
  package var keybag: Keybag { manifest.keybag }
  /// The source device, according to the data of the device and of the computer.
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
  /// A backup at a path keeps a file lock for reading until the last copy of the archive is released. Until then, no
  /// other process that uses Keyhaul changes the backup. If the file system does not support file locks, the backup is
  /// opened without one.
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

  /// Opens a backup for a caller that already holds a file lock or needs the backup only briefly.
  ///
  /// - Parameters:
  ///   - acceptsPartialBackup: Whether to also open a backup without a manifest or a list of files, for inspection.
  ///     Each missing part is a finding.
  ///   - lock: The file lock that the archive keeps.
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
      let directory = DirectorySource(system: system, limits: limits, storage: storage)
      let (parts, payloads) = try read(path, as: directory, or: container, system: system)
      return try BackupArchive(parts, payloads, acceptsPartialBackup: acceptsPartialBackup, lock: lock)
    }
  }

  /// Reads the metadata files of a directory or a container file.
  private static func read(
    _ path: String, as directory: DirectorySource, or container: ContainerSource, system: FileSystem
  ) throws(KeyhaulError) -> (MetadataFiles, PayloadSource) {
    let descriptor = try opened(path) { () throws(Errno) in try system.openForReading(path) }
    let file = descriptor.raw
    let status = try opened(path) { () throws(Errno) in try system.status(of: file) }
    switch status.kind {
    case .directory:
      let parts = try directory.read(descriptor)
      return (parts, .directory(DirectoryHandle(descriptor), directory))
    case .file:
      let bytes = try FileDescriptorSource(descriptor: file, system: system)
      let format = try ContainerFormat(bytes)
      let contents = try container.read(bytes, as: format)
      return (contents.parts, .container(ContainerHandle(descriptor, container, format, contents)))
    case .link, .pipe, .other:
      throw KeyhaulError(.notABackup, "\(quoted(path)) is neither a folder nor a regular file")
    }
  }

  private init(
    _ metadata: MetadataFiles, _ source: PayloadSource, acceptsPartialBackup: Bool, lock: BackupLock?
  ) throws(KeyhaulError) {
    var parts = metadata
    let (manifest, manifestError) = try Self.manifest(of: parts, acceptsPartialBackup: acceptsPartialBackup)
    let isManifestReadable = manifestError == nil
    var anomalies = try Self.anomaliesOfMissingParts(
      parts, manifest, manifestError, acceptsPartialBackup: acceptsPartialBackup)
    let layout = parts.layout ?? manifest.expectedLayout
    if manifest.isEncrypted == nil, isManifestReadable { anomalies.append(.encryptionNotStated) }
    if layout == .manifestDB { anomalies += try parts.applyJournals() }

    let encryption = try EncryptionStatus(of: parts, manifest, layout) { () throws(KeyhaulError) in
      try Self.storedFiles(of: source, layout)
    }
    // The keychain items of a decrypted copy still require the password.
    isEncrypted = encryption.isEncrypted || manifest.isDecryptedCopy
    isListPlaintext = encryption.isListPlaintext
    recordSalt = encryption.recordSalt
    anomalies += Self.anomalies(of: manifest, isReadable: isManifestReadable, falseClaim: encryption.falseClaim)

    var unreadable = parts.unreadable
    status = Self.propertyList(.status, of: parts, &unreadable, BackupStatus.init(parsing:))
    computerProperties = Self.propertyList(.info, of: parts, &unreadable, InfoPlist.init(parsing:))
    anomalies += try Self.payloadAnomalies(of: source, layout, isKeychainRenamed: parts.isKeychainRenamed)
    // Without a manifest, a list of files and a readable property list, there is nothing to show.
    if let manifestError, parts.layout == nil, status == nil, computerProperties == nil { throw manifestError }
    if let anomaly = Self.anomaly(of: status, unreadable) { anomalies.append(anomaly) }
    anomalies += unreadable.map(\.anomaly)
    unreadablePropertyLists = unreadable

    let shouldBeKeyed = isEncrypted && !manifest.isDecryptedCopy && manifest.manifestKey != nil
    // An unreadable manifest does not state whether the backup has a password.
    seal = try BackupSeal(of: parts, layout: layout, shouldBeKeyed: isManifestReadable ? shouldBeKeyed : nil)
    anomalies += (seal?.violations ?? []).map { .finding(.sealBroken($0)) }
    digest = try BackupDigest.digest(of: parts, layout: layout)
    device = manifest.device.completed(by: computerProperties?.device)
    self.manifest = manifest
    self.layout = layout
    self.anomalies = anomalies
    self.parts = parts.only(layout)
    self.source = source
    self.lock = lock
  }

  /// Returns a finding for a missing or unreadable manifest, and one for a missing list of files.
  ///
  /// - Throws: `.payloadMissing` if the list is missing, unless the caller accepts a partial backup.
  private static func anomaliesOfMissingParts(
    _ parts: MetadataFiles, _ manifest: BackupManifest, _ manifestError: KeyhaulError?, acceptsPartialBackup: Bool
  ) throws(KeyhaulError) -> [ToleratedAnomaly] {
    var findings: [BackupFinding] = []
    if let manifestError {
      let isMissing = !parts.contains(.manifest)
      findings.append(isMissing ? .manifestMissing : .manifestUnreadable(reason: manifestError.reason))
    }
    if parts.layout == nil {
      let reason = "it has neither \(MetadataFile.database.path) nor \(MetadataFile.oldDatabase.path)"
      guard acceptsPartialBackup else { throw KeyhaulError(.payloadMissing, reason) }
      findings.append(.listUnreadable(name: manifest.expectedLayout.listPart.path, reason: reason))
    }
    return findings.map { .finding($0) }
  }

  /// Returns the anomaly if the backup is unfinished, or if `Status.plist` does not state that it is finished.
  private static func anomaly(of status: BackupStatus?, _ unreadable: [UnreadablePropertyList]) -> ToleratedAnomaly? {
    guard let status else {
      let isUnreadable = unreadable.contains { $0.name == MetadataFile.status.path }
      return isUnreadable ? nil : .statusMissing
    }
    guard let state = status.snapshotState else { return .finding(.stateMissing) }
    return status.isFinished ? nil : .unfinished(state: state)
  }

  /// Returns the anomalies of the manifest. Two of them are not included: that the manifest is unreadable, and that it
  /// does not state whether there is a password.
  ///
  /// - Parameters:
  ///   - isReadable: Whether the backup has a readable manifest.
  ///   - falseClaim: The evidence against the manifest's claim of a password, if the claim is false.
  private static func anomalies(
    of manifest: BackupManifest, isReadable: Bool, falseClaim: ToleratedAnomaly?
  ) -> [ToleratedAnomaly] {
    var anomalies: [ToleratedAnomaly] = []
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

  /// Returns the anomalies of the payloads' paths.
  private static func payloadAnomalies(
    of source: PayloadSource, _ layout: BackupLayout, isKeychainRenamed: Bool
  ) throws(KeyhaulError) -> [ToleratedAnomaly] {
    switch source {
    case .stream(let payloads): payloads.anomalies
    case .container(let container): container.payloads.anomalies
    // Other renamed payloads are found when the directory is listed.
    case .directory: isKeychainRenamed ? try storedFiles(of: source, layout).anomalies : []
    }
  }

  /// Reads the manifest.
  ///
  /// - Returns: The manifest and no error. An empty manifest and the error if the manifest is missing but `Manifest.db`
  ///   exists, or if the manifest is damaged and the caller accepts a partial backup.
  private static func manifest(
    of parts: MetadataFiles, acceptsPartialBackup: Bool
  ) throws(KeyhaulError) -> (BackupManifest, KeyhaulError?) {
    guard let bytes = parts[.manifest] else {
      guard parts.database != nil else {
        throw KeyhaulError(.notABackup, "it has no \(MetadataFile.manifest.path)")
      }
      let error = KeyhaulError(.damaged, "the keybag is in \(MetadataFile.manifest.path), which is missing")
      return (BackupManifest(unreadable: error), error)
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
  package var findings: [BackupFinding] { anomalies.compactMap(\.finding) }

  /// Whether the manifest is unreadable, so that the password status is unknown.
  package var isManifestUnreadable: Bool { findings.contains { $0.kind == .manifestUnreadable } }

  /// Whether `Manifest.plist` is missing, and only `Manifest.db` describes the backup.
  package var isManifestMissing: Bool { findings.contains(.manifestMissing) }

  /// Whether the manifest is unreadable or the list of files is missing, so that nothing in the backup can be opened.
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

  /// The clause in reports about a folder whose files have their original names.
  package static let filesByDomainExplanation =
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
  /// finished backup. If the backup has no password, its class keys must also be wrapped with the device key.
  ///
  /// - Throws: `.unfinished` with the recorded state, the error of the first blocking finding, or `.unboundKeychain`.
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
  /// - Throws: `.unfinished` with the recorded state, or the error of `Status.plist`.
  package func requireFinished() throws(KeyhaulError) {
    if let status = unreadablePropertyLists.first(where: { $0.name == MetadataFile.status.path }),
      status.error.category == .refused
    {
      throw status.error
    }
    guard let state = status?.snapshotState, status?.isFinished == false else { return }
    throw KeyhaulError(.unfinished, ToleratedAnomaly.unfinished(state: state).description)
  }
}
