import Backups
public import Basics

extension SensitiveBytes {
  /// Writes the bytes to a new file that only its owner can read, completely or not at all.
  ///
  /// - Throws: Category `usage` if the path exists; `failed` if the disk is full.
  public func write(toNewFile path: String) throws(KeyhaulError) {
    try withBytes { (bytes) throws(KeyhaulError) in
      // The installer writes under a temporary name, then renames the file.
      try BackupInstaller(system: .real).placeNewFile(at: path, bytes)
    }
  }
}
