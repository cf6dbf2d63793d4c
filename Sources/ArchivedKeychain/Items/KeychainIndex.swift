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
    case placed([KeychainBackupFile.Entry], KeychainSource)
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
    if !payload.file.isXML, let stored = archive.storedLargeKeychain {
      let source = KeychainSource(stored, key: try archive.keychainKey(in: payload.fileList, with: keys))
      contents = .placed(payload.file.entries.map { .init($0, in: []) }, source)
    } else {
      contents = .held(payload.file.entries)
    }
  }

  /// Items of which their places in the plain file are known.
  init(_ places: [KeychainBackupFile.Entry], in source: KeychainSource) { contents = .placed(places, source) }

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
}
