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
  /// Whether the padding of an encrypted file is valid. If not, the file is damaged or is not the listed file. `true` for
  /// an unencrypted file.
  package var hasValidPadding: Bool

  /// Compares a recorded digest with the digests of the stored bytes and of the plaintext. Most lists of encrypted backups
  /// record the digest of the stored bytes.
  ///
  /// - Returns: Whether either digest matches, or `nil` if there is no recorded digest, so that changes cannot be
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
  private let storedPath: String
  private let isEncrypted: Bool
  private let decryptor: FileDecryptor?
  /// Whether the scanner decrypts the payload. Without the file's key, it reads the stored bytes.
  package var decrypts: Bool { decryptor != nil }

  /// Creates a scanner that decrypts the payload if the backup has a password.
  ///
  /// - Parameter keys: The unlocked keybag, or `nil` to read only the stored bytes.
  /// - Throws: `.damaged` if an encrypted file has no key, or the error of unwrapping the key.
  package init(
    of file: ListedFile, in archive: BackupArchive, with keys: ClassKeys?
  ) throws(KeyhaulError) {
    let record = try Self.record(of: file, in: archive)
    guard let keys, archive.areFilesEncrypted else {
      self.init(file, record, in: archive, decryptor: nil)
      return
    }
    let storedPath = archive.layout.storedPath(of: file.fileIdentifier)
    guard let field = record?.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for \(storedPath)")
    }
    let key = try archive.fileKey(field, of: storedPath, keys: keys)
    let decryptor = try translatingErrors(in: storedPath) { () throws(DataProtectionError) in
      try FileDecryptor(key: key)
    }
    self.init(file, record, in: archive, decryptor: decryptor)
  }

  private init(_ file: ListedFile, _ record: FileRecord?, in archive: BackupArchive, decryptor: FileDecryptor?) {
    self.file = file
    storedPath = archive.layout.storedPath(of: file.fileIdentifier)
    self.record = record
    isEncrypted = archive.areFilesEncrypted
    self.decryptor = decryptor
  }

  /// Decodes the record of a file. This takes as long as the digest of a small file, so each scanner does it only once.
  private static func record(
    of file: ListedFile, in archive: BackupArchive
  ) throws(KeyhaulError) -> FileRecord? {
    guard file.kind == .file else {
      throw KeyhaulError(.unsupported, "\(archive.layout.storedPath(of: file.fileIdentifier)) is not listed as a file")
    }
    return try file.record()
  }

  /// Reads the payload completely and passes its plaintext to a closure.
  package func run(
    _ payload: StoredPayload, digests: Digests = .all,
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadScan {
    let (storedDigest, plainDigest) = try digestStreams(digests)
    var storedByteCount: Int64 = 0
    var plainByteCount: Int64 = 0
    func deliver(_ plaintext: UnsafeRawBufferPointer) throws(KeyhaulError) {
      guard !plaintext.isEmpty else { return }
      plainByteCount += Int64(plaintext.count)
      try add(plaintext, to: plainDigest)
      try body(plaintext)
    }
    try forEachChunk(of: payload) { (bytes) throws(KeyhaulError) in
      try add(bytes, to: storedDigest)
      storedByteCount += Int64(bytes.count)
      guard let decryptor else { return try deliver(bytes) }
      try deliver(
        try translatingErrors(in: storedPath) { () throws(DataProtectionError) in try decryptor.plain(of: bytes) })
    }
    let hasValidPadding: Bool
    if storedByteCount == 0 {
      hasValidPadding = isValidIfEmpty
    } else if let decryptor {
      let end = try finish(decryptor)
      try end?.bytes.withRawBytes(deliver)
      hasValidPadding = end?.hasValidPadding ?? false
    } else {
      hasValidPadding = true
    }
    return PayloadScan(
      storedByteCount: storedByteCount, plainByteCount: plainByteCount,
      storedSHA1: try finish(storedDigest), plainSHA1: try finish(plainDigest), hasValidPadding: hasValidPadding)
  }

  /// Reads the payload completely to measure it.
  ///
  /// Unless the digest of the plaintext is required, only the last blocks of an encrypted file are decrypted. The
  /// decryption of other blocks cannot fail, and only the padding at the end can be invalid.
  ///
  /// - Parameter whileReading: Called for each chunk. Its errors end the read.
  package func measure(
    _ payload: StoredPayload, digests: Digests, whileReading: () throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> PayloadScan {
    guard digests == .stored, let decryptor else {
      return try run(payload, digests: digests) { (_) throws(KeyhaulError) in try whileReading() }
    }
    let (storedDigest, _) = try digestStreams(digests)
    var ending = FileEnding(decryptor: decryptor)
    var storedByteCount: Int64 = 0
    try forEachChunk(of: payload) { (bytes) throws(KeyhaulError) in
      try whileReading()
      try add(bytes, to: storedDigest)
      storedByteCount += Int64(bytes.count)
      ending.update(bytes)
    }
    let end = try translatingErrors(in: storedPath) { () throws(DataProtectionError) in try ending.finish() }
    return PayloadScan(
      storedByteCount: storedByteCount, plainByteCount: end.plainByteCount,
      storedSHA1: try finish(storedDigest), plainSHA1: nil,
      hasValidPadding: storedByteCount > 0 ? end.hasValidPadding : isValidIfEmpty)
  }

  /// The listed path and the stored path, for errors.
  private var listedAndStoredPath: String {
    guard let relativePath = file.relativePath else { return storedPath }
    return quoted("\(file.domain ?? "")/\(relativePath)") + ", stored as \(storedPath)"
  }

  /// Whether the listed file is empty.
  private var isEmpty: Bool { record?.size == 0 }
  /// Whether a payload without bytes is valid. An encrypted file has at least 16 bytes of padding, unless the listed
  /// file is empty.
  private var isValidIfEmpty: Bool { !isEncrypted || isEmpty }

  private func forEachChunk(
    of payload: StoredPayload, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let isStored = try payload.forEachChunk(body)
    guard isStored || isEmpty else {
      throw KeyhaulError(.payloadMissing, "the manifest lists \(listedAndStoredPath), which is missing")
    }
  }

  /// Creates the digests of the stored bytes and of the plaintext, each `nil` if it is not required.
  private func digestStreams(
    _ digests: Digests
  ) throws(KeyhaulError) -> (stored: DigestStream?, plain: DigestStream?) {
    let hasRecordedDigest = record?.digest != nil
    let needsStoredDigest = digests == .all || hasRecordedDigest
    let needsPlainDigest = digests == .all && decrypts && hasRecordedDigest
    return (needsStoredDigest ? try sha1() : nil, needsPlainDigest ? try sha1() : nil)
  }

  private func add(_ bytes: UnsafeRawBufferPointer, to digest: DigestStream?) throws(KeyhaulError) {
    guard let digest else { return }
    try translatingErrors(in: storedPath) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  private func finish(_ digest: DigestStream?) throws(KeyhaulError) -> [UInt8]? {
    try digest.map { (digest) throws(KeyhaulError) in
      try translatingErrors(in: storedPath) { () throws(DataProtectionError) in try digest.finish() }
    }
  }

  private func sha1() throws(KeyhaulError) -> DigestStream {
    try translatingErrors(in: storedPath) { () throws(DataProtectionError) in try DigestStream(.sha1) }
  }

  /// Finishes the decryption. Returns `nil` if the length is not a multiple of the block size, so that there is no
  /// padding.
  private func finish(_ decryptor: FileDecryptor) throws(KeyhaulError) -> FileCipher.Decrypted? {
    do throws(DataProtectionError) {
      return try decryptor.finish()
    } catch {
      guard error.code == .malformed else { throw KeyhaulError(error, in: storedPath) }
      return nil
    }
  }
}
