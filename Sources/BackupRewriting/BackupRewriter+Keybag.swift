public import BackupArchive
import Files
public import KeychainFormats
import SystemPackage

extension BackupRewriter {
  /// Whether a backup can be given another password at all.
  ///
  /// - Throws: `.sealedList` for one of iOS 10.0: its records would stay sealed with the old password; `.decryptedCopy` for
  ///   a copy in clear.
  public static func checkRekeying(of archive: BackupArchive) throws(BackupArchiveError) {
    if archive.manifest.isDecryptedCopy { try archive.requireTrueClaim() }
    guard archive.hasSealedRecords else { return }
    throw BackupArchiveError(
      .sealedList, "each record in its list of files is sealed with the password it has, as iOS 10.0 wrote it")
  }

  /// Gives a backup another keybag that holds the same class keys: how its password is changed. Nothing else changes;
  /// in a directory `Manifest.plist` is the only file that is written.
  ///
  /// The manifest, or the one file that holds it, is written beside the old one and renamed: at any moment the old or
  /// the new stands. Who may read and write the file stays as it was.
  ///
  /// - Parameters:
  ///   - archive: What was opened at `path`; a backup that has changed since is left alone.
  ///   - path: Where it stands: a directory, or one file. No link.
  ///   - keybag: The bag that it gets, with the class keys that it had.
  ///   - progress: Told how many bytes of one file are copied; where it answers `false` the work ends with
  ///     `.interrupted`.
  /// - Returns: Whether the disk confirmed that it keeps the new name too.
  /// - Throws: `.unreadable` where the backup changed meanwhile; `.noSpace` and `.unwritable` where the system refuses;
  ///   `.interrupted` where `progress` said so.
  @discardableResult
  public func replaceKeybag(
    of archive: BackupArchive, at path: String, with keybag: Keybag,
    progress: @escaping Progress = { _, _ in true }
  ) throws(BackupArchiveError) -> Bool {
    try Self.checkRekeying(of: archive)
    guard let old = archive.parts[.manifest] else { throw BackupArchiveError(.damaged, "it has no manifest") }
    let new = try ManifestEdit(old).replacing(keybag: keybag)
    switch archive.source {
    case .directory: return try replaceManifest(of: archive, in: path, old: old, new: new)
    case .container: return try replaceEntry(path, of: archive, new: new, keybag: keybag, progress)
    case .stream: throw BackupArchiveError(.unsupported, "a stream cannot be changed")
    }
  }

  private func replaceManifest(
    of archive: BackupArchive, in directory: String, old: [UInt8], new: [UInt8]
  ) throws(BackupArchiveError) -> Bool {
    let path =
      directory.hasSuffix("/") ? directory + StoredPart.manifest.path : "\(directory)/\(StoredPart.manifest.path)"
    let placement = BackupPlacement(system: system)
    placement.sweepLeftovers(besideDirectory: directory)
    let placed = try placement.placeFile(
      at: path, byteCount: Int64(new.count), replace: true, keepsAccess: true,
      check: { (_) throws(BackupArchiveError) in
        guard try reopen(directory, like: archive).parts[.manifest] == old else {
          throw BackupArchiveError(.unreadable, "\(StoredPart.manifest.path) changed meanwhile")
        }
      },
      fill: { (descriptor) throws(WriteFailure) in
        do throws(Errno) {
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
    _ progress: @escaping Progress
  ) throws(BackupArchiveError) -> Bool {
    let stored = try archive.storedFiles()
    let meter = CopyMeter(total: stored.byteCount + archive.partByteCount, progress)
    let walk = self.walk(through: archive, at: path)
    var outgoing = OutgoingBackup(directoryName: nil, byteCount: meter.total) { (sink) throws(WriteFailure) in
      try walk.forEachFile { (file) throws(WriteFailure) in
        guard !file.isOwn || file.path != StoredPart.manifest.path else {
          return try sink.add(file.name, new, modificationTime: file.modificationTime)
        }
        try file.copy(to: sink, as: file.name, modificationTime: file.modificationTime, meter)
      }
    }
    outgoing.check = { (written) throws(BackupArchiveError) in
      let copy = try reopen(written, like: archive)
      guard copy.keybag == keybag, copy.parts.database?.sha256 == archive.parts.database?.sha256,
        try copy.storedFiles() == stored
      else { throw BackupArchiveError(.unreadable, "the backup changed while it was copied") }
    }
    let placed = try BackupPlacement(system: system)
      .placeFile(outgoing, at: path, format: try walk.format(), replace: true, keepsAccess: true)
    return placed.isDurable
  }
}
