import Basics
public import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Opens the list of files.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password; not needed where the list is not encrypted.
  /// - Throws: `.keyUnavailable` where the list's class key is not available, `.damaged` and `.truncated` for a list whose
  ///   bytes are not what was written, `.hostile` for one that no device makes.
  public func fileList(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> FileList {
    if hasSealedRecords { return try sealedList(with: keys) }
    guard isListEncrypted else { return try plainList() }
    return FileList(try ManifestDatabase(try databaseBytes(with: keys)))
  }

  /// The key of the records in a list of iOS 10.0, for `ClassKeys.recordKey`; `nil` for every other backup, and where
  /// the list has no salt that could be used.
  ///
  /// - Parameter password: In the Unicode form that opens the keybag.
  public func recordKey(password: borrowing Secret) throws(DataProtectionError) -> RecordKey? {
    guard case .bytes(let salt) = recordSalt else { return nil }
    return try RecordKey(password: password, salt: salt)
  }

  private func sealedList(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> FileList {
    if case .unusable(let reason) = recordSalt { throw BackupArchiveError(.damaged, reason) }
    guard let key = keys.recordKey else {
      throw BackupArchiveError(.keyUnavailable, "the records in its manifest are sealed with its password")
    }
    return FileList(try ManifestDatabase(try parts.clearDatabase(), recordKey: key))
  }

  /// The manifest database's plain bytes, read from the private copy.
  package func databaseBytes(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> DatabaseBytes {
    guard isListFileEncrypted, let field = manifest.manifestKey else { return try parts.clearDatabase() }
    let key = try fileKey(field, of: "the manifest database", keys: keys)
    guard let stored = parts.database else { return try parts.clearDatabase() }
    return try DatabaseBytes(stored, key: key)
  }

  /// The log or the journal with which the list is read, by its path; `nil` if it is read alone.
  package var readJournal: String? { parts.replacedPages?.from.path }

  /// The list of files of a backup whose list is in clear: of every one without a password, and of iOS 4 to 9 and
  /// 10.1 also of one with a password.
  ///
  /// - Throws: `.keyUnavailable` for a list that is encrypted, otherwise as `fileList(with:)`.
  public func fileList() throws(BackupArchiveError) -> FileList {
    guard !isListEncrypted else {
      throw BackupArchiveError(.keyUnavailable, "the backup has a password")
    }
    return try plainList()
  }

  private func plainList() throws(BackupArchiveError) -> FileList {
    switch layout {
    case .manifestDB: return FileList(try ManifestDatabase(try parts.clearDatabase()))
    case .mbdb:
      let bytes = parts[.oldDatabase] ?? []
      return FileList(
        try explained(StoredPart.oldDatabase.path) { () throws(FormatError) in try OldManifest(bytes) })
    }
  }

  /// - Parameter field: The class as 4 bytes, little-endian, then the wrapped key.
  package func fileKey(
    _ field: [UInt8], of part: String, keys: borrowing ClassKeys
  ) throws(BackupArchiveError) -> Secret {
    let wrapped = try explained("the key of \(part)") { () throws(FormatError) in try ClassWrappedKey(parsing: field) }
    do throws(DataProtectionError) {
      return try keys.unwrapFileKey(field)
    } catch {
      guard error.code == .keyUnavailable else { throw BackupArchiveError(error, in: "the key of \(part)") }
      // A class key that is there and doesn't unwrap, though others do, is no question of the password.
      let isDamaged = keys.availability(of: wrapped.keyClass) == .damaged
      throw BackupArchiveError(isDamaged ? .damaged : .keyUnavailable, "\(part): \(error.reason)")
    }
  }

  /// Where a large list or keychain is kept, as the archive was opened; for copies of it that are opened too.
  package var storage: ManifestStorage {
    switch source {
    case .directory(_, let source): source.storage
    case .container(let container): container.storage
    case .stream: .temporaryFile
    }
  }
}
