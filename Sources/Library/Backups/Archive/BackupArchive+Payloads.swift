import Basics
public import KeychainCrypto
import KeychainFormats

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
    of file: ListedFile, with keys: borrowing ClassKeys,
    portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
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
  package func payload(of file: ListedFile) throws(BackupArchiveError) -> StoredPayload {
    try payload(named: file.fileIdentifier)
  }

  /// The same by the name under which it is stored.
  package func payload(named identifier: String) throws(BackupArchiveError) -> StoredPayload {
    switch source {
    case .directory(let handle, let source):
      return StoredPayload(identifier, .file(layout.storedPath(of: identifier), layout, handle, source))
    case .container(let container):
      return StoredPayload(identifier, .sought(container.payloads.path(of: identifier, in: layout), container))
    case .stream:
      throw BackupArchiveError(.notStreamable, "a streamed backup can be read only once, and it has been read")
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
  public func forEachPayload(
    of stored: StoredPayloads, _ body: (StoredPayload) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    switch source {
    case .directory(let handle, let source):
      for identifier in stored.fileIdentifiers() {
        try body(StoredPayload(identifier, .file(stored.path(of: identifier, in: layout), layout, handle, source)))
      }
    case .container(let container):
      try container.forEachFile { (file, walk) throws(BackupArchiveError) in
        guard let path = BackupPath.inside(container.directory, file.path),
          let identifier = BackupPath.payload(at: path), container.payloads.path(of: identifier, in: layout) == path
        else { return }
        try body(StoredPayload(identifier, .passing(file, walk)))
      }
    case .stream:
      throw BackupArchiveError(.notStreamable, "a streamed backup can be read only once, and it has been read")
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
  public func read(
    _ payload: StoredPayload, as file: ListedFile, with keys: borrowing ClassKeys?,
    portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    switch keys {
    case .none: try PayloadPass(storedBytesOf: file, in: self).run(payload, portion)
    case .some(let keys): try PayloadPass(of: file, in: self, with: keys).run(payload, portion)
    }
  }
}
