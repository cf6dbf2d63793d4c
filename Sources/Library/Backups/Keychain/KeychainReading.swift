import Basics
import KeychainCrypto
import KeychainFormats

/// The keychain file of a backup after parsing: the positions of its items, and anomalies.
struct KeychainReading: Sendable {
  let index: KeychainIndex
  /// The identifier of the file's keybag.
  let keybagUUID: String?
  /// The size of the plaintext in bytes.
  let byteCount: Int
  /// The anomalies of the backup, its file list, and the keychain file.
  let anomalies: [ToleratedAnomaly]

  /// Reads the file. A large file without anomalies stays in a private copy on disk and is never completely in memory.
  ///
  /// - Parameters:
  ///   - list: The backup's file list.
  ///   - keys: The class keys of the backup's keybag.
  /// - Throws: The errors of `keychainFile(in:with:)`, or `.unreadable` if the private copy cannot be read.
  init(of archive: BackupArchive, in list: FileList, with keys: ClassKeys) throws(KeyhaulError) {
    let decryptor = try Self.decryptor(of: archive, list, with: keys)
    if let decryptor, let reading = try Self(indexing: decryptor, of: archive, list) {
      self = reading
      return
    }
    let payload = try archive.keychainFile(in: list, with: keys)
    // In an XML file, the data of items is encoded in Base64, so it cannot be read by its position.
    if let decryptor, !payload.file.isXML {
      index = KeychainIndex(payload.file.entries.map { .init($0, in: []) }, in: decryptor)
    } else {
      index = KeychainIndex(payload.file)
    }
    keybagUUID = payload.file.keybagUUID
    byteCount = payload.bytes.count
    anomalies = payload.anomalies
  }

  /// Returns the decryptor of a large file in the private copy, or `nil` if the file is already in memory.
  private static func decryptor(
    of archive: BackupArchive, _ list: FileList, with keys: ClassKeys
  ) throws(KeyhaulError) -> RandomAccessDecryptor? {
    guard let stored = archive.storedLargeKeychain else { return nil }
    return RandomAccessDecryptor(
      of: stored, key: try archive.keychainKey(in: list, with: keys), called: "the keychain file")
  }

  /// Finds the positions of the items in the private copy, page by page.
  ///
  /// - Returns: The result, or `nil` if there is an anomaly. The caller then reads the complete file, which reports it.
  private init?(
    indexing decryptor: RandomAccessDecryptor, of archive: BackupArchive, _ list: FileList
  ) throws(KeyhaulError) {
    let record = try archive.keychainRecord(in: list)
    let reader = try decryptor.reader()
    guard let byteCount = try Self.plainByteCount(reader), record.size == Int64(byteCount) else { return nil }
    if let digest = record.digest, try reader.stored.sha1() != digest { return nil }
    // `isXML` needs at most 64 bytes.
    guard !XMLPlist.isXML(try reader.bytes(0..<min(64, byteCount))) else { return nil }

    var failure: KeyhaulError?
    let pages = PagedBytes(count: byteCount) { offset, page in
      do throws(KeyhaulError) {
        try reader.read(at: offset, into: page)
        return true
      } catch {
        failure = error
        return false
      }
    }
    let file = try? KeychainBackupFile(indexing: pages)
    if let failure { throw failure }
    guard let file, file.ignoredKeys.isEmpty else { return nil }
    index = KeychainIndex(file.entries, in: decryptor)
    keybagUUID = file.keybagUUID
    self.byteCount = byteCount
    anomalies = archive.anomalies + list.anomalies
  }

  /// Returns the size of the plaintext, or `nil` if the padding is invalid.
  private static func plainByteCount(_ reader: RandomAccessDecryptor.Reader) throws(KeyhaulError) -> Int? {
    let count = reader.stored.byteCount
    guard reader.isEncrypted else { return count }
    guard count > 0, count.isMultiple(of: RandomAccessDecryptor.blockByteCount) else { return nil }
    return try reader.paddingByteCount(endingAt: count).map { count - $0 }
  }
}

/// The items of a keychain file. For a large file, only their positions are in memory, and the items are read from the
/// private copy and decrypted in chunks.
struct KeychainIndex: Sendable {
  private let contents: Contents

  private enum Contents {
    case loaded([KeychainBackupFile.Entry])
    /// Entries that contain only the positions of their data, and the decryptor that reads the data.
    case deferred([KeychainBackupFile.Entry], RandomAccessDecryptor)
  }

  /// Creates the index of a file in memory.
  init(_ file: KeychainBackupFile) { contents = .loaded(file.entries) }

  /// Creates the index of items at known positions in the plaintext.
  init(_ entries: [KeychainBackupFile.Entry], in decryptor: RandomAccessDecryptor) {
    contents = .deferred(entries, decryptor)
  }

  var count: Int {
    switch contents {
    case .loaded(let entries), .deferred(let entries, _): entries.count
    }
  }

  /// Returns a range of items with their data.
  ///
  /// - Throws: `.unreadable` if the private copy cannot be read.
  func entries(_ positions: Range<Int>) throws(KeyhaulError) -> [KeychainBackupFile.Entry] {
    switch contents {
    case .loaded(let entries): return Array(entries[positions])
    case .deferred(let entries, let decryptor):
      return try Self.entriesWithData(Array(entries[positions]), readBy: try decryptor.reader())
    }
  }

  /// The number of bytes between items that never prevent reading the items together.
  private static let maximumGapByteCount = 1 << 16

  /// Reads the data of entries. Items are usually adjacent and read together. Items are read separately if they make up
  /// less than half of the bytes between the first and the last one, to save memory.
  private static func entriesWithData(
    _ entries: [KeychainBackupFile.Entry], readBy reader: RandomAccessDecryptor.Reader
  ) throws(KeyhaulError) -> [KeychainBackupFile.Entry] {
    let ranges = entries.flatMap(\.ranges)
    let byteCount = ranges.reduce(0) { $0 + $1.count }
    if let start = ranges.map(\.lowerBound).min(), let end = ranges.map(\.upperBound).max(), start < end,
      end - start <= 2 * byteCount + maximumGapByteCount
    {
      let bytes = try reader.bytes(start..<end)
      return entries.map { .init($0, in: bytes, beginningAt: start) }
    }
    var loadedEntries: [KeychainBackupFile.Entry] = []
    for entry in entries {
      var dataOfRanges: [[UInt8]] = []
      for range in entry.ranges { dataOfRanges.append(try reader.bytes(range)) }
      loadedEntries.append(.init(entry, copying: dataOfRanges))
    }
    return loadedEntries
  }
}
