package import Basics
package import KeychainCrypto
package import KeychainFormats
import SystemPackage

extension BackupRewriter {
  /// Checks that the password of a backup can be changed.
  ///
  /// - Throws: `.sealedList` for iOS 10.0, whose records would stay encrypted with the old password; `.decryptedCopy`
  ///   for a decrypted copy.
  package static func checkRekeying(of archive: BackupArchive) throws(KeyhaulError) {
    if archive.manifest.isDecryptedCopy { throw BackupFinding.decryptedCopy.refusal }
    guard archive.hasEncryptedRecords else { return }
    throw KeyhaulError(
      .sealedList, "each record in its manifest is encrypted with its current password, as iOS 10.0 wrote it")
  }

  /// Replaces the keybag of a backup with one that has the same class keys, to change its password. In a directory,
  /// only `Manifest.plist` and the seal are written.
  ///
  /// The manifest or the container file is written under a temporary name and renamed, so that the old or the new one
  /// exists at any moment. Its permissions are preserved. In a directory, the seal is written twice: before the
  /// manifest with the entries of both manifests, and after it with only the new entry. So the seal matches at any
  /// moment.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`. A backup that has changed since is not replaced.
  ///   - path: The path of the backup: a directory or a container file, not a link.
  ///   - keybag: The new keybag, with the same class keys.
  ///   - keys: The unlocked class keys, which a sealed backup requires.
  ///   - progress: Receives the number of copied bytes of a container. If it returns `false`, the work ends with
  ///     `.interrupted`.
  /// - Returns: Whether the new directory entry was synced.
  /// - Throws: `.changed` if the backup changed after it was opened; `.keyUnavailable` if the seal requires keys and
  ///   none were given; `.damaged` if the backup does not match its seal; `.noSpace` or `.unwritable`; `.interrupted`.
  @discardableResult
  package func replaceKeybag(
    of archive: BackupArchive, at path: String, with keybag: Keybag, keys: ClassKeys? = nil,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> Bool {
    try Self.checkRekeying(of: archive)
    guard let oldManifest = archive.parts[.manifest] else { throw KeyhaulError(.damaged, "it has no manifest") }
    let newManifest = try ManifestEditor(oldManifest).replacing(keybag: keybag)
    let seals = try SealUpdate(of: archive, manifest: newManifest, keys: keys)
    switch archive.source {
    case .directory:
      return try withWriteLock(on: archive, at: path) { () throws(KeyhaulError) in
        try replaceManifest(of: archive, in: path, old: oldManifest, new: newManifest, seals)
      }
    case .container:
      let copy = try writeCopy(
        of: archive, at: path, to: .inPlace, manifest: newManifest, keybag: keybag, seals, progress)
      return copy.isDurable
    case .stream: throw KeyhaulError(.unsupported, "a stream cannot be changed")
    }
  }

  /// Writes a copy of a backup with a different keybag that contains the same class keys. The backup itself stays the
  /// same.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`.
  ///   - path: The path of a directory or one file.
  ///   - destination: The path and the format of the copy.
  ///   - replace: Whether a backup or a file at the destination may be replaced.
  ///   - keybag: The copy's keybag.
  ///   - keys: The unlocked class keys, which a sealed backup requires.
  ///   - progress: Called with the number of bytes copied; if it returns `false`, the work ends with `.interrupted`.
  /// - Throws: The errors of `replaceKeybag` and `BackupWriter`.
  package func copy(
    _ archive: BackupArchive, at path: String, to destination: BackupDestination, replace: Bool, with keybag: Keybag,
    keys: ClassKeys? = nil, progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup {
    try Self.checkRekeying(of: archive)
    guard let oldManifest = archive.parts[.manifest] else { throw KeyhaulError(.damaged, "it has no manifest") }
    let newManifest = try ManifestEditor(oldManifest).replacing(keybag: keybag)
    let seals = try SealUpdate(of: archive, manifest: newManifest, keys: keys)
    return try writeCopy(
      of: archive, at: path, to: .copy(destination, replace: replace), manifest: newManifest, keybag: keybag, seals,
      progress)
  }

  /// Replaces the manifest and the seal in a directory. Returns whether the new directory entries were synced.
  private func replaceManifest(
    of archive: BackupArchive, in directory: String, old: [UInt8], new: [UInt8], _ seals: SealUpdate?
  ) throws(KeyhaulError) -> Bool {
    BackupInstaller(system: system).removeLeftovers(besideDirectory: directory)
    if let seals {
      try replace(.seal, of: archive, in: directory, old: seals.old, new: seals.withBothManifests)
    }
    do throws(KeyhaulError) {
      try replace(.manifest, of: archive, in: directory, old: old, new: new)
    } catch {
      // The seal with both manifests also matches the old manifest. The original seal is restored if possible.
      if let seals { try? replace(.seal, of: archive, in: directory, old: seals.withBothManifests, new: seals.old) }
      throw error
    }
    if let seals {
      // The password is already changed. If this fails, the seal still matches, and keeps the entry of the old
      // manifest.
      try? replace(.seal, of: archive, in: directory, old: seals.withBothManifests, new: seals.new)
    }
    return syncEntries(of: directory)
  }

  /// Syncs a directory's entries. Returns whether this succeeded.
  private func syncEntries(of directory: String) -> Bool {
    guard let descriptor = try? system.openDirectory(directory) else { return false }
    return BackupInstaller(system: system).syncEntries(of: descriptor)
  }

  /// Replaces the content of a metadata file, which must be unchanged.
  private func replace(
    _ part: MetadataFile, of archive: BackupArchive, in directory: String, old: [UInt8], new: [UInt8]
  ) throws(KeyhaulError) {
    let path = directory.hasSuffix("/") ? directory + part.path : "\(directory)/\(part.path)"
    _ = try BackupInstaller(system: system).placeFile(
      at: path, byteCount: Int64(new.count), replace: true, keeping: .all,
      check: { (_) throws(KeyhaulError) in
        guard try reopen(directory, like: archive).parts[part] == old else {
          throw KeyhaulError(.changed, "\(part.path) changed in the meantime")
        }
      },
      fill: { (descriptor) throws(KeyhaulError) in
        do throws(Errno) {
          try system.writeAll(new, to: descriptor)
        } catch {
          throw .writing(error)
        }
        return Int64(new.count)
      })
  }

  /// Copies every file unchanged, except the manifest and the seal.
  private func writeCopy(
    of archive: BackupArchive, at path: String, to target: Target, manifest: [UInt8], keybag: Keybag,
    _ seals: SealUpdate?, _ progress: @escaping Progress
  ) throws(KeyhaulError) -> RewrittenBackup {
    let stored = try archive.storedFiles()
    let copyProgress = CopyProgress(total: stored.byteCount + archive.metadataByteCount, progress)
    let files = self.files(of: archive, at: path)
    let counts = CopyCounts()
    var outgoing = OutgoingBackup(
      directoryName: target.isCopy ? archive.directoryName : nil, byteCount: copyProgress.total,
      isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(KeyhaulError) in
      counts.unrelatedFiles += try files.forEachFile { (file) throws(KeyhaulError) in
        guard file.isPartOfBackup || !target.isCopy else { return counts.unrelatedFiles.append(file.name.shown) }
        let (name, time) = (target.name(of: file), target.modificationTime(of: file, in: archive))
        counts.fileCount += 1
        if file.isPartOfBackup, file.path == MetadataFile.manifest.path {
          return try sink.add(name, manifest, modificationTime: time)
        }
        if file.isPartOfBackup, file.path == MetadataFile.seal.path, let seals {
          return try sink.add(name, seals.new, modificationTime: time)
        }
        try file.copy(to: sink, as: name, modificationTime: time, copyProgress)
      }
    }
    outgoing.check = { (written) throws(KeyhaulError) in
      try check(reopen(written, like: archive), against: archive, keybag, stored)
    }
    let installed = try install(outgoing, of: files, to: target, keeping: .all)
    return RewrittenBackup(
      path: installed.path, byteCount: installed.byteCount, fileCount: counts.fileCount,
      isDurable: installed.isDurable, leftover: installed.leftover,
      unrelatedFiles: target.isCopy ? counts.unrelatedFiles : [])
  }

  /// Compares a copy with the original, except for the keybag, which must be the new one.
  private func check(
    _ copy: BackupArchive, against archive: BackupArchive, _ keybag: Keybag, _ stored: StoredPayloads
  ) throws(KeyhaulError) {
    guard copy.keybag == keybag, copy.parts.database?.sha256 == archive.parts.database?.sha256,
      try copy.storedFiles() == stored
    else { throw KeyhaulError(.changed, "the backup changed while it was being copied") }
  }
}

/// The three seals that the backup has in turn while its manifest is replaced.
private struct SealUpdate {
  let old: [UInt8]
  /// The seal with entries for both the old and the new manifest.
  let withBothManifests: [UInt8]
  /// The seal with an entry for only the new manifest.
  let new: [UInt8]

  /// Creates the seals, or returns `nil` if the backup has no seal.
  ///
  /// - Throws: `.keyUnavailable` if the seal requires keys, `.damaged` if the backup does not match its seal.
  init?(
    of archive: BackupArchive, manifest: [UInt8], keys: ClassKeys?
  ) throws(KeyhaulError) {
    guard let old = archive.parts[.seal] else { return nil }
    self.old = old
    let newFiles = [MetadataFile.manifest.path: manifest]
    let builder = try SealBuilder(of: archive, keys: keys)
    guard let new = try archive.updatedSeal(for: newFiles, by: builder),
      let withBothManifests = try archive.updatedSeal(for: newFiles, by: builder, keepsOldEntries: true)
    else { return nil }
    self.new = new.bytes
    self.withBothManifests = withBothManifests.bytes
  }
}
