/// The ends of the paths of backups.
package enum BackupEndings {
  /// The ends of the names of all forms of a backup that Keyhaul writes: each container format, and a folder.
  package static let all = [".tar", ".tar.gz", ".tar.zst", ".zip", "/"]
}
