public import Basics
public import KeychainFormats
import SystemPackage

/// A backup as Finder, iTunes, idevicebackup2 or this program wrote it, of iOS 4 and later: a directory, or
/// one file made from such a directory.
///
/// Opening reads the parts that matter, once and under limits, and keeps copies of its own. All later questions but for
/// payloads are answered from there, so that a backup which is swapped meanwhile cannot answer one of them differently.
public struct BackupArchive: Sendable {
  /// What `Manifest.plist` says.
  public let manifest: BackupManifest
  /// `nil` where there is no `Status.plist`, or none that can be read.
  public let status: BackupStatus?
  /// What the list of files is, and where payloads lie.
  public let layout: BackupLayout
  /// What was unusual, and tolerated.
  public let notes: [ArchiveNote]
  /// What is there beside the list of files and cannot be read; also among the notes.
  public let unreadablePropertyLists: [UnreadablePropertyList]
  /// The same for the same backup as a directory, a tar or a zip: `sha256:` and 64 hexadecimal digits.
  public let digest: String

  /// What its seal says; `nil` where it has none, so that changes can go unseen.
  public let seal: BackupSeal?

  package let parts: StoredParts
  package let source: PayloadSource
  /// Of the records in its list of files, where each of them is sealed.
  let recordSalt: RecordSalt?
  /// Whether the list of files is a database in clear though there is a password, or is said to be one.
  private let isListClear: Bool

  /// The keybag, with every key wrapped.
  public var keybag: Keybag { manifest.keybag }
  /// The device that it was made from: what the device itself says, completed by what the computer wrote beside it.
  public let device: BackupDevice
  /// When the backup was made.
  public var date: KeychainDate? { manifest.date ?? status?.date }
  /// Whether it has a password. Without that password nothing of the keychain can be seen.
  ///
  /// What its manifest says, but for one that claims a password while everything in it is in clear: see
  /// `ArchiveNote.encryptionClaimed`.
  public let isEncrypted: Bool
  /// Whether its files are encrypted: where it has a password, but for a decrypted copy, whose keychain's items it protects
  /// all the same.
  public var areFilesEncrypted: Bool { isEncrypted && !manifest.isDecryptedCopy }
  /// Whether the list of files needs the password: where there is one, since iOS 10.2 as a whole, and of iOS 10.0 each
  /// record in it.
  public var isListEncrypted: Bool { isListFileEncrypted || hasSealedRecords }
  /// Whether the list of files is encrypted as a file.
  public var isListFileEncrypted: Bool {
    areFilesEncrypted && layout == .manifestDB && manifest.manifestKey != nil && !isListClear
  }
  /// Whether each record in the list of files is sealed with a key of the password, as iOS 10.0 alone wrote it.
  public var hasSealedRecords: Bool { recordSalt != nil }
  /// Whether the device had a passcode when the backup was made; `nil` where the manifest doesn't say.
  public var wasPasscodeSet: Bool? { manifest.wasPasscodeSet }
  /// Whether the keychain's file is stored. Known without a password, because its stored name is the same everywhere.
  public var hasKeychain: Bool { parts.contains(layout.keychainPart) }
  /// What `Info.plist` says; the computer writes it, and nothing depends on it. `nil` where it is not there, or cannot be
  /// read.
  public let computerProperties: ComputerProperties?

  /// Opens a backup and checks everything that needs no password.
  ///
  /// - Parameters:
  ///   - location: A directory, one file, or a stream; content decides, never a name.
  ///   - limits: The most that is accepted, checked before memory is taken.
  ///   - storage: Where a large list or keychain is kept meanwhile.
  /// - Throws: `.notABackup` for anything else; `.truncated` and `.damaged` for one whose bytes are not what was
  ///   written; `.hostile` and `.overLimit` for one that no device makes.
  public static func open(
    _ location: ArchiveLocation, limits: ArchiveLimits = .standard, storage: ManifestStorage = .temporaryFile
  ) throws(BackupArchiveError) -> BackupArchive {
    try open(location, limits: limits, storage: storage, system: .real)
  }

  /// Opens a backup as `open` does, and also what is left of one whose manifest or list of files cannot be had: to be shown,
  /// and for nothing else. Each is a finding.
  ///
  /// - Throws: Why neither can be read, where nothing else is there either.
  package static func openRemains(
    _ location: ArchiveLocation, storage: ManifestStorage = .temporaryFile
  ) throws(BackupArchiveError) -> BackupArchive {
    try open(location, limits: .standard, storage: storage, system: .real, takesRemains: true)
  }

  package static func open(
    _ location: ArchiveLocation, limits: ArchiveLimits, storage: ManifestStorage = .temporaryFile, system: FileSystem,
    takesRemains: Bool = false
  ) throws(BackupArchiveError) -> BackupArchive {
    let container = ContainerSource(limits: limits, storage: storage, system: system)
    switch location {
    case .stream(let descriptor):
      let feed = try DescriptorFeed(descriptor: FileDescriptor(rawValue: descriptor), system: system)
      let found = try container.read(feed, as: try ContainerFormat(feed))
      return try BackupArchive(found.parts, .stream(found.payloads), takesRemains: takesRemains)
    case .path(let path):
      let descriptor = try opened(path) { () throws(Errno) in try system.openForReading(path) }
      let file = descriptor.raw
      let status = try opened(path) { () throws(Errno) in try system.status(of: file) }
      switch status.kind {
      case .directory:
        let source = DirectorySource(system: system, limits: limits, storage: storage)
        let parts = try source.read(descriptor)
        return try BackupArchive(
          parts, .directory(DirectoryHandle(descriptor), source), takesRemains: takesRemains)
      case .file:
        let feed = try DescriptorFeed(descriptor: file, system: system)
        let format = try ContainerFormat(feed)
        let found = try container.read(feed, as: format)
        return try BackupArchive(
          found.parts, .container(ContainerHandle(descriptor, container, format, found)), takesRemains: takesRemains)
      case .link, .pipe, .other:
        throw BackupArchiveError(.notABackup, "\(quoted(path)) is neither a folder nor a regular file")
      }
    }
  }

  private init(
    _ found: StoredParts, _ source: PayloadSource, takesRemains: Bool
  ) throws(BackupArchiveError) {
    var parts = found
    var notes: [ArchiveNote] = []
    let (manifest, manifestFault) = try Self.manifest(of: parts, takesRemains: takesRemains)
    if let manifestFault {
      notes.append(
        .finding(
          parts.contains(.manifest) ? .manifestUnreadable(reason: manifestFault.reason) : .manifestMissing))
    }
    if parts.layout == nil {
      let absence = BackupArchiveError(
        .payloadMissing, "it has neither \(StoredPart.database.path) nor \(StoredPart.oldDatabase.path)")
      guard takesRemains else { throw absence }
      notes.append(
        .finding(.listUnreadable(name: manifest.expectedLayout.listPart.path, reason: absence.reason)))
    }
    let layout = parts.layout ?? manifest.expectedLayout
    if manifest.isEncrypted == nil, manifestFault == nil { notes.append(.encryptionNotStated) }
    if layout == .manifestDB { notes += try parts.readJournals() }
    let found = try FoundEncryption(of: parts, manifest, layout) { () throws(BackupArchiveError) in
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
  }

  /// What the manifest says, and why nothing of it can be read if that is asked for, or if only an unencrypted list of
  /// files is there.
  private static func manifest(
    of parts: StoredParts, takesRemains: Bool
  ) throws(BackupArchiveError) -> (BackupManifest, fault: BackupArchiveError?) {
    guard let bytes = parts[.manifest] else {
      guard parts.database != nil else {
        throw BackupArchiveError(.notABackup, "it has no \(StoredPart.manifest.path)")
      }
      let fault = BackupArchiveError(.damaged, "it is in \(StoredPart.manifest.path), which is missing")
      return (BackupManifest(unreadable: fault), fault)
    }
    do throws(BackupArchiveError) {
      return (try BackupManifest(parsing: bytes), nil)
    } catch {
      guard takesRemains, error.category == .damaged else { throw error }
      return (BackupManifest(unreadable: error), error)
    }
  }

  /// What a property list says that nothing depends on; `nil` where it is not there or cannot be read, which is entered.
  private static func propertyList<Value>(
    _ part: StoredPart, of parts: StoredParts, _ unreadable: inout [UnreadablePropertyList],
    _ parse: ([UInt8]) throws(BackupArchiveError) -> Value
  ) -> Value? {
    guard let bytes = parts[part] else { return nil }
    do throws(BackupArchiveError) {
      return try parse(bytes)
    } catch {
      unreadable.append(UnreadablePropertyList(part, error))
      return nil
    }
  }

  /// The size of the list of files as it is stored, in bytes.
  public var listByteCount: Int? {
    switch layout {
    case .manifestDB: parts.database?.byteCount
    case .mbdb: parts[.oldDatabase]?.count
    }
  }

  /// Whether payloads can still be read: of a stream only what was kept of it is there.
  public var canReadPayloads: Bool {
    switch source {
    case .directory, .container: true
    case .stream: false
    }
  }

  /// The payloads that the backup stores, of all apps and domains.
  ///
  /// Known at once for one file; a directory's payloads are listed now, which takes a moment for hundreds of thousands.
  public func storedFiles() throws(BackupArchiveError) -> StoredPayloads {
    try Self.storedFiles(of: source, layout)
  }

  private static func storedFiles(
    of source: PayloadSource, _ layout: BackupLayout
  ) throws(BackupArchiveError) -> StoredPayloads {
    switch source {
    case .stream(let payloads): return payloads
    case .container(let container): return container.payloads
    case .directory(let handle, let source): return try source.payloads(of: handle.descriptor, layout: layout)
    }
  }
}
