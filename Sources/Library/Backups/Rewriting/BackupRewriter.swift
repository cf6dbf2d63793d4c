package import Basics

/// Rewrites a backup: in a different format, with a different keybag, encrypted, or decrypted.
///
/// The result is compared with the original, and replaces it only when it is complete.
package struct BackupRewriter: Sendable {
  let system: FileSystem
  let limits: BackupLimits
  private let takesFileLock: Bool

  /// Creates a rewriter for the real file system with the standard limits.
  ///
  /// - Parameter takesFileLock: Whether each change takes the file lock for writing. Pass `false` if the caller took it
  ///   before opening the backup.
  package init(takesFileLock: Bool = true) { self.init(system: .real, takesFileLock: takesFileLock) }

  package init(system: FileSystem, limits: BackupLimits = .standard, takesFileLock: Bool = true) {
    self.system = system
    self.limits = limits
    self.takesFileLock = takesFileLock
  }

  /// Runs a change of a backup while no other process reads or changes the backup.
  ///
  /// Releases the archive's file lock for reading, takes the lock for writing, and checks that the backup has not changed
  /// since it was opened. If the caller holds the lock (`takesFileLock` is `false`), this only runs the change.
  ///
  /// - Throws: `.busy` if another process uses the backup, `.changed` if it is no longer the one that was opened, or
  ///   the errors of the change.
  func withWriteLock<Value>(
    on archive: BackupArchive, at path: String, _ change: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    guard takesFileLock else { return try change() }
    archive.lock?.release()
    let lock = try BackupLock.acquire(path, for: .writing, system: system)
    defer { lock?.release() }
    let current = try reopen(path, like: archive)
    guard current.digest == archive.digest, current.parts[.seal] == archive.parts[.seal] else {
      throw KeyhaulError(.changed, "it changed after it was opened")
    }
    return try change()
  }

  /// Returns the files of a backup.
  func files(of archive: BackupArchive, at path: String) -> BackupFiles {
    BackupFiles(archive: archive, path: path, limits: limits, system: system)
  }

  /// Opens the current backup at a path in the same way as `archive` was opened, for comparison.
  func reopen(_ path: String, like archive: BackupArchive) throws(KeyhaulError) -> BackupArchive {
    try BackupArchive.open(.path(path), limits: limits, storage: archive.storage, system: system)
  }

  /// Returns whether a change of the password was interrupted before its last step. The seal then lists two manifests,
  /// the old one and the new one, until the next change of the password.
  package static func hasUnfinishedSeal(_ archive: BackupArchive) -> Bool {
    archive.seal?.contents.map { $0.entries(at: MetadataFile.manifest.path).count > 1 } ?? false
  }

  /// Removes temporary files that interrupted runs have left. Call this if nothing has to be changed: an operation that
  /// writes removes them itself.
  ///
  /// - Parameter path: The path of the backup: a directory or a container file, not a link.
  package func removeLeftovers(of archive: BackupArchive, at path: String) {
    removeLeftovers(at: path, isDirectory: archive.hasSeparatePayloadFiles)
  }

  /// Removes temporary files next to the backup at a path and, if the backup is a directory, inside it.
  package func removeLeftovers(at path: String, isDirectory: Bool) {
    guard let destination = DestinationPath(path), let parent = try? system.openDirectory(destination.parent) else {
      return
    }
    BackupInstaller(system: system).removeLeftovers(of: destination, in: parent)
    guard isDirectory else { return system.removeLeftovers(of: destination, .file, in: parent) }
    guard let directory = try? system.openDirectory(path) else { return }
    for part in [MetadataFile.manifest, .seal] {
      if let destination = DestinationPath(part.path) { system.removeLeftovers(of: destination, .file, in: directory) }
    }
  }

  /// The destination of a changed backup.
  package enum Target: Sendable {
    /// Replaces the backup itself.
    case inPlace
    /// Writes a copy. The backup itself stays unchanged.
    case copy(BackupDestination, replace: Bool)

    var isCopy: Bool { if case .copy = self { true } else { false } }

    /// Returns the name under which a file is written.
    func name(of file: BackupFiles.File) -> EntryName { isCopy ? EntryName(file.path) : file.name }

    /// Returns the modification time with which a file is written. All files of a copy have the backup's date.
    func modificationTime(of file: BackupFiles.File, in archive: BackupArchive) -> Int64 {
      isCopy ? archive.entryTime : file.modificationTime
    }
  }

  /// Writes a changed backup to its target.
  ///
  /// - Parameter access: The owner and permissions of the replaced backup, which the new one gets.
  func install(
    _ outgoing: OutgoingBackup, of files: BackupFiles, to target: Target, keeping access: PreservedAccess
  ) throws(KeyhaulError) -> BackupInstaller.InstalledBackup {
    let installer = BackupInstaller(system: system)
    switch target {
    case .inPlace:
      return try withWriteLock(on: files.archive, at: files.path) { () throws(KeyhaulError) in
        files.isDirectory
          ? try installer.placeDirectory(outgoing, at: files.path, replace: true, keeping: access)
          : try installer.placeFile(
            outgoing, at: files.path, format: try files.format(), replace: true, keeping: access)
      }
    case .copy(let destination, let replace): return try installer.place(outgoing, at: destination, replace: replace)
    }
  }

  /// Receives the number of bytes that were copied, and the total number of bytes. Returns `false` to stop.
  package typealias Progress = (_ done: Int64, _ total: Int64) -> Bool
}

/// The result of rewriting a backup.
public struct RewrittenBackup: Sendable, Equatable {
  /// The path of the copy, or `nil` if it is a stream.
  public let path: String?
  /// The size of the file or stream, or the total size of the files in the directory.
  public let byteCount: Int64
  /// The number of written files, including property lists.
  package let fileCount: Int
  /// Whether the directory entry was synced, so that the copy survives a power failure. `false` for a stream.
  package let isDurable: Bool
  /// The path of a replaced backup that could not be removed.
  public let leftover: String?
  /// Files in the directory that are not part of the backup and were not copied.
  package let unrelatedFiles: [String]
}
