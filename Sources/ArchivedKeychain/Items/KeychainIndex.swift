import BackupArchive
import DataProtection
import KeychainFormats

/// The items of a keychain file. Of a large one of a backup their places alone are held: the items are read out of the
/// archive's private copy, and decrypted, some at a time.
struct KeychainIndex: Sendable {
  private let contents: Contents

  private enum Contents {
    case held([KeychainBackupFile.Entry])
    /// Without the bytes that lie at their places.
    case placed([KeychainBackupFile.Entry], Source)
  }

  /// Items of a file at hand.
  init(_ file: KeychainBackupFile) { contents = .held(file.entries) }

  /// The items of a backup's file.
  ///
  /// - Parameters:
  ///   - payload: The file as it was opened.
  ///   - keys: The class keys that it was opened with; `nil` where the backup's files are in clear.
  init(
    _ payload: KeychainPayload, of archive: BackupArchive, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) {
    // What was written in XML has no bytes of its own in the file.
    if !payload.file.isXML, let source = try Source(payload, of: archive, with: keys) {
      contents = .placed(payload.file.entries.map { .init($0, in: []) }, source)
    } else {
      contents = .held(payload.file.entries)
    }
  }

  var count: Int {
    switch contents {
    case .held(let entries), .placed(let entries, _): entries.count
    }
  }

  /// Some of the items, with their bytes.
  ///
  /// - Throws: `.unreadable` where the system does not give the copy.
  func entries(_ positions: Range<Int>) throws(BackupArchiveError) -> [KeychainBackupFile.Entry] {
    switch contents {
    case .held(let entries): return Array(entries[positions])
    case .placed(let places, let source):
      let decryptor = try source.decryptor()
      let ranges = places[positions].flatMap(\.ranges)
      let start = ranges.reduce(Int.max) { min($0, $1.lowerBound) }
      let end = ranges.reduce(0) { max($0, $1.upperBound) }
      let byteCount = ranges.reduce(0) { $0 + $1.count }
      // As they are written they lie side by side. Scattered ones are read each for itself, so that no more is held.
      if start < end, end - start <= 2 * byteCount + (1 << 16) {
        let bytes = try source.bytes(start..<end, with: decryptor)
        return places[positions].map { .init($0, in: bytes, beginningAt: start) }
      }
      var entries: [KeychainBackupFile.Entry] = []
      for entry in places[positions] {
        var parts: [[UInt8]] = []
        for range in entry.ranges { parts.append(try source.bytes(range, with: decryptor)) }
        entries.append(.init(entry, of: parts))
      }
      return entries
    }
  }

  /// The archive's copy of the file, as the backup has it.
  private final class Source: Sendable {
    private let stored: StoredBytes
    private let key: HeldKey?

    /// A key with an owner that can be absent.
    private final class HeldKey: Sendable {
      let secret: Secret

      init(_ secret: consuming Secret) { self.secret = secret }
    }

    private static let part = "the keychain file"

    /// - Returns: `nil` for a file that is in memory anyway.
    init?(
      _ payload: KeychainPayload, of archive: BackupArchive, with keys: borrowing ClassKeys
    ) throws(BackupArchiveError) {
      guard let stored = archive.storedLargeKeychain else { return nil }
      self.stored = stored
      if let key = try archive.keychainKey(in: payload.fileList, with: keys) {
        self.key = HeldKey(key)
      } else {
        key = nil
      }
    }

    /// For one thread; `nil` where the file is in clear.
    func decryptor() throws(BackupArchiveError) -> FileSectionDecryptor? {
      guard let key else { return nil }
      do throws(DataProtectionError) {
        return try FileSectionDecryptor(key: key.secret)
      } catch {
        throw BackupArchiveError(error, in: Self.part)
      }
    }

    /// The bytes of the plain file in a range, all of which it has.
    func bytes(_ range: Range<Int>, with decryptor: FileSectionDecryptor?) throws(BackupArchiveError) -> [UInt8] {
      guard let decryptor else {
        return try [UInt8](count: range.count) { (buffer) throws(BackupArchiveError) in
          try stored.read(at: range.lowerBound, into: buffer)
        }
      }
      let size = FileSectionDecryptor.blockSize
      let (first, end) = (range.lowerBound / size * size, (range.upperBound + size - 1) / size * size)
      let before = first == 0 ? 0 : size
      var bytes = try [UInt8](count: before + end - first) { (buffer) throws(BackupArchiveError) in
        try stored.read(at: first - before, into: buffer)
      }
      let previous = before == 0 ? nil : Array(bytes[..<size])
      do throws(DataProtectionError) {
        try bytes.withMutableRawBytes { (buffer) throws(DataProtectionError) in
          try decryptor.decrypt(UnsafeMutableRawBufferPointer(rebasing: buffer[before...]), after: previous)
        }
      } catch {
        throw BackupArchiveError(error, in: Self.part)
      }
      let start = before + range.lowerBound - first
      return Array(bytes[start..<start + range.count])
    }
  }
}
