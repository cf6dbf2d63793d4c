import Basics
public import KeychainCrypto
package import KeychainFormats

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
    guard areFilesEncrypted else {
      return try payload(try stored.bytes(), storedAs: stored, record: record, list: list)
    }
    let key = try keychainKey(record, with: keys)
    return try payload(try plain(of: stored, key: key), storedAs: stored, record: record, list: list)
  }

  private func keychainKey(_ record: FileRecord, with keys: borrowing ClassKeys) throws(BackupArchiveError) -> Secret {
    guard let field = record.encryptionKey?.serialized() else {
      throw BackupArchiveError(.damaged, "the manifest has no key for the keychain file")
    }
    return try fileKey(field, of: "the keychain file", keys: keys)
  }

  /// The key that the keychain's file is encrypted with; `nil` where files are not encrypted.
  package func keychainKey(in list: FileList, with keys: borrowing ClassKeys) throws(BackupArchiveError) -> Secret? {
    areFilesEncrypted ? try keychainKey(try keychainRecord(in: list), with: keys) : nil
  }

  /// The keychain's file as the backup has it, where it is too large to be held.
  package var storedLargeKeychain: StoredBytes? { parts[large: layout.keychainPart].flatMap { $0.isInFile ? $0 : nil } }

  /// Opens the keychain's file of a backup without a password: which items there are can be seen without any key.
  ///
  /// - Throws: `.keyUnavailable` for a backup with a password, otherwise as `keychainFile(with:)`.
  public func keychainFile() throws(BackupArchiveError) -> KeychainPayload {
    guard !areFilesEncrypted else { throw BackupArchiveError(.keyUnavailable, "the backup has a password") }
    let list = try fileList()
    let stored = try storedKeychain()
    return try payload(try stored.bytes(), storedAs: stored, record: try keychainRecord(in: list), list: list)
  }

  package func keychainRecord(in list: FileList) throws(BackupArchiveError) -> FileRecord {
    let file = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    guard let file else {
      guard !hasKeychain else {
        throw BackupArchiveError(
          .damaged, "the keychain file \(layout.keychainPart.path) is stored, but the manifest does not list it")
      }
      throw BackupArchiveError(.noKeychain, "the manifest has no keychain file")
    }
    guard let record = try file.record() else {
      throw BackupArchiveError(.damaged, "the manifest does not describe the keychain file")
    }
    guard file.kind == .file else {
      throw BackupArchiveError(.damaged, "the manifest lists the keychain file as something other than a file")
    }
    guard record.relativePath == file.relativePath else {
      throw BackupArchiveError(.damaged, "the keychain file's record is of \(quoted(record.relativePath))")
    }
    return record
  }

  private func storedKeychain() throws(BackupArchiveError) -> StoredBytes {
    guard let stored = parts[large: layout.keychainPart] else {
      throw BackupArchiveError(
        .payloadMissing, "the manifest lists \(layout.keychainPart.path), which is missing")
    }
    return stored
  }

  private func plain(of stored: StoredBytes, key: borrowing Secret) throws(BackupArchiveError) -> [UInt8] {
    let part = "the keychain file"
    let decryptor = try explained(part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(stored.byteCount)
    try stored.forEachPortion { (portion) throws(BackupArchiveError) in
      do throws(DataProtectionError) {
        bytes.append(contentsOf: try decryptor.plain(of: portion))
      } catch {
        throw BackupArchiveError(error, in: part)
      }
    }
    let end = try explained(part) { () throws(DataProtectionError) in try decryptor.finish() }
    guard end.hasValidPadding else { throw BackupArchiveError(.damaged, "\(part) does not end with valid padding") }
    bytes += end.bytes
    return bytes
  }

  /// - Parameter stored: The bytes as the backup has them, encrypted or not.
  private func payload(
    _ bytes: [UInt8], storedAs stored: StoredBytes, record: FileRecord, list: FileList
  ) throws(BackupArchiveError) -> KeychainPayload {
    var notes = self.notes + list.notes
    if let digest = record.digest, try stored.sha1() != digest {
      // Some lists of encrypted backups have the digest of the plain content.
      let plainDigest =
        areFilesEncrypted
        ? try explained("the keychain file", { () throws(DataProtectionError) in try Digest.sha1(bytes) }) : []
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
}
