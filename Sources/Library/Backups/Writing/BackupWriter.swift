package import Basics
public import KeychainCrypto

/// Writes a backup as a device would have: whole, or not at all.
///
/// The same contents, keys, random source and destination format give the same bytes.
public struct BackupWriter: Sendable {
  private let placement: BackupPlacement

  /// Creates a writer to the real file system.
  public init() { self.init(system: .real) }

  package init(system: FileSystem) { placement = BackupPlacement(system: system) }

  /// Writes a backup, whole or not at all.
  ///
  /// - Parameters:
  ///   - contents: What goes into the backup.
  ///   - keys: The class keys of the contents' keybag. Without a password nothing is encrypted with them here.
  ///   - random: Gives the keys of the files.
  ///   - destination: Where it goes, and in which form.
  ///   - replace: Whether a backup, or a file, that stands at the destination may go.
  /// - Throws: `.occupied` where something stands there that may not be replaced, `.noSpace` and `.unwritable` where the
  ///   system refuses, `.noTemporarySpace` where it gives no room for a large keychain meanwhile. After an error what
  ///   stood there before stands there still, and nothing else was left.
  public func write(
    _ contents: BackupContents, keys: borrowing ClassKeys, random: some RandomSource = SystemRandomSource(),
    to destination: ArchiveDestination, replace: Bool = false
  ) throws(BackupArchiveError) -> WrittenBackup {
    let backup = try BackupAssembly(contents: contents, system: placement.system).assemble(keys: keys, random: random)
    let placed = try placement.place(backup.outgoing, at: destination, replace: replace)
    return WrittenBackup(
      path: placed.path, byteCount: placed.byteCount, isDurable: placed.isDurable, leftover: placed.leftover)
  }
}

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
