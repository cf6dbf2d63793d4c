package import BackupArchive
package import Files

/// Writes a backup anew from where it stands: in another form, with another keybag, encrypted or in clear.
///
/// Whatever is written is held against the backup that was opened, and takes its place only when it is whole.
public struct BackupRewriter: Sendable {
  let system: FileSystem
  let limits: ArchiveLimits

  /// Creates a rewriter of the real file system with the standard limits.
  public init() { self.init(system: .real) }

  package init(system: FileSystem, limits: ArchiveLimits = .standard) {
    self.system = system
    self.limits = limits
  }

  /// Goes through a backup's files where they stand.
  func walk(through archive: BackupArchive, at path: String) -> BackupWalk {
    BackupWalk(archive: archive, path: path, limits: limits, system: system)
  }

  /// What stands at a path now, opened as the archive was, which it is held against.
  func reopen(_ path: String, like archive: BackupArchive) throws(BackupArchiveError) -> BackupArchive {
    try BackupArchive.open(.path(path), limits: limits, storage: archive.storage, system: system)
  }

  /// Told how many bytes of how many are copied; ends the work where it answers `false`.
  public typealias Progress = (_ done: Int64, _ total: Int64) -> Bool
}
