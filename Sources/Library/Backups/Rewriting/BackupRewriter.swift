package import Basics

/// Writes a backup again from where it stands: in another form, with another keybag, encrypted or in clear.
///
/// Whatever is written is held against the backup that was opened, and takes its place only when it is whole.
package struct BackupRewriter: Sendable {
  let system: FileSystem
  let limits: ArchiveLimits
  private let locks: Bool

  /// Creates a rewriter of the real file system with the standard limits.
  ///
  /// - Parameter locks: Whether each change locks the backup for writing, and then checks that it is still the backup
  ///   that was opened, whose own lock ends with it. Pass `false` if the caller locked the backup before it was opened.
  package init(locks: Bool = true) { self.init(system: .real, locks: locks) }

  package init(system: FileSystem, limits: ArchiveLimits = .standard, locks: Bool = true) {
    self.system = system
    self.limits = limits
    self.locks = locks
  }

  /// Runs a change of a backup while no other process reads or changes it.
  ///
  /// - Throws: `.busy` if another process uses the backup; `.changed` if the backup is no longer the one that was
  ///   opened; any error of the change.
  func changing<Value>(
    _ archive: BackupArchive, at path: String, _ change: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    guard locks else { return try change() }
    archive.lock?.release()
    let lock = try BackupLock.acquire(path, for: .writing, system: system)
    defer { lock?.release() }
    let now = try reopen(path, like: archive)
    guard now.digest == archive.digest, now.parts[.seal] == archive.parts[.seal] else {
      throw KeyhaulError(.changed, "it changed after it was opened")
    }
    return try change()
  }

  /// Goes through a backup's files where they stand.
  func walk(through archive: BackupArchive, at path: String) -> BackupWalk {
    BackupWalk(archive: archive, path: path, limits: limits, system: system)
  }

  /// What stands at a path now, opened as the archive was, which it is held against.
  func reopen(_ path: String, like archive: BackupArchive) throws(KeyhaulError) -> BackupArchive {
    try BackupArchive.open(.path(path), limits: limits, storage: archive.storage, system: system)
  }

  /// Whether the seal fits two manifests, because a change of the password was ended before its last step. The next one
  /// does that step.
  package static func hasUnfinishedSeal(_ archive: BackupArchive) -> Bool {
    archive.seal?.list.map { $0.entries(at: StoredPart.manifest.path).count > 1 } ?? false
  }

  /// Removes what runs that were killed left of a backup's next form: for a call that finds nothing to change, as every
  /// other one does it before it writes.
  ///
  /// - Parameter path: Where the archive was opened: a directory, or one file. No link.
  package func removeLeftovers(of archive: BackupArchive, at path: String) {
    removeLeftovers(at: path, isDirectory: archive.hasPayloadsApart)
  }

  /// The same of what was found to be a copy of another one.
  package func removeLeftovers(at path: String, isDirectory: Bool) {
    guard let place = DestinationPath(path), let parent = try? system.openDirectory(place.parent) else { return }
    BackupPlacement(system: system).sweepDirectories(of: place, in: parent)
    guard isDirectory else { return system.removeLeftovers(of: place, .file, in: parent) }
    guard let directory = try? system.openDirectory(path) else { return }
    for part in [StoredPart.manifest, .seal] {
      if let place = DestinationPath(part.path) { system.removeLeftovers(of: place, .file, in: directory) }
    }
  }

  /// Where a changed backup is written.
  package enum Target: Sendable {
    /// In the place of the backup itself.
    case inPlace
    /// To a copy. The backup itself stays as it is.
    case copy(ArchiveDestination, replace: Bool)

    var isCopy: Bool { if case .copy = self { true } else { false } }

    /// The name of a file where it is written.
    func name(of file: BackupWalk.File) -> EntryName { isCopy ? EntryName(file.path) : file.name }

    /// The time of a file where it is written: in a copy that of the backup.
    func modificationTime(of file: BackupWalk.File, in archive: BackupArchive) -> Int64 {
      isCopy ? archive.entryTime : file.modificationTime
    }
  }

  /// Puts a changed backup where it goes.
  ///
  /// - Parameter access: The owner and permissions to keep from the backup that is replaced.
  func place(
    _ outgoing: OutgoingBackup, of walk: BackupWalk, to target: Target, keeping access: PreservedAccess
  ) throws(KeyhaulError) -> BackupPlacement.Placed {
    let placement = BackupPlacement(system: system)
    switch target {
    case .inPlace:
      return try changing(walk.archive, at: walk.path) { () throws(KeyhaulError) in
        walk.isDirectory
          ? try placement.placeDirectory(outgoing, at: walk.path, replace: true, keeping: access)
          : try placement.placeFile(
            outgoing, at: walk.path, format: try walk.format(), replace: true, keeping: access)
      }
    case .copy(let destination, let replace): return try placement.place(outgoing, at: destination, replace: replace)
    }
  }

  /// Told how many bytes of how many are copied; ends the work where it answers `false`.
  package typealias Progress = (_ done: Int64, _ total: Int64) -> Bool
}

/// What was written, and where.
public struct RewrittenBackup: Sendable, Equatable {
  /// Where the copy now stands; `nil` for a stream.
  public let path: String?
  /// Of the file or stream, or of all files in the directory.
  public let byteCount: Int64
  /// How many files were written, the property lists among them.
  public let fileCount: Int
  /// Whether the disk confirmed that it keeps the copy's name too; never so for a stream.
  public let isDurable: Bool
  /// A replaced backup that could not be removed, by its path.
  public let leftover: String?
  /// Files beside the backup's own, which are no part of it and were not copied.
  public let foreignFiles: [String]
}
