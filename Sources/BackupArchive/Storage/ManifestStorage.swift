/// Where a large list of files is kept while it is read.
///
/// It stays encrypted there, and is decrypted a page at a time.
public enum ManifestStorage: Sendable, Hashable {
  /// A file of its own that has no name, so that nothing of it is left however the process ends. It lies in the
  /// directory that `TMPDIR` names, or in `/tmp`. Lists below `minimumFileByteCount` are kept in memory all the same.
  case temporaryFile
  /// Memory, of any size up to the limit.
  case memory

  /// Below this many bytes a list is not worth a file.
  public static let minimumFileByteCount = 8 << 20
}
