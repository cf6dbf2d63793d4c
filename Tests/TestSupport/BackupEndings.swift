/// The ends of the paths of backups.
package enum BackupEndings {
  /// One end for each form in which Keyhaul writes a backup: the formats of container files, and a folder.
  package static let all = [".tar", ".tar.gz", ".tar.zst", ".zip", "/"]
}
