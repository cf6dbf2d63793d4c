/// A decrypted copy that was written, and what is not in it.
public struct DecryptedBackup: Sendable {
  /// What was written, and where. Its foreign files are also payloads that the list does not have.
  public let copy: RewrittenBackup
  /// How many files were decrypted.
  public let decryptedCount: Int
  /// The files that could not be read, each with the reason: they are in the list of the copy and not stored.
  public let faults: [Fault]
  /// How many files have no identifier in the list, so that what is stored of them cannot be found: it is not in the copy.
  public let rowWithoutIdentifierCount: Int

  /// The files that are in the copy though the digest in the list is of other bytes; it stays beside them.
  public let differing: [ListedFile]

  /// Whether every file that the list names is in the copy, and none has other bytes than its digest says.
  public var isComplete: Bool { faults.isEmpty && rowWithoutIdentifierCount == 0 && differing.isEmpty }

  /// A file that is not in the copy.
  public struct Fault: Sendable, Equatable {
    /// The name under which it is, or should be, stored.
    public let fileIdentifier: String
    /// Why it could not be read.
    public let error: BackupArchiveError
  }
}
