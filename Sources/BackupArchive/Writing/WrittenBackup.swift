/// What was written, and where.
public struct WrittenBackup: Sendable, Equatable {
  /// Where the backup now stands, which may be a directory inside of the one that was named; `nil` for a stream.
  public let path: String?
  /// Of the file or stream, or of all files in the directory.
  public let byteCount: Int64
  /// Whether the disk confirmed that it keeps the backup's name too, so that a power cut cannot take it; never so for a
  /// stream.
  public let isDurable: Bool
  /// A replaced backup that could not be removed, by its path.
  public let leftover: String?
}
