public import DataProtection
import KeychainFormats

extension BackupArchive {
  /// Opens the list of files.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password; not needed where the list is not encrypted.
  /// - Throws: `.keyUnavailable` where the list's class key is not at hand, `.damaged` and `.truncated` for a list whose
  ///   bytes are not what was written, `.hostile` for one that no device makes.
  public func manifestDatabase(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> ManifestDatabase {
    guard isEncrypted, let field = manifest.manifestKey else { return try plainDatabase() }
    return try decryptedDatabase(key: try fileKey(field, of: "the manifest database", keys: keys))
  }

  /// Opens the keychain's file.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password, or with the empty one where it has none.
  /// - Throws: `.noKeychain` where none was stored, `.payloadMissing` where the list names it but it isn't there, and as
  ///   `manifestDatabase(with:)`.
  public func keychainFile(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> KeychainPayload {
    let database = try manifestDatabase(with: keys)
    let record = try keychainRecord(in: database)
    let stored = try storedKeychain()
    guard isEncrypted else { return try plainKeychain(stored, record: record, database: database) }
    guard let field = record.encryptionKey?.serialized() else {
      throw BackupArchiveError(.damaged, "the manifest database has no key for the keychain file")
    }
    let key = try fileKey(field, of: "the keychain file", keys: keys)
    let plain = try explained("the keychain file") { () throws(DataProtectionError) in
      try FileCipher.decrypt(stored, key: key)
    }
    guard plain.hasValidPadding else {
      throw BackupArchiveError(.damaged, "the keychain file does not end in its padding")
    }
    var notes = database.notes
    if let digest = record.digest, try sha1(stored) != digest { notes.append(.digestDiffers) }
    return try payload(plain.bytes, record: record, database: database, notes: notes)
  }

  /// Opens the keychain's file of a backup without a password: which items there are can be seen without any key.
  ///
  /// - Throws: `.keyUnavailable` for a backup with a password, otherwise as `keychainFile(with:)`.
  public func keychainFile() throws(BackupArchiveError) -> KeychainPayload {
    guard !isEncrypted else { throw BackupArchiveError(.keyUnavailable, "the backup has a password") }
    let database = try plainDatabase()
    return try plainKeychain(try storedKeychain(), record: try keychainRecord(in: database), database: database)
  }

  /// The list of files of a backup without a password.
  ///
  /// - Throws: `.keyUnavailable` for a backup with a password.
  public func manifestDatabase() throws(BackupArchiveError) -> ManifestDatabase {
    guard !isEncrypted else { throw BackupArchiveError(.keyUnavailable, "the backup has a password") }
    return try plainDatabase()
  }

  /// - Parameter field: The class as 4 bytes, little-endian, then the wrapped key.
  private func fileKey(
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

  private func plainDatabase() throws(BackupArchiveError) -> ManifestDatabase {
    let stored = try storedDatabase()
    let image = try DatabaseImage(capacity: stored.count)
    try image.append(stored)
    return try ManifestDatabase(image)
  }

  /// Decrypts in portions straight into SQLite's memory: of a large backup's list there is no third copy.
  private func decryptedDatabase(key: borrowing Secret) throws(BackupArchiveError) -> ManifestDatabase {
    let part = StoredPart.database.path
    let stored = try storedDatabase()
    let image = try DatabaseImage(capacity: stored.count)
    var decryptor = try explained(part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    var offset = 0
    while offset < stored.count {
      let end = min(offset + Self.portionByteCount, stored.count)
      let portion = Array(stored[offset..<end])
      try image.append(try explained(part) { () throws(DataProtectionError) in try decryptor.update(portion) })
      offset = end
    }
    let last = try explained(part) { () throws(DataProtectionError) in try decryptor.finish() }
    try image.append(last.bytes)
    if last.hasValidPadding, image.isWholePages { return try ManifestDatabase(image) }
    // Not padded at all, though its last bytes may happen to look like a padding.
    if last.hasValidPadding {
      let count = Self.blockByteCount - last.bytes.count
      try image.append([UInt8](repeating: UInt8(count), count: count))
    }
    return try ManifestDatabase(image, notes: [.databaseUnpadded])
  }

  private static let portionByteCount = 1 << 20
  private static let blockByteCount = 16

  private func keychainRecord(in database: ManifestDatabase) throws(BackupArchiveError) -> FileRecord {
    let row = try database.row(
      domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath,
      fileIdentifier: KeychainPayload.fileIdentifier)
    guard let row else { throw BackupArchiveError(.noKeychain, "the manifest database lists no keychain file") }
    guard let bytes = row.record else {
      throw BackupArchiveError(.damaged, "the manifest database does not describe the keychain file")
    }
    let record = try explained("the keychain file's record") { () throws(FormatError) in
      try FileRecord(archive: bytes)
    }
    // Other bits are left over from the transfer; hand-made lists have none and leave it to the mode.
    guard row.flags & 1 != 0 || (row.flags & 7 == 0 && record.fileType == .regular) else {
      throw BackupArchiveError(.damaged, "the manifest database lists the keychain file as something else than a file")
    }
    guard record.relativePath == row.relativePath else {
      throw BackupArchiveError(.damaged, "the keychain file's record is of \(quoted(record.relativePath))")
    }
    return record
  }

  private func storedDatabase() throws(BackupArchiveError) -> [UInt8] {
    guard let stored = parts.database else {
      throw BackupArchiveError(.payloadMissing, "it has no \(StoredPart.database.path)")
    }
    return stored
  }

  private func storedKeychain() throws(BackupArchiveError) -> [UInt8] {
    guard let stored = parts.keychain else {
      throw BackupArchiveError(
        .payloadMissing, "the manifest database lists \(KeychainPayload.storedPath), which is not there")
    }
    return stored
  }

  private func plainKeychain(
    _ stored: [UInt8], record: FileRecord, database: ManifestDatabase
  ) throws(BackupArchiveError) -> KeychainPayload {
    if let digest = record.digest, try sha1(stored) != digest {
      throw BackupArchiveError(.damaged, "the keychain file does not have the digest that the manifest records")
    }
    return try payload(stored, record: record, database: database, notes: database.notes)
  }

  private func payload(
    _ bytes: [UInt8], record: FileRecord, database: ManifestDatabase, notes: [ArchiveNote]
  ) throws(BackupArchiveError) -> KeychainPayload {
    var notes = self.notes + notes
    if record.size != Int64(bytes.count) {
      notes.append(.sizeDiffers(recorded: record.size, found: Int64(bytes.count)))
    }
    let file = try explained("the keychain file") { () throws(FormatError) in try KeychainBackupFile(parsing: bytes) }
    return KeychainPayload(bytes: bytes, file: file, database: database, notes: notes)
  }

  private func sha1(_ bytes: [UInt8]) throws(BackupArchiveError) -> [UInt8] {
    try explained("the keychain file") { () throws(DataProtectionError) in try Digest.sha1(bytes) }
  }
}
