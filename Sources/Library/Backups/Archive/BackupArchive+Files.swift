public import Basics
public import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Opens the list of files.
  ///
  /// - Parameter keys: The backup's keybag, unlocked with its password; not needed where the list is not encrypted.
  /// - Throws: `.keyUnavailable` where the list's class key is not available, `.damaged` and `.truncated` for a list whose
  ///   bytes are not what was written, `.hostile` for one that no device makes.
  public func fileList(with keys: ClassKeys) throws(KeyhaulError) -> FileList {
    if hasSealedRecords { return try sealedList(with: keys) }
    guard isListEncrypted else { return try plainList() }
    return FileList(try ManifestDatabase(try databaseBytes(with: keys)))
  }

  /// The key of the records in a list of iOS 10.0, for `ClassKeys.recordKey`; `nil` for every other backup, and where
  /// the list has no salt that could be used.
  ///
  /// - Parameter password: In the Unicode form that opens the keybag.
  package func recordKey(password: borrowing Secret) throws(DataProtectionError) -> ManifestRecordKey? {
    guard case .bytes(let salt) = recordSalt else { return nil }
    return try ManifestRecordKey(password: password, salt: salt)
  }

  private func sealedList(with keys: ClassKeys) throws(KeyhaulError) -> FileList {
    if case .unusable(let reason) = recordSalt { throw KeyhaulError(.damaged, reason) }
    guard let key = keys.recordKey else {
      throw KeyhaulError(.keyUnavailable, "the records in its manifest are encrypted with its password")
    }
    return FileList(try ManifestDatabase(try parts.clearDatabase(), recordKey: key))
  }

  /// The manifest database's plain bytes, read from the private copy.
  package func databaseBytes(with keys: ClassKeys) throws(KeyhaulError) -> DatabaseBytes {
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
  public func fileList() throws(KeyhaulError) -> FileList {
    guard !isListEncrypted else {
      throw KeyhaulError(.keyUnavailable, "the backup has a password")
    }
    return try plainList()
  }

  private func plainList() throws(KeyhaulError) -> FileList {
    switch layout {
    case .manifestDB: return FileList(try ManifestDatabase(try parts.clearDatabase()))
    case .mbdb:
      let bytes = parts[.oldDatabase] ?? []
      return FileList(
        try explained(StoredPart.oldDatabase.path) { () throws(FormatError) in try MBDBManifest(bytes) })
    }
  }

  /// - Parameter field: The class as 4 bytes, little-endian, then the wrapped key.
  package func fileKey(
    _ field: [UInt8], of part: String, keys: ClassKeys
  ) throws(KeyhaulError) -> Secret {
    let wrapped = try explained("the key of \(part)") { () throws(FormatError) in try ClassWrappedKey(parsing: field) }
    do throws(DataProtectionError) {
      return try keys.unwrapFileKey(field)
    } catch {
      guard error.code == .keyUnavailable else { throw KeyhaulError(error, in: "the key of \(part)") }
      // A class key that is there and doesn't unwrap, though others do, is no question of the password.
      let isDamaged = keys.availability(of: wrapped.keyClass) == .damaged
      throw KeyhaulError(isDamaged ? .damaged : .keyUnavailable, "\(part): \(error.reason)")
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

extension BackupArchive {
  /// Reads a stored file to its end and lends its plain bytes in portions, whatever its size.
  ///
  /// A directory is read now, relative to the handle that was opened; of one file the entry is looked for from its
  /// start: for more than a few files `forEachPayload` is the way. Bytes have been lent before damage at the end can be
  /// seen.
  /// - Parameters:
  ///   - file: A file of the backup's list.
  ///   - keys: The backup's keybag, unlocked; not used for a backup without a password.
  ///   - portion: Takes the plain bytes in their order; the pointer must not leave it.
  /// - Throws: `.payloadMissing` where nothing is stored, though an empty file is read as such; `.keyUnavailable`,
  ///   `.damaged` for a file without a key in an encrypted backup; `.unsupported` for what is not a file, and where the
  ///   backup came as a stream, which is gone; and what `portion` throws.
  public func readPayload(
    of file: ListedFile, with keys: ClassKeys,
    portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadReading {
    try PayloadPass(of: file, in: self, with: keys).run(try payload(of: file), portion)
  }

  /// Whether it is one file, in which payloads are read in the order in which they lie.
  package var isContainer: Bool {
    switch source {
    case .container: true
    case .directory, .stream: false
    }
  }

  /// Whether every payload is a file of its own, which can be read at any time, and several at once.
  package var hasPayloadsApart: Bool {
    switch source {
    case .directory: true
    case .container, .stream: false
    }
  }

  /// Where a file's payload is stored.
  ///
  /// - Throws: `.notStreamable` where the backup came as a stream.
  package func payload(of file: ListedFile) throws(KeyhaulError) -> StoredPayload {
    try payload(named: file.fileIdentifier)
  }

  /// The same by the name under which it is stored.
  package func payload(named identifier: String) throws(KeyhaulError) -> StoredPayload {
    switch source {
    case .directory(let handle, let source):
      return StoredPayload(identifier, .file(layout.storedPath(of: identifier), layout, handle, source))
    case .container(let container):
      return StoredPayload(identifier, .sought(container.payloads.path(of: identifier, in: layout), container))
    case .stream:
      throw KeyhaulError(.notStreamable, "a streamed backup can be read only once, and it has been read")
    }
  }

  /// Goes through every payload that is stored, each once: one file is read from its start to its end, however many
  /// there are.
  ///
  /// A payload that cannot be read stops no other. While the closure runs the backup is held: only the payload that it
  /// is given may be read in it.
  /// - Parameters:
  ///   - stored: What `storedFiles()` said: a directory is not listed again.
  ///   - body: Takes one payload.
  /// - Throws: `.notStreamable` where the backup came as a stream; `.damaged` where more payloads than
  ///   `ArchiveLimits.resumptionCount` of one file break off; and what `body` throws.
  package func forEachPayload(
    of stored: StoredPayloads, _ body: (StoredPayload) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    switch source {
    case .directory(let handle, let source):
      for identifier in stored.fileIdentifiers() {
        try body(StoredPayload(identifier, .file(stored.path(of: identifier, in: layout), layout, handle, source)))
      }
    case .container(let container):
      try container.forEachFile { (file, walk) throws(KeyhaulError) in
        guard let path = BackupPath.inside(container.directory, file.path),
          let identifier = BackupPath.payload(at: path), container.payloads.path(of: identifier, in: layout) == path
        else { return }
        try body(StoredPayload(identifier, .passing(file, walk)))
      }
    case .stream:
      throw KeyhaulError(.notStreamable, "a streamed backup can be read only once, and it has been read")
    }
  }

  /// Reads a payload as the file that the list says it is.
  ///
  /// - Parameters:
  ///   - payload: The stored bytes, which can be read once.
  ///   - file: A file of the backup's list.
  ///   - keys: `nil` for what the stored bytes alone say: then the plain size is the stored one, and the padding counts
  ///     as valid.
  ///   - portion: Takes the plain bytes in their order; the pointer must not leave it.
  /// - Throws: As `readPayload(of:with:portion:)`.
  package func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: ClassKeys?,
    portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadReading {
    switch keys {
    case .none: try PayloadPass(storedBytesOf: file, in: self).run(payload, portion)
    case .some(let keys): try PayloadPass(of: file, in: self, with: keys).run(payload, portion)
    }
  }
}
