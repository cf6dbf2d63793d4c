import Basics
import KeychainCrypto
import KeychainFormats

/// The items of a keychain file. Of a large one of a backup their places alone are held: the items are read out of the
/// archive's private copy, and decrypted, some at a time.
struct KeychainIndex: Sendable {
  private let contents: Contents

  private enum Contents {
    case held([KeychainBackupFile.Entry])
    /// Without the bytes that lie at their places.
    case placed([KeychainBackupFile.Entry], StoredSections)
  }

  /// Items of a file at hand.
  init(_ file: KeychainBackupFile) { contents = .held(file.entries) }

  /// Items of which their places in the plain file are known.
  init(_ places: [KeychainBackupFile.Entry], in sections: StoredSections) { contents = .placed(places, sections) }

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
    case .placed(let places, let sections):
      let reader = try sections.reader()
      let ranges = places[positions].flatMap(\.ranges)
      let start = ranges.reduce(Int.max) { min($0, $1.lowerBound) }
      let end = ranges.reduce(0) { max($0, $1.upperBound) }
      let byteCount = ranges.reduce(0) { $0 + $1.count }
      // As they are written they lie side by side. Scattered ones are read each for itself, so that no more is held.
      if start < end, end - start <= 2 * byteCount + (1 << 16) {
        let bytes = try reader.bytes(start..<end)
        return places[positions].map { .init($0, in: bytes, beginningAt: start) }
      }
      var entries: [KeychainBackupFile.Entry] = []
      for entry in places[positions] {
        var parts: [[UInt8]] = []
        for range in entry.ranges { parts.append(try reader.bytes(range)) }
        entries.append(.init(entry, of: parts))
      }
      return entries
    }
  }
}
