public import DataProtection
import KeychainFormats

/// What came of reading one stored file to its end.
public struct PayloadReading: Sendable, Hashable {
  /// As it lies in the backup.
  public var storedByteCount: Int64
  /// Without its padding where it is encrypted: the padding decides, never the recorded size.
  public var plainByteCount: Int64
  /// Of the stored bytes, 20 bytes: what a record's digest is held against.
  public var storedSHA1: [UInt8]
  /// `false` for an encrypted file that ends in no padding: it is damaged or another one. True where none is needed.
  public var hasValidPadding: Bool
}

extension BackupArchive {
  /// Reads a stored file to its end and lends its plain bytes in portions, whatever its size.
  ///
  /// A folder is read now, relative to the handle that was opened; of one file the entry is looked for from its start:
  /// for more than a few files `forEachPayload` is the way.
  /// Bytes have been lent before damage at the end can be seen.
  /// - Parameter keys: The backup's keybag, unlocked; not used for a backup without a password.
  /// - Throws: `.payloadMissing` where nothing is stored, though an empty file is read as such; `.keyUnavailable`,
  ///   `.damaged` for a file without a key in an encrypted backup; `.unsupported` for what is no file, and where the
  ///   backup came as a stream, which is gone; and what `portion` throws.
  public func readPayload(
    of file: ListedFile, with keys: borrowing ClassKeys,
    portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    try PayloadPass(of: file, in: self, with: keys).run(try payload(of: file), portion)
  }

  /// Reads a stored file of a backup without a password.
  ///
  /// - Throws: `.keyUnavailable` for a backup with one, otherwise as `readPayload(of:with:portion:)`.
  public func readPayload(
    of file: ListedFile, portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    guard !isEncrypted else { throw BackupArchiveError(.keyUnavailable, "the backup has a password") }
    return try PayloadPass(storedBytesOf: file, in: self).run(try payload(of: file), portion)
  }

  private func payload(of file: ListedFile) throws(BackupArchiveError) -> StoredPayload {
    let path = layout.storedPath(of: file.fileIdentifier)
    switch source {
    case .folder(let handle, let source):
      return StoredPayload(file.fileIdentifier, .file(path, handle, source))
    case .container(let container): return StoredPayload(file.fileIdentifier, .sought(path, container))
    case .stream:
      throw BackupArchiveError(.notStreamable, "a backup that comes as a stream can be read once, and it was")
    }
  }

  /// Goes through every payload that is stored, each once: one file is read from its start to its end, however many
  /// there are.
  ///
  /// A payload that cannot be read stops no other. While the closure runs the backup is held: only the payload that it is
  /// given may be read in it.
  /// - Throws: `.notStreamable` where the backup came as a stream; `.damaged` where more payloads than
  ///   `ArchiveLimits.resumptionCount` of one file break off; and what `body` throws.
  public func forEachPayload(
    _ body: (StoredPayload) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    switch source {
    case .folder(let handle, let source):
      for identifier in try storedFiles().fileIdentifiers() {
        try body(StoredPayload(identifier, .file(layout.storedPath(of: identifier), handle, source)))
      }
    case .container(let container):
      try container.forEachFile { (file, walk) throws(BackupArchiveError) in
        guard let path = BackupPath.inside(container.folder, file.path.components),
          let identifier = path.split(separator: "/").last.map(String.init), layout.storedPath(of: identifier) == path,
          isFileIdentifier(identifier)
        else { return }
        try body(StoredPayload(identifier, .passing(file, walk)))
      }
    case .stream:
      throw BackupArchiveError(.notStreamable, "a backup that comes as a stream can be read once, and it was")
    }
  }

  /// Reads a payload as the file that the list says it is.
  ///
  /// - Parameter keys: `nil` for what the stored bytes alone say: then the plain size is the stored one, and the padding
  ///   counts as valid.
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

/// A payload where it is stored, to be read once.
public struct StoredPayload {
  public let fileIdentifier: String
  private let place: Place

  fileprivate enum Place {
    case file(_ path: String, FolderHandle, FolderSource)
    /// An entry that a reader has come to.
    case passing(ContainerWalk.File, ContainerWalk)
    /// An entry that has to be looked for.
    case sought(_ path: String, ContainerHandle)
  }

  fileprivate init(_ fileIdentifier: String, _ place: Place) {
    self.fileIdentifier = fileIdentifier
    self.place = place
  }

  /// - Returns: `false` where nothing is stored.
  fileprivate func forEachPortion(
    _ body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    switch place {
    case .file(let path, let handle, let source):
      return try source.readPayload(path, in: handle.descriptor, portion: body)
    case .passing(let file, let walk):
      try walk.forEachPortion(of: file, body)
      return true
    case .sought(let path, let container):
      return try container.walk { (walk) throws(BackupArchiveError) in
        while let file = try walk.next() {
          guard BackupPath.inside(container.folder, file.path.components) == path else { continue }
          try walk.forEachPortion(of: file, body)
          return true
        }
        return false
      }
    }
  }
}

/// One reading of a payload: what is measured of its stored bytes, and its decryption where it is to be decrypted.
private struct PayloadPass {
  private let part: String
  /// As the list calls it, and where it is stored.
  private let place: String
  private let isEmpty: Bool
  private let isEncrypted: Bool
  private let decryptor: FileDecryptor?

  /// Reads the bytes as they are stored.
  init(storedBytesOf file: ListedFile, in archive: BackupArchive) throws(BackupArchiveError) {
    try self.init(file, in: archive, decryptor: nil)
  }

  init(
    of file: ListedFile, in archive: BackupArchive, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) {
    guard archive.isEncrypted, file.kind == .file else {
      try self.init(file, in: archive, decryptor: nil)
      return
    }
    let part = archive.layout.storedPath(of: file.fileIdentifier)
    guard let field = try file.record()?.encryptionKey?.serialized() else {
      throw BackupArchiveError(.damaged, "the list of files has no key for \(part)")
    }
    let key = try archive.fileKey(field, of: part, keys: keys)
    let decryptor = try explained(part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    try self.init(file, in: archive, decryptor: decryptor)
  }

  private init(
    _ file: ListedFile, in archive: BackupArchive, decryptor: FileDecryptor?
  ) throws(BackupArchiveError) {
    let part = archive.layout.storedPath(of: file.fileIdentifier)
    self.part = part
    place = file.relativePath.map { quoted("\(file.domain ?? "")/\($0)") + ", stored as \(part)" } ?? part
    guard file.kind == .file else { throw BackupArchiveError(.unsupported, "\(part) is listed as no file") }
    isEmpty = try file.record()?.size == 0
    isEncrypted = archive.isEncrypted
    self.decryptor = decryptor
  }

  func run(
    _ payload: StoredPayload, _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    let digest = try explained(part) { () throws(DataProtectionError) in try DigestStream(.sha1) }
    var (storedCount, plainCount): (Int64, Int64) = (0, 0)
    func lend(_ plain: UnsafeRawBufferPointer) throws(BackupArchiveError) {
      guard !plain.isEmpty else { return }
      plainCount += Int64(plain.count)
      try portion(plain)
    }
    let isPresent = try payload.forEachPortion { (bytes) throws(BackupArchiveError) in
      try explained(part) { () throws(DataProtectionError) in try digest.update(bytes) }
      storedCount += Int64(bytes.count)
      guard let decryptor else { return try lend(bytes) }
      try explained(part) { () throws(DataProtectionError) in try decryptor.update(bytes) }.lend(to: lend)
    }
    guard isPresent || isEmpty else {
      throw BackupArchiveError(.payloadMissing, "the list of files names \(place), which is not there")
    }
    // A padding alone would be sixteen bytes, so that nothing at all is right only where nothing is listed.
    var isValid = storedCount > 0 || !isEncrypted || isEmpty
    if storedCount > 0, let decryptor {
      let end = try finish(decryptor)
      try end?.bytes.lend(to: lend)
      isValid = end?.hasValidPadding ?? false
    }
    return PayloadReading(
      storedByteCount: storedCount, plainByteCount: plainCount,
      storedSHA1: try explained(part) { () throws(DataProtectionError) in try digest.finish() },
      hasValidPadding: isValid)
  }

  /// - Returns: `nil` for a length that is no whole blocks, which cannot end in padding.
  private func finish(_ decryptor: FileDecryptor) throws(BackupArchiveError) -> FileCipher.Decrypted? {
    do throws(DataProtectionError) {
      return try decryptor.finish()
    } catch {
      guard error.code == .malformed else { throw BackupArchiveError(error, in: part) }
      return nil
    }
  }
}

extension [UInt8] {
  fileprivate func lend(
    to body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    let result: Result<Void, BackupArchiveError> = withUnsafeBytes { buffer in
      do throws(BackupArchiveError) {
        return .success(try body(buffer))
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }
}
