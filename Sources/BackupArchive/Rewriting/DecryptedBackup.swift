/// A copy in clear that was written, and what is not in it.
public struct DecryptedBackup: Sendable {
  /// What was written, and where. Its foreign files are also payloads that the list does not have.
  public let copy: RewrittenBackup
  /// How many files were decrypted.
  public let decryptedCount: Int
  /// The files that could not be read, each with the reason: they are in the list of the copy and not stored.
  public let faults: [Fault]

  /// A file that is not in the copy.
  public struct Fault: Sendable, Equatable {
    /// The name under which it is, or should be, stored.
    public let fileIdentifier: String
    /// Why it could not be read.
    public let error: BackupArchiveError
  }
}
