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
  /// A folder is read now, relative to the handle that was opened; of one file the entry is looked for from its start.
  /// Bytes have been lent before damage at the end can be seen.
  /// - Parameter keys: The backup's keybag, unlocked; not used for a backup without a password.
  /// - Throws: `.payloadMissing` where nothing is stored, though an empty file is read as such; `.keyUnavailable`,
  ///   `.damaged` for a file without a key in an encrypted backup; `.unsupported` for what is no file, and where the
  ///   backup came as a stream, which is gone; and what `portion` throws.
  public func readPayload(
    of file: ListedFile, with keys: borrowing ClassKeys,
    portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    let part = try nameOfPayload(file)
    let record = try file.record()
    guard isEncrypted else {
      return try reading(
        file, part: part, record: record,
        plain: { (bytes) throws(BackupArchiveError) in
          try portion(bytes)
          return bytes.count
        }, finish: { () throws(BackupArchiveError) in (0, true) })
    }
    guard let field = record?.encryptionKey?.serialized() else {
      throw BackupArchiveError(.damaged, "the list of files has no key for \(part)")
    }
    let key = try fileKey(field, of: part, keys: keys)
    let decryptor = try FileDecryption(key, part: part)
    return try reading(
      file, part: part, record: record,
      plain: { (bytes) throws(BackupArchiveError) in
        let plain = try decryptor.update(bytes)
        try lend(plain, to: portion)
        return plain.count
      },
      finish: { () throws(BackupArchiveError) in
        let end = try decryptor.finish()
        try lend(end.bytes, to: portion)
        return (end.bytes.count, end.hasValidPadding)
      })
  }

  /// Reads a stored file of a backup without a password.
  ///
  /// - Throws: `.keyUnavailable` for a backup with one, otherwise as `readPayload(of:with:portion:)`.
  public func readPayload(
    of file: ListedFile, portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> PayloadReading {
    guard !isEncrypted else { throw BackupArchiveError(.keyUnavailable, "the backup has a password") }
    let part = try nameOfPayload(file)
    return try reading(
      file, part: part, record: try file.record(),
      plain: { (bytes) throws(BackupArchiveError) in
        try portion(bytes)
        return bytes.count
      }, finish: { () throws(BackupArchiveError) in (0, true) })
  }

  /// Goes through a payload's stored bytes without opening it.
  ///
  /// - Returns: As `readPayload` does, but for what only a key can tell: the plain size is the stored one, and the
  ///   padding counts as valid.
  public func readStoredPayload(of file: ListedFile) throws(BackupArchiveError) -> PayloadReading {
    let part = try nameOfPayload(file)
    return try reading(
      file, part: part, record: try file.record(), plain: { $0.count },
      finish: { () throws(BackupArchiveError) in (0, true) })
  }

  private func nameOfPayload(_ file: ListedFile) throws(BackupArchiveError) -> String {
    let path = layout.storedPath(of: file.fileIdentifier)
    guard file.kind == .file else { throw BackupArchiveError(.unsupported, "\(path) is listed as no file") }
    return path
  }

  /// - Parameters:
  ///   - plain: Told each portion as it is stored; answers how many plain bytes came of it.
  ///   - finish: How many more came at the end, and whether that was as it should be.
  private func reading(
    _ file: ListedFile, part: String, record: FileRecord?,
    plain: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Int,
    finish: () throws(BackupArchiveError) -> (count: Int, isValid: Bool)
  ) throws(BackupArchiveError) -> PayloadReading {
    var digest = try explained(part) { () throws(DataProtectionError) in try SHA1Stream() }
    var (storedCount, plainCount): (Int64, Int64) = (0, 0)
    let isPresent = try forEachPortion(of: part) { (bytes) throws(BackupArchiveError) in
      do throws(DataProtectionError) {
        try digest.update(bytes)
      } catch {
        throw BackupArchiveError(error, in: part)
      }
      storedCount += Int64(bytes.count)
      plainCount += Int64(try plain(bytes))
    }
    guard isPresent || record?.size == 0 else {
      throw BackupArchiveError(.payloadMissing, "the list of files names \(part), which is not there")
    }
    var isValid = true
    if storedCount > 0 {
      let end = try finish()
      plainCount += Int64(end.count)
      isValid = end.isValid
    } else if isEncrypted {
      // A padding alone would be sixteen bytes.
      isValid = record?.size == 0
    }
    let sum: [UInt8]
    do throws(DataProtectionError) {
      sum = try digest.finish()
    } catch {
      throw BackupArchiveError(error, in: part)
    }
    return PayloadReading(
      storedByteCount: storedCount, plainByteCount: plainCount, storedSHA1: sum, hasValidPadding: isValid)
  }

  private func forEachPortion(
    of path: String, _ body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    switch source {
    case .folder(let handle, let source): return try source.readPayload(path, in: handle.descriptor, portion: body)
    case .container(let container): return try container.readPayload(path, portion: body)
    case .stream:
      throw BackupArchiveError(.notStreamable, "a backup that comes as a stream can be read once, and it was")
    }
  }

  private func lend(
    _ bytes: [UInt8], to portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    guard !bytes.isEmpty else { return }
    let result: Result<Void, BackupArchiveError> = bytes.withUnsafeBytes { buffer in
      do throws(BackupArchiveError) {
        return .success(try portion(buffer))
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }
}

/// A decryption under way that closures can share.
final class FileDecryption {
  private var decryptor: FileDecryptor
  private let part: String

  init(_ key: borrowing Secret, part: String) throws(BackupArchiveError) {
    self.part = part
    do throws(DataProtectionError) {
      decryptor = try FileDecryptor(key: key)
    } catch {
      throw BackupArchiveError(error, in: part)
    }
  }

  func update(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError) -> [UInt8] {
    do throws(DataProtectionError) {
      return try decryptor.update(Array(bytes))
    } catch {
      throw BackupArchiveError(error, in: part)
    }
  }

  /// A length that is no whole blocks counts as an end without padding.
  func finish() throws(BackupArchiveError) -> (bytes: [UInt8], hasValidPadding: Bool) {
    do throws(DataProtectionError) {
      let end = try decryptor.finish()
      return (end.bytes, end.hasValidPadding)
    } catch {
      guard error.code == .malformed else { throw BackupArchiveError(error, in: part) }
      return ([], false)
    }
  }
}
