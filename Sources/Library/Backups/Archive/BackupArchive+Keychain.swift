package import Basics
package import KeychainCrypto
package import KeychainFormats

extension BackupArchive {
  /// Opens the keychain file.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password, or with the empty password if it has none.
  /// - Throws: `.noKeychain` if the keychain file is neither listed nor stored; `.damaged` if it is stored but not listed,
  ///   because its key is then lost; `.payloadMissing` if it is listed but not stored; the errors of `fileList(with:)`.
  package func keychainFile(with keys: ClassKeys) throws(KeyhaulError) -> KeychainPayload {
    try keychainFile(in: try fileList(with: keys), with: keys)
  }

  /// Opens the keychain file with a list that is already open.
  package func keychainFile(
    in list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> KeychainPayload {
    let record = try keychainRecord(in: list)
    let stored = try storedKeychain()
    let bytes: [UInt8]
    if areFilesEncrypted {
      bytes = try plaintext(of: stored, key: try keychainKey(record, with: keys))
    } else {
      bytes = try stored.bytes()
    }
    return try payload(bytes, storedAs: stored, record: record, list: list)
  }

  private func keychainKey(_ record: FileRecord, with keys: ClassKeys) throws(KeyhaulError) -> Secret {
    guard let field = record.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for the keychain file")
    }
    return try fileKey(field, of: "the keychain file", keys: keys)
  }

  /// Returns the encryption key of the keychain file, or `nil` if files are not encrypted.
  package func keychainKey(in list: FileList, with keys: ClassKeys) throws(KeyhaulError) -> Secret? {
    areFilesEncrypted ? try keychainKey(try keychainRecord(in: list), with: keys) : nil
  }

  /// The stored keychain file, if it is too large for memory.
  package var storedLargeKeychain: SpooledData? { parts[large: layout.keychainPart].flatMap { $0.isInFile ? $0 : nil } }

  /// Opens the keychain file of a backup without a password. The items' kinds and classes are visible without a key.
  ///
  /// - Throws: `.keyUnavailable` if the backup has a password, otherwise as `keychainFile(with:)`.
  package func keychainFile() throws(KeyhaulError) -> KeychainPayload {
    guard !areFilesEncrypted else { throw KeyhaulError(.keyUnavailable, "the backup has a password") }
    let list = try fileList()
    let stored = try storedKeychain()
    return try payload(try stored.bytes(), storedAs: stored, record: try keychainRecord(in: list), list: list)
  }

  /// Returns the list's record of the keychain file.
  ///
  /// - Throws: `.noKeychain` if the keychain file is neither listed nor stored, `.damaged` if the record is missing or
  ///   invalid.
  package func keychainRecord(in list: FileList) throws(KeyhaulError) -> FileRecord {
    let file = try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
    guard let file else {
      throw hasKeychain
        ? KeyhaulError(
          .damaged, "the keychain file \(layout.keychainPart.path) is stored, but the manifest does not list it")
        : KeyhaulError(.noKeychain, "the manifest has no keychain file")
    }
    guard let record = try file.record() else {
      throw KeyhaulError(.damaged, "the manifest does not describe the keychain file")
    }
    guard file.kind == .file else {
      throw KeyhaulError(.damaged, "the manifest lists the keychain file as something other than a file")
    }
    guard record.relativePath == file.relativePath else {
      throw KeyhaulError(.damaged, "the keychain file's record is for \(quoted(record.relativePath))")
    }
    return record
  }

  private func storedKeychain() throws(KeyhaulError) -> SpooledData {
    guard let stored = parts[large: layout.keychainPart] else {
      throw KeyhaulError(
        .payloadMissing,
        "the manifest lists \(layout.keychainPart.path), which is missing"
          + (hasFilesByDomain ? "; \(Self.filesByDomainExplanation)" : ""))
    }
    return stored
  }

  private func plaintext(of stored: SpooledData, key: borrowing Secret) throws(KeyhaulError) -> [UInt8] {
    let part = "the keychain file"
    let decryptor = try translatingErrors(in: part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(stored.byteCount)
    try stored.forEachChunk { (chunk) throws(KeyhaulError) in
      do throws(DataProtectionError) {
        bytes.append(contentsOf: try decryptor.plain(of: chunk))
      } catch {
        throw KeyhaulError(error, in: part)
      }
    }
    let end = try translatingErrors(in: part) { () throws(DataProtectionError) in try decryptor.finish() }
    guard end.hasValidPadding else { throw KeyhaulError(.damaged, "\(part) does not end with valid padding") }
    bytes += end.bytes
    return bytes
  }

  /// Parses the keychain file and compares it with its record.
  ///
  /// - Parameters:
  ///   - bytes: The plaintext.
  ///   - stored: The stored bytes, encrypted or not.
  private func payload(
    _ bytes: [UInt8], storedAs stored: SpooledData, record: FileRecord, list: FileList
  ) throws(KeyhaulError) -> KeychainPayload {
    var anomalies = self.anomalies + list.anomalies
    if let digest = record.digest, try !isDigest(digest, of: bytes, storedAs: stored) {
      anomalies.append(.digestDiffers)
    }
    if record.size != Int64(bytes.count) {
      anomalies.append(.sizeDiffers(recorded: record.size, found: Int64(bytes.count)))
    }
    let file = try translatingErrors(in: "the keychain file") { () throws(FormatError) in
      try KeychainBackupFile(parsing: bytes)
    }
    if file.isXML { anomalies.append(.finding(.keychainInXML)) }
    if !file.ignoredKeys.isEmpty { anomalies.append(.finding(.keychainKeysUnknown(file.ignoredKeys))) }
    return KeychainPayload(bytes: bytes, file: file, fileList: list, anomalies: anomalies)
  }

  /// Returns whether a recorded digest matches the stored bytes. Some lists of encrypted backups record the digest of
  /// the plaintext, which also counts. An empty digest in the list of an unencrypted backup is ignored.
  private func isDigest(
    _ digest: [UInt8], of plaintext: [UInt8], storedAs stored: SpooledData
  ) throws(KeyhaulError) -> Bool {
    if try stored.sha1() == digest { return true }
    guard areFilesEncrypted else { return digest.isEmpty }
    return try translatingErrors(in: "the keychain file") { () throws(DataProtectionError) in
      try Digest.sha1(plaintext) == digest
    }
  }
}

/// The decrypted keychain file of a backup. Each item in it is still encrypted.
public struct KeychainPayload: Sendable {
  /// The property list of the keychain.
  package let bytes: [UInt8]
  /// The encrypted items and their keybag.
  package let file: KeychainBackupFile
  /// The list of files that contains the keychain file.
  package let fileList: FileList
  /// Anomalies that were tolerated.
  package let anomalies: [ToleratedAnomaly]

  /// The domain of the file.
  public static let domain = "KeychainDomain"
  /// The path of the file in its domain.
  public static let relativePath = "keychain-backup.plist"
  /// The stored name, the SHA-1 digest of `KeychainDomain-keychain-backup.plist`. It is the same in all backups.
  package static let fileIdentifier = MetadataFile.keychainFileIdentifier
}
