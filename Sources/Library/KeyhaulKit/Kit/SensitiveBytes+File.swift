import Backups
public import Basics

extension SensitiveBytes {
  /// Writes the bytes to a file that only its owner can read: the file is complete, or there is none.
  ///
  /// - Throws: Category `usage` if there is something at the path; `failed` if the disk is full.
  public func write(toNewFile path: String) throws(KeyhaulError) {
    try withBytes { (bytes) throws(KeyhaulError) in
      try BackupInstaller(system: .real).placeNewFile(at: path, bytes)
    }
  }
}
