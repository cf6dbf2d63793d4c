package import Basics
package import KeychainCrypto
import KeychainFormats
import SystemPackage

extension BackupRewriter {
  /// Adds a seal to a backup: `Keyhaul.seal`, with the size and SHA-256 digest of each file. Other files stay
  /// unchanged.
  ///
  /// In a directory, only the seal is written. A container file is copied, with the seal as its last entry, and the
  /// complete copy replaces the original.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`. A backup that has changed since is not replaced.
  ///   - path: The path of the backup: a directory or a container file, not a link.
  ///   - keys: The unlocked class keys, or `nil` if the seal is unkeyed (`usesKeyedSeal`).
  ///   - progress: Receives the number of read bytes. If it returns `false`, the work ends with `.interrupted`.
  /// - Returns: The number of sealed files.
  /// - Throws: `.occupied` if the backup has a seal; `.keyUnavailable` if keys are required; `.changed` if the backup
  ///   changed after it was opened; `.noSpace` or `.unwritable`; `.interrupted`.
  package func seal(
    _ archive: BackupArchive, at path: String, keys: ClassKeys?,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> Int {
    try archive.requireUsable(for: .copying)
    guard archive.seal == nil else { throw KeyhaulError(.occupied, "it is already sealed") }
    let builder = try SealBuilder(of: archive, keys: keys)
    let stored = try archive.storedFiles()
    let copyProgress = CopyProgress(total: stored.byteCount + archive.metadataByteCount, progress)
    return try withWriteLock(on: archive, at: path) { () throws(KeyhaulError) in
      try writeSeal(stored, builder, copyProgress, of: archive, at: path)
    }
  }

  /// Writes the seal. Returns the number of sealed files.
  private func writeSeal(
    _ stored: StoredPayloads, _ builder: SealBuilder, _ copyProgress: CopyProgress, of archive: BackupArchive,
    at path: String
  ) throws(KeyhaulError) -> Int {
    switch archive.source {
    case .directory:
      let seal = try builder.seal(of: try archive.sealEntries(of: stored, copyProgress))
      try placeSeal(seal, in: path, of: archive, stored)
      return seal.count
    case .container: return try appendSeal(to: path, of: archive, stored, builder, copyProgress)
    case .stream: throw KeyhaulError(.unsupported, "a stream cannot be changed")
    }
  }

  private func placeSeal(
    _ seal: SealFile, in directory: String, of archive: BackupArchive, _ stored: StoredPayloads
  ) throws(KeyhaulError) {
    let name = MetadataFile.seal.path
    _ = try BackupInstaller(system: system).placeFile(
      at: directory.hasSuffix("/") ? directory + name : "\(directory)/\(name)", byteCount: Int64(seal.bytes.count),
      replace: false,
      check: { (_) throws(KeyhaulError) in
        let current = try reopen(directory, like: archive)
        guard current.digest == archive.digest, try current.storedFiles() == stored else { throw Self.changed }
      },
      fill: { (descriptor) throws(KeyhaulError) in
        do throws(Errno) {
          try system.writeAll(seal.bytes, to: descriptor)
        } catch {
          throw .writing(error)
        }
        return Int64(seal.bytes.count)
      })
  }

  private static let changed = KeyhaulError(.changed, "the backup changed while it was being sealed")

  /// Copies and measures all entries, and adds the seal.
  private func appendSeal(
    to path: String, of archive: BackupArchive, _ stored: StoredPayloads, _ builder: SealBuilder,
    _ copyProgress: CopyProgress
  ) throws(KeyhaulError) -> Int {
    let files = self.files(of: archive, at: path)
    let counts = CopyCounts()
    var outgoing = OutgoingBackup(
      directoryName: nil, byteCount: copyProgress.total, isEncrypted: archive.areFilesEncrypted
    ) { (target) throws(KeyhaulError) in
      let sink = try SealingSink(target, layout: archive.layout, directory: files.directory)
      counts.fileCount = try Self.copy(files, to: sink, sealedBy: builder, copyProgress)
    }
    outgoing.check = { (written) throws(KeyhaulError) in
      let copy = try reopen(written, like: archive)
      guard copy.digest == archive.digest, try copy.storedFiles() == stored, copy.seal?.violations == [] else {
        throw Self.changed
      }
    }
    _ = try BackupInstaller(system: system)
      .placeFile(outgoing, at: path, format: try files.format(), replace: true, keeping: .all)
    return counts.fileCount
  }

  /// Copies all files, and adds their seal next to the manifest, with the manifest's time.
  ///
  /// - Returns: The number of sealed files.
  private static func copy(
    _ files: BackupFiles, to sink: SealingSink, sealedBy builder: SealBuilder, _ copyProgress: CopyProgress
  ) throws(KeyhaulError) -> Int {
    var time: Int64 = 0
    var prefix = EntryName.none
    try files.forEachFile { (file) throws(KeyhaulError) in
      if file.isPartOfBackup, file.path == MetadataFile.manifest.path {
        time = file.modificationTime
        prefix = file.name.dropLast(file.path.utf8.count)
      }
      try file.copy(to: sink, as: file.name, modificationTime: file.modificationTime, copyProgress)
    }
    let seal = try builder.seal(of: sink.entries)
    try sink.add(prefix + MetadataFile.seal.path, seal.bytes, modificationTime: time)
    return seal.count
  }
}

extension BackupArchive {
  /// Measures all files that a seal includes.
  fileprivate func sealEntries(
    of stored: StoredPayloads, _ copyProgress: CopyProgress
  ) throws(KeyhaulError) -> [SealFile.Entry] {
    var entries = try metadataSealEntries()
    for entry in entries { try copyProgress.addRead(Int(clamping: entry.byteCount)) }
    try forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
      entries.append(try sealEntry(of: payload, copyProgress))
    }
    return entries
  }

  private func sealEntry(
    of payload: StoredPayload, _ copyProgress: CopyProgress
  ) throws(KeyhaulError) -> SealFile.Entry {
    let identifier = payload.fileIdentifier
    let digest = try translatingErrors(in: identifier) { () throws(DataProtectionError) in try DigestStream(.sha256) }
    var byteCount: Int64 = 0
    _ = try payload.forEachChunk { (chunk) throws(KeyhaulError) in
      try translatingErrors(in: identifier) { () throws(DataProtectionError) in try digest.update(chunk) }
      byteCount += Int64(chunk.count)
      try copyProgress.addRead(chunk.count)
    }
    let sha256 = try translatingErrors(in: identifier) { () throws(DataProtectionError) in try digest.finish() }
    return SealFile.Entry(path: layout.storedPath(of: identifier), byteCount: byteCount, sha256: sha256)
  }
}

extension CopyProgress {
  /// Adds a number of bytes that were only read.
  fileprivate func addRead(_ count: Int) throws(KeyhaulError) {
    do throws(KeyhaulError) { try add(count) } catch { throw KeyhaulError(.interrupted, "it was stopped") }
  }
}
