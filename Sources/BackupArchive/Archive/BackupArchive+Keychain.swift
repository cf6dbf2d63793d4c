public import DataProtection
import KeychainFormats

extension BackupArchive {
  /// Opens the keychain's file.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password, or with the empty one where it has none.
  /// - Throws: `.noKeychain` where none was stored, `.damaged` where one is and the list does not name it, whose key is lost
  ///   with its row, `.payloadMissing` where the list names it but it isn't there, and as `fileList(with:)`.
  public func keychainFile(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> KeychainPayload {
    try keychainFile(in: try fileList(with: keys), with: keys)
  }

  /// The same with the list of files, where it was opened before.
  public func keychainFile(
    in list: FileList, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) -> KeychainPayload {
    let record = try keychainRecord(in: list)
    let stored = try storedKeychain()
    guard areFilesEncrypted else { return try payload(stored, storedAs: stored, record: record, list: list) }
    guard let field = record.encryptionKey?.serialized() else {
      throw BackupArchiveError(.damaged, "the list of files has no key for the keychain file")
    }
    let key = try fileKey(field, of: "the keychain file", keys: keys)
    let plain = try explained("the keychain file") { () throws(DataProtectionError) in
      try FileCipher.decrypt(stored, key: key)
    }
    guard plain.hasValidPadding else {
      throw BackupArchiveError(.damaged, "the keychain file does not end in its padding")
    }
    return try payload(plain.bytes, storedAs: stored, record: record, list: list)
  }

  /// Opens the keychain's file of a backup without a password: which items there are can be seen without any key.
  ///
  /// - Throws: `.keyUnavailable` for a backup with a password, otherwise as `keychainFile(with:)`.
  public func keychainFile() throws(BackupArchiveError) -> KeychainPayload {
    guard !areFilesEncrypted else { throw BackupArchiveError(.keyUnavailable, "the backup has a password") }
    let list = try fileList()
    let stored = try storedKeychain()
    return try payload(stored, storedAs: stored, record: try keychainRecord(in: list), list: list)
  }

  private func keychainRecord(in list: FileList) throws(BackupArchiveError) -> FileRecord {
    let file = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    guard let file else {
      guard parts[layout.keychainPart] == nil else {
        throw BackupArchiveError(
          .damaged, "the keychain file \(layout.keychainPart.path) is stored, and the list of files does not name it")
      }
      throw BackupArchiveError(.noKeychain, "the list of files has no keychain file")
    }
    guard let record = try file.record() else {
      throw BackupArchiveError(.damaged, "the list of files does not describe the keychain file")
    }
    guard file.kind == .file else {
      throw BackupArchiveError(.damaged, "the list of files has the keychain file as something else than a file")
    }
    guard record.relativePath == file.relativePath else {
      throw BackupArchiveError(.damaged, "the keychain file's record is of \(quoted(record.relativePath))")
    }
    return record
  }

  private func storedKeychain() throws(BackupArchiveError) -> [UInt8] {
    guard let stored = parts[layout.keychainPart] else {
      throw BackupArchiveError(
        .payloadMissing, "the list of files names \(layout.keychainPart.path), which is not there")
    }
    return stored
  }

  /// - Parameter stored: The bytes as the backup has them, encrypted or not.
  private func payload(
    _ bytes: [UInt8], storedAs stored: [UInt8], record: FileRecord, list: FileList
  ) throws(BackupArchiveError) -> KeychainPayload {
    var notes = self.notes + list.notes
    if let digest = record.digest, try sha1(stored) != digest {
      // Some lists of encrypted backups have the digest of the plain content.
      let plainDigest = areFilesEncrypted ? try sha1(bytes) : []
      if plainDigest != digest { notes.append(.digestDiffers) }
    }
    if record.size != Int64(bytes.count) {
      notes.append(.sizeDiffers(recorded: record.size, found: Int64(bytes.count)))
    }
    let file = try explained("the keychain file") { () throws(FormatError) in try KeychainBackupFile(parsing: bytes) }
    if file.isXML { notes.append(.finding(.keychainInXML)) }
    if !file.ignoredKeys.isEmpty { notes.append(.finding(.keychainKeysUnknown(file.ignoredKeys))) }
    return KeychainPayload(bytes: bytes, file: file, fileList: list, notes: notes)
  }

  private func sha1(_ bytes: [UInt8]) throws(BackupArchiveError) -> [UInt8] {
    try explained("the keychain file") { () throws(DataProtectionError) in try Digest.sha1(bytes) }
  }
}
