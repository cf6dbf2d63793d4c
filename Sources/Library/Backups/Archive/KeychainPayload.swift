public import KeychainFormats

/// The keychain file of a backup, decrypted as a file; its items are still sealed, each for itself.
public struct KeychainPayload: Sendable {
  /// The property list as it is stored in the backup's domain.
  public let bytes: [UInt8]
  /// The sealed items, with the keybag that they are for.
  public let file: KeychainBackupFile
  /// The backup's list of files, in which it was found.
  public let fileList: FileList
  /// What was unusual, and tolerated.
  public let notes: [ArchiveNote]

  /// The domain that the file stands in.
  public static let domain = "KeychainDomain"
  /// The file's path inside of its domain.
  public static let relativePath = "keychain-backup.plist"
  /// The name under which it is stored: SHA-1 of `KeychainDomain-keychain-backup.plist`, the same in every backup.
  public static let fileIdentifier = StoredPart.keychainFileIdentifier
}
