package import Basics
package import KeychainCrypto
package import KeychainFormats

/// What came of reading one stored file to its end.
public struct PayloadReading: Sendable, Hashable {
  /// As it lies in the backup.
  package var storedByteCount: Int64
  /// Without its padding where it is encrypted: the padding decides, never the recorded size.
  package var plainByteCount: Int64
  /// The SHA-1 of the stored bytes, 20 bytes; `nil` if it was not computed.
  package var storedSHA1: [UInt8]?
  /// Of what it decrypts to, where that was read and the record has a digest; `nil` for what is stored in clear.
  package var plainSHA1: [UInt8]?
  /// `false` for an encrypted file that ends in no padding: it is damaged or another one. True where none is needed.
  package var hasValidPadding: Bool

  /// Whether a record's digest is of these bytes: of the stored ones, as most lists of encrypted backups have it, or of
  /// the plain ones.
  ///
  /// - Returns: `nil` if the record has none: then a changed byte cannot be seen.
  package func fits(_ digest: [UInt8]?) -> Bool? {
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
  private let file: ListedFile
  private let part: String
  private let isEncrypted: Bool
  private let decryptor: FileDecryptor?
  /// Whether it has the file's key; otherwise it takes the bytes as they are stored.
  package var decrypts: Bool { decryptor != nil }

  /// Reads the bytes as they are stored.
  package init(storedBytesOf file: ListedFile, in archive: BackupArchive) throws(KeyhaulError) {
    self.init(file, try Self.record(of: file, in: archive), in: archive, decryptor: nil)
  }

  package init(
    of file: ListedFile, in archive: BackupArchive, with keys: ClassKeys
  ) throws(KeyhaulError) {
    let record = try Self.record(of: file, in: archive)
    guard archive.areFilesEncrypted else {
      self.init(file, record, in: archive, decryptor: nil)
      return
    }
    let part = archive.layout.storedPath(of: file.fileIdentifier)
    guard let field = record?.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for \(part)")
    }
    let key = try archive.fileKey(field, of: part, keys: keys)
    let decryptor = try explained(part) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    self.init(file, record, in: archive, decryptor: decryptor)
  }

  private init(_ file: ListedFile, _ record: FileRecord?, in archive: BackupArchive, decryptor: FileDecryptor?) {
    let part = archive.layout.storedPath(of: file.fileIdentifier)
    self.file = file
    self.part = part
    self.record = record
    isEncrypted = archive.areFilesEncrypted
    self.decryptor = decryptor
  }

  /// Decoded once: it takes as long as the digest of a small file.
  private static func record(
    of file: ListedFile, in archive: BackupArchive
  ) throws(KeyhaulError) -> FileRecord? {
    guard file.kind == .file else {
      let part = archive.layout.storedPath(of: file.fileIdentifier)
      throw KeyhaulError(.unsupported, "\(part) is not listed as a file")
    }
    return try file.record()
  }

  /// Reads it to its end and lends the plain bytes.
  package func run(
    _ payload: StoredPayload, digests: Digests = .all,
    _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadReading {
    let (stored, plain) = try streams(digests)
    var (storedCount, plainCount): (Int64, Int64) = (0, 0)
    func lend(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
      guard !bytes.isEmpty else { return }
      plainCount += Int64(bytes.count)
      try add(bytes, to: plain)
      try portion(bytes)
    }
    try forEachPortion(of: payload) { (bytes) throws(KeyhaulError) in
      try add(bytes, to: stored)
      storedCount += Int64(bytes.count)
      guard let decryptor else { return try lend(bytes) }
      try lend(try explained(part) { () throws(DataProtectionError) in try decryptor.plain(of: bytes) })
    }
    var isValid = isRightWhereEmpty
    if storedCount > 0, let decryptor {
      let end = try finish(decryptor)
      try end?.bytes.withRawBytes(lend)
      isValid = end?.hasValidPadding ?? false
    } else if storedCount > 0 {
      isValid = true
    }
    return PayloadReading(
      storedByteCount: storedCount, plainByteCount: plainCount,
      storedSHA1: try finished(stored), plainSHA1: try finished(plain), hasValidPadding: isValid)
  }

  /// Reads it to its end for what is known of it then. Of an encrypted file its last blocks alone are decrypted, unless the
  /// digest of the plain bytes is asked for: nothing else of them could be wrong.
  ///
  /// - Parameter whileReading: Called for every portion, and ends the reading with an error.
  package func measure(
    _ payload: StoredPayload, digests: Digests, whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadReading {
    guard digests == .stored, let decryptor else {
      return try run(payload, digests: digests) { (_) throws(KeyhaulError) in try whileReading() }
    }
    let (stored, _) = try streams(digests)
    var ending = FileEnding(of: decryptor)
    var storedCount: Int64 = 0
    try forEachPortion(of: payload) { (bytes) throws(KeyhaulError) in
      try whileReading()
      try add(bytes, to: stored)
      storedCount += Int64(bytes.count)
      ending.pass(bytes)
    }
    let end = try explained(part) { () throws(DataProtectionError) in try ending.finish() }
    return PayloadReading(
      storedByteCount: storedCount, plainByteCount: end.plainByteCount,
      storedSHA1: try finished(stored), plainSHA1: nil,
      hasValidPadding: storedCount > 0 ? end.hasValidPadding : isRightWhereEmpty)
  }

  /// As the list calls it, and where it is stored.
  private var place: String {
    file.relativePath.map { quoted("\(file.domain ?? "")/\($0)") + ", stored as \(part)" } ?? part
  }

  private var isEmpty: Bool { record?.size == 0 }
  /// A padding alone would be sixteen bytes, so that nothing at all is right only where nothing is listed.
  private var isRightWhereEmpty: Bool { !isEncrypted || isEmpty }

  private func forEachPortion(
    of payload: StoredPayload, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    guard try payload.forEachPortion(body) || isEmpty else {
      throw KeyhaulError(.payloadMissing, "the manifest lists \(place), which is missing")
    }
  }

  private func streams(_ digests: Digests) throws(KeyhaulError) -> (stored: DigestStream?, plain: DigestStream?) {
    let hasDigest = record?.digest != nil
    return (
      digests == .stored && !hasDigest ? nil : try sha1(),
      digests == .stored || decryptor == nil || !hasDigest ? nil : try sha1()
    )
  }

  private func add(_ bytes: UnsafeRawBufferPointer, to digest: DigestStream?) throws(KeyhaulError) {
    guard let digest else { return }
    try explained(part) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  private func finished(_ digest: DigestStream?) throws(KeyhaulError) -> [UInt8]? {
    try digest.map { (digest) throws(KeyhaulError) in
      try explained(part) { () throws(DataProtectionError) in try digest.finish() }
    }
  }

  private func sha1() throws(KeyhaulError) -> DigestStream {
    try explained(part) { () throws(DataProtectionError) in try DigestStream(.sha1) }
  }

  /// - Returns: `nil` for a length that is no whole blocks, which cannot end in padding.
  private func finish(_ decryptor: FileDecryptor) throws(KeyhaulError) -> FileCipher.Decrypted? {
    do throws(DataProtectionError) {
      return try decryptor.finish()
    } catch {
      guard error.code == .malformed else { throw KeyhaulError(error, in: part) }
      return nil
    }
  }
}
