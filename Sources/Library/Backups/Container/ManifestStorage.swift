/// Where a large list of files and a large keychain file are kept while they are read.
///
/// They stay there as the backup has them: encrypted ones are decrypted a part at a time.
public enum ManifestStorage: Sendable, Hashable {
  /// A file of its own that has no name, so that nothing of it is left however the process ends. It lies in the
  /// directory that `TMPDIR` names, or in `/tmp`. Files below `minimumFileByteCount` are kept in memory all the same.
  case temporaryFile
  /// Memory, of any size up to the limit.
  case memory

  /// Below this many bytes neither is worth a file.
  public static let minimumFileByteCount = 8 << 20
}
