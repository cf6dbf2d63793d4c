public import KeychainFormats

/// Gives a backup another keybag that holds the same class keys: how its password is changed. Nothing else of the backup
/// changes; in a folder `Manifest.plist` is the only file that is written.
public struct KeybagReplacement: Sendable {
  private let system: FileSystem
  private let limits: ArchiveLimits

  public init() { self.init(system: .real) }

  package init(system: FileSystem, limits: ArchiveLimits = .standard) {
    self.system = system
    self.limits = limits
  }

  /// Writes the backup's manifest anew, or the one file that holds it, beside the old one and renames it: at any moment
  /// the old or the new stands. Who may read and write the file stays as it was.
  ///
  /// - Parameters:
  ///   - archive: What was opened at `path`; a backup that has changed since is left alone.
  ///   - path: Where it stands: a folder, or one file. No link.
  /// - Returns: Whether the disk confirmed that it keeps the new name too.
  /// - Throws: `.unreadable` where the backup changed meanwhile; `.noSpace` and `.unwritable` where the system refuses;
  ///   `.interrupted` where `progress` said so.
  @discardableResult
  public func replace(
    _ archive: BackupArchive, at path: String, with keybag: Keybag,
    progress: @escaping BackupConverter.Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> Bool {
    guard let old = archive.parts[.manifest] else { throw BackupArchiveError(.damaged, "it has no manifest") }
    let new = try ManifestEdit(old).replacing(keybag: keybag)
    switch archive.source {
    case .folder: return try replaceFile(path, old: old, new: new, storage: archive.storage)
    case .container: return try replaceEntry(path, of: archive, new: new, keybag: keybag, progress)
    case .stream: throw BackupArchiveError(.unsupported, "a stream cannot be changed")
    }
  }

  private func replaceFile(
    _ folder: String, old: [UInt8], new: [UInt8], storage: ManifestStorage
  ) throws(BackupArchiveError) -> Bool {
    let path = folder.hasSuffix("/") ? folder + StoredPart.manifest.path : "\(folder)/\(StoredPart.manifest.path)"
    let placement = BackupPlacement(system: system)
    let placed = try placement.placeFile(
      at: path, byteCount: Int64(new.count), replace: true, keepsAccess: true,
      check: { (_) throws(BackupArchiveError) in
        let now = try BackupArchive.open(
          .path(folder), limits: limits, storage: storage, system: system)
        guard now.parts[.manifest] == old else {
          throw BackupArchiveError(.unreadable, "\(StoredPart.manifest.path) changed meanwhile")
        }
      },
      fill: { (descriptor) throws(WriteFailure) in
        do throws(SystemFailure) {
          try system.writeAll(new, to: descriptor)
        } catch {
          throw .system(error)
        }
        return Int64(new.count)
      })
    return placed.isDurable
  }

  /// Copies every entry as it is, but for the manifest.
  private func replaceEntry(
    _ path: String, of archive: BackupArchive, new: [UInt8], keybag: Keybag,
    _ progress: @escaping BackupConverter.Progress
  ) throws(BackupArchiveError) -> Bool {
    let stored = try archive.storedFiles()
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let walk = BackupWalk(archive: archive, path: path, limits: limits, system: system)
    var outgoing = OutgoingBackup(folderName: nil, byteCount: meter.total) { (sink) throws(WriteFailure) in
      try walk.forEachFile { (file) throws(WriteFailure) in
        guard !file.isOwn || file.path != StoredPart.manifest.path else {
          return try sink.add(file.name, new, modificationTime: file.modificationTime)
        }
        try file.copy(to: sink, as: file.name, modificationTime: file.modificationTime, meter)
      }
    }
    outgoing.check = { (written) throws(BackupArchiveError) in
      let copy = try BackupArchive.open(
        .path(written), limits: limits, storage: archive.storage, system: system)
      guard copy.keybag == keybag, copy.parts.database?.sha256 == archive.parts.database?.sha256,
        try copy.storedFiles() == stored
      else { throw BackupArchiveError(.unreadable, "the backup changed while it was copied") }
    }
    let placed = try BackupPlacement(system: system)
      .placeFile(outgoing, at: path, format: try walk.format(), replace: true, keepsAccess: true)
    return placed.isDurable
  }
}
