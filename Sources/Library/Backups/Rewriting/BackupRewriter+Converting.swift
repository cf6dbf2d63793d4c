package import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage

extension BackupRewriter {
  /// Copies a backup between a directory and a container file, completely or not at all, with constant memory. All
  /// stored bytes stay unchanged, so that no password is required.
  ///
  /// The entries get the backup's date, or the closest that the format supports. If the date does not fit in a 64-bit
  /// number, the entries get the date 1970, like the entries of a backup without a date.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`, with which the copy is compared.
  ///   - path: The path of the backup: a directory or a container file.
  ///   - destination: The location and format of the copy.
  ///   - replace: Whether to replace an existing backup or file.
  ///   - progress: Receives the number of copied bytes. If it returns `false`, the work ends with `.interrupted`.
  /// - Throws: The errors of `BackupWriter`; `.changed` if the backup changed after it was opened; `.interrupted`.
  package func convert(
    _ archive: BackupArchive, at path: String, to destination: BackupDestination, replace: Bool = false,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup {
    try archive.requireUsable(for: .copying)
    let stored = try archive.storedFiles()
    let copyProgress = CopyProgress(total: stored.byteCount + archive.metadataByteCount, progress)
    let time = archive.entryTime
    let counts = CopyCounts()
    let files = self.files(of: archive, at: path)
    var outgoing = OutgoingBackup(
      directoryName: archive.directoryName, byteCount: copyProgress.total, isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(KeyhaulError) in
      counts.unrelatedFiles += try files.forEachFile { (file) throws(KeyhaulError) in
        guard file.isPartOfBackup else {
          counts.unrelatedFiles.append(file.name.shown)
          return
        }
        try file.copy(to: sink, as: EntryName(file.path), modificationTime: time, copyProgress)
        counts.fileCount += 1
      }
    }
    outgoing.check = { (written) throws(KeyhaulError) in
      let copy = try reopen(written, like: archive)
      guard copy.digest == archive.digest, try copy.storedFiles() == stored else {
        throw KeyhaulError(.changed, "the backup changed while it was being copied")
      }
    }
    let installed = try BackupInstaller(system: system).place(outgoing, at: destination, replace: replace)
    return RewrittenBackup(
      path: installed.path, byteCount: installed.byteCount, fileCount: counts.fileCount,
      isDurable: installed.isDurable, leftover: installed.leftover, unrelatedFiles: counts.unrelatedFiles)
  }

  /// The number of copied files, and the names of the files that are not part of the backup.
  final class CopyCounts {
    var fileCount = 0
    var unrelatedFiles: [String] = []
  }
}

extension BackupArchive {
  /// The total size of the metadata files, without the keychain file and the journals.
  var metadataByteCount: Int64 {
    [MetadataFile.manifest, .status, .info, .oldDatabase, .seal].reduce(Int64(parts.database?.byteCount ?? 0)) {
      $0 + Int64(parts[$1]?.count ?? 0)
    }
  }

  /// The time that every file in a copy gets, in seconds since 1970: the date of the backup, or 0 if it is unknown.
  var entryTime: Int64 { date.flatMap { Int64(exactly: $0.secondsSince1970.rounded(.down)) } ?? 0 }

  /// The name of the directory that a copy of the backup creates.
  var directoryName: String { BackupDirectory.name(for: device.identifier) }
}

extension BackupRewriter {
  /// Checks whether an existing backup equals the result of `convert`: the same format, and the same bytes in each
  /// file. Reads both backups completely.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`.
  ///   - path: The path of the backup: a directory or a container file.
  ///   - existingPath: The path of the existing file or directory.
  ///   - destination: The location and format for `convert`.
  ///   - progress: Receives the number of read bytes. If it returns `false`, the work ends with `.interrupted`.
  /// - Returns: The existing copy, or `nil` if it differs or is unreadable. Times and the order of entries are ignored.
  /// - Throws: `.interrupted`, or the errors of a failed read of `archive`.
  package func existingCopy(
    of archive: BackupArchive, at path: String, in existingPath: String, as destination: BackupDestination,
    progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup? {
    guard let copy = try? reopen(existingPath, like: archive), copy.digest == archive.digest else { return nil }
    let files = self.files(of: copy, at: existingPath)
    guard Self.hasFormat(of: destination, files) else { return nil }
    let stored = try archive.storedFiles()
    guard (try? copy.storedFiles()) == stored else { return nil }
    let byteCount = stored.byteCount + archive.metadataByteCount
    // The original and the existing copy are both read.
    let copyProgress = CopyProgress(total: byteCount * 2, progress)
    let originalFiles = try measured(self.files(of: archive, at: path), copyProgress)
    let copiedFiles: MeasuredFiles
    do throws(KeyhaulError) {
      copiedFiles = try measured(files, copyProgress)
    } catch {
      if error.code == .interrupted || error.isResourceShortage { throw error }
      return nil
    }
    guard copiedFiles.digests == originalFiles.digests, copiedFiles.unmeasuredNames.isEmpty else { return nil }
    let status = files.isDirectory ? nil : try? system.status(of: existingPath, followsLink: true)
    return RewrittenBackup(
      path: existingPath, byteCount: status?.byteCount ?? byteCount, fileCount: copiedFiles.digests.count,
      isDurable: false, leftover: nil, unrelatedFiles: originalFiles.unmeasuredNames)
  }

  private static func hasFormat(of destination: BackupDestination, _ files: BackupFiles) -> Bool {
    switch destination {
    case .directory: files.isDirectory
    case .file(_, let format): !files.isDirectory && (try? files.format()) == format
    case .stream: false
    }
  }

  private struct MeasuredFiles {
    /// The SHA-256 digests of the backup's files, by path.
    var digests: [String: [UInt8]] = [:]
    /// The names of files that are not part of the backup, are duplicated, or exceed the limits.
    var unmeasuredNames: [String] = []
  }

  private func measured(_ files: BackupFiles, _ copyProgress: CopyProgress) throws(KeyhaulError) -> MeasuredFiles {
    var measured = MeasuredFiles()
    do throws(KeyhaulError) {
      let unrelatedPaths = try files.forEachFile { (file) throws(KeyhaulError) in
        guard file.isPartOfBackup, file.byteCount <= file.byteLimit, measured.digests[file.path] == nil else {
          measured.unmeasuredNames.append(file.name.shown)
          return
        }
        measured.digests[file.path] = try Self.digest(of: file, copyProgress)
      }
      measured.unmeasuredNames += unrelatedPaths
    } catch {
      throw BackupInstaller(system: system).explain(error, path: files.path, needs: nil)
    }
    return measured
  }

  private static func digest(of file: BackupFiles.File, _ copyProgress: CopyProgress) throws(KeyhaulError)
    -> [UInt8]
  {
    let digest = try translatingErrors(in: file.path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
    try file.forEachChunk { (chunk) throws(KeyhaulError) in
      try translatingErrors(in: file.path) { () throws(DataProtectionError) in try digest.update(chunk) }
      try copyProgress.add(chunk.count)
    }
    return try translatingErrors(in: file.path) { () throws(DataProtectionError) in try digest.finish() }
  }
}
