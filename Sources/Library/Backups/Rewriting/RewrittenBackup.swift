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
