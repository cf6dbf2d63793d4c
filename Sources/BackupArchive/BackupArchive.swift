public import KeychainFormats

/// A backup as Finder, iTunes, idevicebackup2 or this program wrote it, iOS 10.2 and later: a folder, or one file made
/// from such a folder.
///
/// Opening reads the parts that matter into memory, once and under limits. All later questions are answered from there,
/// so that a backup which is swapped meanwhile cannot answer one of them differently.
public struct BackupArchive: Sendable {
  public let manifest: BackupManifest
  /// `nil` where there is no `Status.plist`.
  public let status: BackupStatus?
  /// What was unusual, and tolerated.
  public let notes: [ArchiveNote]
  /// The same for the same backup as a folder, a tar or a zip: `sha256:` and 64 hexadecimal digits.
  public let digest: String

  let parts: StoredParts
  private let payloads: Payloads

  private enum Payloads: Sendable {
    case known(StoredPayloads)
    case inFolder(FolderHandle, FolderSource)
  }

  public var keybag: Keybag { manifest.keybag }
  public var device: BackupDevice { manifest.device }
  /// When the backup was made.
  public var date: KeychainDate? { manifest.date ?? status?.date }
  /// Whether it has a password. Without that password nothing of the keychain can be seen.
  public var isEncrypted: Bool { manifest.isEncrypted }
  public var wasPasscodeSet: Bool? { manifest.wasPasscodeSet }
  /// Whether the keychain's file is stored. Known without a password, because its stored name is the same everywhere.
  public var hasKeychain: Bool { parts.keychain != nil }
  /// `Info.plist` as it is stored; the computer writes it, and nothing depends on it.
  public var infoPropertyList: [UInt8]? { parts.info }

  /// Opens a backup and checks everything that needs no password.
  ///
  /// - Throws: `.notABackup` for anything else; `.truncated` and `.damaged` for one whose bytes are not what was written;
  ///   `.hostile` and `.overLimit` for one that no device makes; `.unfinished` where the device was interrupted.
  public static func open(
    _ location: ArchiveLocation, limits: ArchiveLimits = .standard
  ) throws(BackupArchiveError) -> BackupArchive {
    try open(location, limits: limits, system: .real)
  }

  package static func open(
    _ location: ArchiveLocation, limits: ArchiveLimits, system: FileSystem
  ) throws(BackupArchiveError) -> BackupArchive {
    switch location {
    case .stream(let descriptor): return try read(descriptor, limits: limits, system: system)
    case .path(let path):
      let descriptor = try opened(path) { () throws(SystemFailure) in try system.openForReading(path) }
      let file = descriptor.raw
      let status = try opened(path) { () throws(SystemFailure) in try system.status(of: file) }
      switch status.kind {
      case .directory:
        let source = FolderSource(system: system, limits: limits)
        let parts = try source.read(descriptor)
        return try BackupArchive(parts, .inFolder(FolderHandle(descriptor), source))
      case .file: return try read(descriptor.raw, limits: limits, system: system)
      case .other:
        throw BackupArchiveError(.notABackup, "\(quoted(path)) is neither a folder nor a regular file")
      }
    }
  }

  private static func read(
    _ descriptor: Int32, limits: ArchiveLimits, system: FileSystem
  ) throws(BackupArchiveError) -> BackupArchive {
    let feed = try DescriptorFeed(descriptor: descriptor, system: system)
    let (parts, payloads) = try ContainerSource(limits: limits).read(feed)
    return try BackupArchive(parts, .known(payloads))
  }

  private init(_ parts: StoredParts, _ payloads: Payloads) throws(BackupArchiveError) {
    guard let manifestBytes = parts.manifest else {
      throw BackupArchiveError(.notABackup, "it has no \(StoredPart.manifest.path)")
    }
    guard parts.database != nil else {
      guard !parts.hasOldDatabase else {
        throw BackupArchiveError(
          .unsupported, "its list of files is a \(StoredPart.oldDatabase.path), as iOS 9 and earlier wrote it")
      }
      throw BackupArchiveError(.payloadMissing, "it has no \(StoredPart.database.path)")
    }
    manifest = try BackupManifest(parsing: manifestBytes)
    if let statusBytes = parts.status {
      let status = try BackupStatus(parsing: statusBytes)
      try status.requireFinished()
      self.status = status
      notes = []
    } else {
      status = nil
      notes = [.statusMissing]
    }
    digest = try ArchiveDigest.digest(of: parts)
    self.parts = parts
    self.payloads = payloads
  }

  /// The payloads that the backup stores, of all apps and domains.
  ///
  /// Known at once for one file; a folder's payloads are listed now, which takes a moment for hundreds of thousands.
  public func storedFiles() throws(BackupArchiveError) -> StoredPayloads {
    switch payloads {
    case .known(let payloads): return payloads
    case .inFolder(let handle, let source): return try source.payloads(of: handle.descriptor)
    }
  }
}

/// An open folder that several copies of a value share.
private final class FolderHandle: Sendable {
  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}

private func opened<Value: ~Copyable>(
  _ path: String, _ body: () throws(SystemFailure) -> Value
) throws(BackupArchiveError) -> Value {
  do throws(SystemFailure) {
    return try body()
  } catch {
    throw BackupArchiveError(error.isAbsence ? .notFound : .unreadable, "\(quoted(path)): \(error.text)")
  }
}
