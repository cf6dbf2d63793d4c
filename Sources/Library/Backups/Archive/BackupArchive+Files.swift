public import Basics
public import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Opens the list of files.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password. Not used if the list is not encrypted.
  /// - Throws: `.keyUnavailable` if the list's class key is not available, `.damaged` or `.truncated` if the list is
  ///   damaged, `.hostile` if no device creates such a list.
  public func fileList(with keys: ClassKeys) throws(KeyhaulError) -> FileList {
    if hasEncryptedRecords { return try listOfEncryptedRecords(with: keys) }
    guard isListEncrypted else { return try plaintextList() }
    return FileList(try ManifestDatabase(try databaseBytes(with: keys)))
  }

  /// Derives the key that decrypts the records of an iOS 10.0 list. The caller stores it in `ClassKeys.recordKey`.
  ///
  /// - Parameter password: The password in the Unicode form that unlocks the keybag.
  /// - Returns: The key, or `nil` if the backup is not from iOS 10.0 or its list has no usable salt.
  package func recordKey(password: borrowing Secret) throws(DataProtectionError) -> ManifestRecordKey? {
    guard case .bytes(let salt) = recordSalt else { return nil }
    return try ManifestRecordKey(password: password, salt: salt)
  }

  private func listOfEncryptedRecords(with keys: ClassKeys) throws(KeyhaulError) -> FileList {
    if case .unusable(let reason) = recordSalt { throw KeyhaulError(.damaged, reason) }
    guard let key = keys.recordKey else {
      throw KeyhaulError(.keyUnavailable, "the records in its manifest are encrypted with its password")
    }
    return FileList(try ManifestDatabase(try parts.plaintextDatabase(), recordKey: key))
  }

  /// Returns the plaintext of the manifest database, from the copy that was made when the backup was opened.
  package func databaseBytes(with keys: ClassKeys) throws(KeyhaulError) -> DatabaseBytes {
    guard isListFileEncrypted, let field = manifest.manifestKey else { return try parts.plaintextDatabase() }
    let key = try fileKey(field, of: "the manifest database", keys: keys)
    guard let stored = parts.database else { return try parts.plaintextDatabase() }
    return try DatabaseBytes(stored, key: key)
  }

  /// The path of the log or journal whose pages are part of the list, or `nil` if there is none.
  package var appliedJournalPath: String? { parts.replacementPages?.from.path }

  /// Opens an unencrypted list of files. The list is unencrypted if the backup has no password, or is from iOS 4 to 9
  /// or 10.1.
  ///
  /// - Throws: `.keyUnavailable` if the list is encrypted, otherwise as `fileList(with:)`.
  public func fileList() throws(KeyhaulError) -> FileList {
    guard !isListEncrypted else {
      throw KeyhaulError(.keyUnavailable, "the backup has a password")
    }
    return try plaintextList()
  }

  private func plaintextList() throws(KeyhaulError) -> FileList {
    switch layout {
    case .manifestDB: return FileList(try ManifestDatabase(try parts.plaintextDatabase()))
    case .mbdb:
      let bytes = parts[.oldDatabase] ?? []
      return FileList(
        try translatingErrors(in: MetadataFile.oldDatabase.path) { () throws(FormatError) in try MBDBManifest(bytes) })
    }
  }

  /// Returns the encryption key of a file of the backup.
  ///
  /// - Parameters:
  ///   - field: The class in 4 little-endian bytes, then the wrapped key.
  ///   - part: The name of the file in errors, such as "the keychain file".
  package func fileKey(
    _ field: [UInt8], of part: String, keys: ClassKeys
  ) throws(KeyhaulError) -> Secret {
    let wrapped = try translatingErrors(in: "the key of \(part)") { () throws(FormatError) in
      try ClassWrappedKey(parsing: field)
    }
    do throws(DataProtectionError) {
      return try keys.unwrapFileKey(field)
    } catch {
      guard error.code == .keyUnavailable else { throw KeyhaulError(error, in: "the key of \(part)") }
      // Other class keys were unwrapped, so the password is right, and this class key is damaged.
      let isDamaged = keys.availability(of: wrapped.keyClass) == .damaged
      throw KeyhaulError(isDamaged ? .damaged : .keyUnavailable, "\(part): \(error.reason)")
    }
  }

  /// The storage of a large list of files or keychain file. The backup, or a copy of the backup, is opened again with the
  /// same storage.
  package var storage: ManifestStorage {
    switch source {
    case .directory(_, let source): source.storage
    case .container(let container): container.storage
    case .stream: .temporaryFile
    }
  }
}

extension BackupArchive {
  /// Reads a stored file of any size and passes its plaintext in chunks.
  ///
  /// In a directory, the file is opened directly. In a container, each call searches the entry from the start, so reading
  /// many files is slow. Damage at the end of the file is found only after the bytes were passed.
  ///
  /// - Parameters:
  ///   - file: A file of the backup's list.
  ///   - keys: The backup's unlocked keybag. Not used if the backup has no password.
  ///   - chunk: Receives the plaintext in order. The pointer is valid only during the call.
  /// - Returns: The sizes and digests of the file, with which Keyhaul verifies it.
  /// - Throws: `.payloadMissing` if the payload of a nonempty file is missing; `.keyUnavailable`; `.damaged` if a file in
  ///   an encrypted backup has no key; `.unsupported` if the entry is not a regular file; `.notStreamable` if the backup
  ///   came from a stream; the errors of `chunk`.
  public func readPayload(
    of file: ListedFile, with keys: ClassKeys,
    chunk: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadScan {
    try PayloadScanner(of: file, in: self, with: keys).run(try payload(of: file), chunk)
  }

  /// Whether the backup is a container, whose payloads are read in their stored order.
  package var isContainer: Bool {
    switch source {
    case .container: true
    case .directory, .stream: false
    }
  }

  /// Whether each payload is a separate file, so that several can be read at once.
  package var hasSeparatePayloadFiles: Bool {
    switch source {
    case .directory: true
    case .container, .stream: false
    }
  }

  /// Returns the stored payload of a file.
  ///
  /// - Throws: `.notStreamable` if the backup came from a stream.
  package func payload(of file: ListedFile) throws(KeyhaulError) -> StoredPayload {
    try payload(named: file.fileIdentifier)
  }

  /// Returns the payload with the given stored name.
  package func payload(named identifier: String) throws(KeyhaulError) -> StoredPayload {
    switch source {
    case .directory(let handle, let source):
      return StoredPayload(identifier, .file(layout.storedPath(of: identifier), layout, handle, source))
    case .container(let container):
      return StoredPayload(identifier, .searchedEntry(container.payloads.path(of: identifier, in: layout), container))
    case .stream:
      throw Self.consumedStreamError
    }
  }

  private static let consumedStreamError = KeyhaulError(
    .notStreamable, "a streamed backup can be read only once, and it has been read")

  /// Passes each stored payload to a closure, once. A container is read in a single pass.
  ///
  /// Payloads that cannot be read do not stop the iteration. During the closure, only the passed payload may be read.
  ///
  /// - Parameters:
  ///   - stored: The result of `storedFiles()`, so that a directory is not listed again.
  ///   - body: Receives a payload.
  /// - Throws: `.notStreamable` if the backup came from a stream; `.damaged` if more than
  ///   `BackupLimits.resumptionCount` payloads of a container are cut off; the errors of `body`.
  package func forEachPayload(
    of stored: StoredPayloads, _ body: (StoredPayload) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    switch source {
    case .directory(let handle, let source):
      for identifier in stored.fileIdentifiers() {
        try body(StoredPayload(identifier, .file(stored.path(of: identifier, in: layout), layout, handle, source)))
      }
    case .container(let container):
      try container.forEachFile { (file, reader) throws(KeyhaulError) in
        guard let path = BackupPath.inside(container.directory, file.path),
          let identifier = BackupPath.payload(at: path), container.payloads.path(of: identifier, in: layout) == path
        else { return }
        try body(StoredPayload(identifier, .currentEntry(file, reader)))
      }
    case .stream:
      throw Self.consumedStreamError
    }
  }

  /// Reads a payload as a file of the list.
  ///
  /// - Parameters:
  ///   - payload: The payload, which can be read once.
  ///   - file: A file of the backup's list.
  ///   - keys: The unlocked keybag, or `nil` to read only the stored bytes. Then the plaintext size is the stored size,
  ///     and the padding is considered valid.
  ///   - chunk: Receives the plaintext in order. The pointer is valid only during the call.
  /// - Throws: The errors of `readPayload(of:with:chunk:)`.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys?,
    chunk: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadScan {
    try PayloadScanner(of: file, in: self, with: keys).run(payload, chunk)
  }
}
