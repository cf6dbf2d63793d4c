package import Basics
package import KeychainCrypto
package import KeychainFormats

/// The result of reading a stored file completely.
public struct PayloadScan: Sendable, Hashable {
  /// The stored size in bytes.
  package var storedByteCount: Int64
  /// The plaintext size in bytes. For an encrypted file, the padding determines it, not the recorded size.
  package var plainByteCount: Int64
  /// The SHA-1 digest of the stored bytes, 20 bytes, or `nil` if it was not computed.
  package var storedSHA1: [UInt8]?
  /// The SHA-1 digest of the plaintext, or `nil` if the file is not encrypted, was not decrypted, or has no recorded
  /// digest.
  package var plainSHA1: [UInt8]?
  /// Whether the padding of an encrypted file is valid. If not, the file is damaged or a different one. `true` for an
  /// unencrypted file.
  package var hasValidPadding: Bool

  /// Compares a recorded digest with those of the stored bytes, which most lists of encrypted backups contain, and of
  /// the plaintext.
  ///
  /// - Returns: Whether one of them matches, or `nil` if there is no recorded digest, so that changes cannot be
  ///   detected.
  package func matches(_ digest: [UInt8]?) -> Bool? {
    digest.map { $0 == storedSHA1 || $0 == plainSHA1 }
  }
}

/// A single read of a payload, with digests of its stored bytes and, optionally, decryption.
package struct PayloadScanner {
  /// The digests that a read computes.
  package enum Digests {
    /// The digests of the stored bytes and, if the record has a digest, of the plaintext.
    case all
    /// The digest of the stored bytes, if the record has a digest.
    case stored
  }

  /// The list's record of the file.
  package let record: FileRecord?
  private let file: ListedFile
  private let part: String
  private let isEncrypted: Bool
  private let decryptor: FileDecryptor?
  /// Whether the pass has the file's key. Without it, the stored bytes are read.
  package var decrypts: Bool { decryptor != nil }

  /// Creates a pass that reads the stored bytes.
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

  /// Decodes the record once, because this takes as long as the digest of a small file.
  private static func record(
    of file: ListedFile, in archive: BackupArchive
  ) throws(KeyhaulError) -> FileRecord? {
    guard file.kind == .file else {
      let part = archive.layout.storedPath(of: file.fileIdentifier)
      throw KeyhaulError(.unsupported, "\(part) is not listed as a file")
    }
    return try file.record()
  }

  /// Reads the payload completely and passes its plaintext to a closure.
  package func run(
    _ payload: StoredPayload, digests: Digests = .all,
    _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadScan {
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
    return PayloadScan(
      storedByteCount: storedCount, plainByteCount: plainCount,
      storedSHA1: try finished(stored), plainSHA1: try finished(plain), hasValidPadding: isValid)
  }

  /// Reads the payload completely to measure it. Unless the digest of the plaintext is required, only the last blocks
  /// of an encrypted file are decrypted, because only the padding can be invalid.
  ///
  /// - Parameter whileReading: Called for each portion. Its errors end the read.
  package func measure(
    _ payload: StoredPayload, digests: Digests, whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadScan {
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
      ending.update(bytes)
    }
    let end = try explained(part) { () throws(DataProtectionError) in try ending.finish() }
    return PayloadScan(
      storedByteCount: storedCount, plainByteCount: end.plainByteCount,
      storedSHA1: try finished(stored), plainSHA1: nil,
      hasValidPadding: storedCount > 0 ? end.hasValidPadding : isRightWhereEmpty)
  }

  /// The listed path and the stored path, for errors.
  private var place: String {
    file.relativePath.map { quoted("\(file.domain ?? "")/\($0)") + ", stored as \(part)" } ?? part
  }

  private var isEmpty: Bool { record?.size == 0 }
  /// Whether a payload without bytes is valid. An encrypted file has at least 16 bytes of padding, unless the listed
  /// file is empty.
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

  /// Finishes the decryption. Returns `nil` if the length is not a multiple of the block size, so that there is no
  /// padding.
  private func finish(_ decryptor: FileDecryptor) throws(KeyhaulError) -> FileCipher.Decrypted? {
    do throws(DataProtectionError) {
      return try decryptor.finish()
    } catch {
      guard error.code == .malformed else { throw KeyhaulError(error, in: part) }
      return nil
    }
  }
}
