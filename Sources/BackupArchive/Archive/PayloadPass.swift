package import DataProtection
package import KeychainFormats

/// What came of reading one stored file to its end.
public struct PayloadReading: Sendable, Hashable {
  /// As it lies in the backup.
  public var storedByteCount: Int64
  /// Without its padding where it is encrypted: the padding decides, never the recorded size.
  public var plainByteCount: Int64
  /// Of the stored bytes, 20 bytes; `nil` where nobody needed it.
  public var storedSHA1: [UInt8]?
  /// Of what it decrypts to, where that was read and the record has a digest; `nil` for what is stored in clear.
  public var plainSHA1: [UInt8]?
  /// `false` for an encrypted file that ends in no padding: it is damaged or another one. True where none is needed.
  public var hasValidPadding: Bool

  /// Whether a record's digest is of these bytes: of the stored ones, as most lists of encrypted backups have it, or of
  /// the plain ones.
  ///
  /// - Returns: `nil` where the record has none: then a changed byte cannot be seen.
  public func fits(_ digest: [UInt8]?) -> Bool? {
    digest.map { $0 == storedSHA1 || $0 == plainSHA1 }
  }
}

/// One reading of a payload: what is measured of its stored bytes, and its decryption where it is to be decrypted.
package struct PayloadPass {
  /// Which digests a reading is to make.
  package enum Digests {
    /// That of the stored bytes, and that of the plain ones where the record has one to hold it against.
    case all
    /// That of the stored bytes, where the record has one to hold it against.
    case stored
  }

  /// What the list records of the file.
  package let record: FileRecord?
  private let part: String
  /// As the list calls it, and where it is stored.
  private let place: String
  private let isEncrypted: Bool
  private let decryptor: FileDecryptor?

  /// Reads the bytes as they are stored.
  package init(storedBytesOf file: ListedFile, in archive: BackupArchive) throws(BackupArchiveError) {
    self.init(file, try Self.record(of: file, in: archive), in: archive, decryptor: nil)
  }

  package init(
    of file: ListedFile, in archive: BackupArchive, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) {
    let record = try Self.record(of: file, in: archive)
    guard archive.areFilesEncrypted else {
      self.init(file, record, in: archive, decryptor: nil)
      return
    }
    let part = archive.layout.storedPath(of: file.fileIdentifier)
    guard let field = record?.encryptionKey?.serialized() else {
      throw BackupArchiveError(.damaged, "the list of files has no key for \(part)")
    }
    let key = try archive.fileKey(field, of: part, keys: keys)
    let decryptor = try explained(part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    self.init(file, record, in: archive, decryptor: decryptor)
  }

  private init(_ file: ListedFile, _ record: FileRecord?, in archive: BackupArchive, decryptor: FileDecryptor?) {
    let part = archive.layout.storedPath(of: file.fileIdentifier)
    self.part = part
    place = file.relativePath.map { quoted("\(file.domain ?? "")/\($0)") + ", stored as \(part)" } ?? part
    self.record = record
    isEncrypted = archive.areFilesEncrypted
    self.decryptor = decryptor
  }

  /// Decoded once: it takes as long as the digest of a small file.
  private static func record(
    of file: ListedFile, in archive: BackupArchive
  ) throws(BackupArchiveError) -> FileRecord? {
    guard file.kind == .file else {
      let part = archive.layout.storedPath(of: file.fileIdentifier)
      throw BackupArchiveError(.unsupported, "\(part) is listed as no file")
    }
    return try file.record()
  }

  package func run(
    _ payload: StoredPayload, digests: Digests = .all,
    _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    let (hasDigest, isEmpty) = (record?.digest != nil, record?.size == 0)
    let digest = digests == .stored && !hasDigest ? nil : try sha1()
    let plainDigest = digests == .stored || decryptor == nil || !hasDigest ? nil : try sha1()
    var (storedCount, plainCount): (Int64, Int64) = (0, 0)
    func lend(_ plain: UnsafeRawBufferPointer) throws(BackupArchiveError) {
      guard !plain.isEmpty else { return }
      plainCount += Int64(plain.count)
      if let plainDigest { try explained(part) { () throws(DataProtectionError) in try plainDigest.update(plain) } }
      try portion(plain)
    }
    let isPresent = try payload.forEachPortion { (bytes) throws(BackupArchiveError) in
      if let digest { try explained(part) { () throws(DataProtectionError) in try digest.update(bytes) } }
      storedCount += Int64(bytes.count)
      guard let decryptor else { return try lend(bytes) }
      try lend(try explained(part) { () throws(DataProtectionError) in try decryptor.plain(of: bytes) })
    }
    guard isPresent || isEmpty else {
      throw BackupArchiveError(.payloadMissing, "the list of files names \(place), which is not there")
    }
    // A padding alone would be sixteen bytes, so that nothing at all is right only where nothing is listed.
    var isValid = storedCount > 0 || !isEncrypted || isEmpty
    if storedCount > 0, let decryptor {
      let end = try finish(decryptor)
      try end?.bytes.withRawBytes(lend)
      isValid = end?.hasValidPadding ?? false
    }
    return PayloadReading(
      storedByteCount: storedCount, plainByteCount: plainCount,
      storedSHA1: try finished(digest), plainSHA1: try finished(plainDigest), hasValidPadding: isValid)
  }

  private func finished(_ digest: DigestStream?) throws(BackupArchiveError) -> [UInt8]? {
    try digest.map { (digest) throws(BackupArchiveError) in
      try explained(part) { () throws(DataProtectionError) in try digest.finish() }
    }
  }

  private func sha1() throws(BackupArchiveError) -> DigestStream {
    try explained(part) { () throws(DataProtectionError) in try DigestStream(.sha1) }
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
