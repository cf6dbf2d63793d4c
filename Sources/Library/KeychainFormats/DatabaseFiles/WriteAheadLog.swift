/// The committed pages in a database's write-ahead log, the file `-wal`.
///
/// Source: SQLite, "Database File Format", section 4 (the write-ahead log).
package struct WriteAheadLog {
  package let pageByteCount: Int
  /// The offset in the log at which each page's last committed content begins, by page number. The first page is 1.
  package let pageStarts: [Int: Int]
  /// The number of pages of the database after the last commit, or 0 if the log has none.
  package let pageCount: Int
  /// Whether uncommitted, invalid or partial frames of this generation follow the last commit.
  package let hasUncommittedFrames: Bool
  /// The offset of the end of the last commit, or of the end of the header if there is none.
  package let committedByteCount: Int
  /// Whether a complete frame of any generation follows the header.
  package let hasFrames: Bool

  private static let headerByteCount = 32
  private static let frameHeaderByteCount = 24

  /// Reads a log.
  ///
  /// - Returns: `nil` if the header is not that of a log, or its checksum is wrong.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count >= Self.headerByteCount else { return nil }
    // The lowest bit of the first number is the byte order of the checksums. The second number is the format's version.
    let magic = bytes.bigEndian(at: 0)
    guard magic & ~1 == 0x377f_0682, bytes.bigEndian(at: 4) == 3_007_000,
      let size = Int(exactly: bytes.bigEndian(at: 8)), DatabasePage.isByteCount(size)
    else { return nil }
    var checksum = WALChecksum(isBigEndian: magic & 1 == 1)
    checksum.add(bytes, 0..<24)
    guard checksum.s0 == bytes.bigEndian(at: 24), checksum.s1 == bytes.bigEndian(at: 28) else { return nil }
    pageByteCount = size
    var committed: [Int: Int] = [:]
    var pending: [Int: Int] = [:]
    var lastPageCount = 0
    var committedFrameCount = 0
    var hasInvalidFrame = false
    var frame = 0
    let frameByteCount = Self.frameHeaderByteCount + size
    let frameCount = (bytes.count - Self.headerByteCount) / frameByteCount
    while frame < frameCount {
      let start = Self.headerByteCount + frame * frameByteCount
      let page = Int(bytes.bigEndian(at: start))
      let count = Int(bytes.bigEndian(at: start + 4))
      // If the salts differ, the frame is of an earlier generation.
      guard bytes[start + 8..<start + 16].elementsEqual(bytes[16..<24]) else { break }
      checksum.add(bytes, start..<start + 8)
      checksum.add(bytes, start + Self.frameHeaderByteCount..<start + frameByteCount)
      guard page > 0, checksum.s0 == bytes.bigEndian(at: start + 16), checksum.s1 == bytes.bigEndian(at: start + 20)
      else {
        hasInvalidFrame = true
        break
      }
      pending[page] = start + Self.frameHeaderByteCount
      frame += 1
      if count > 0 {
        committed.merge(pending) { _, later in later }
        pending = [:]
        lastPageCount = count
        committedFrameCount = frame
      }
    }
    pageStarts = committed
    pageCount = lastPageCount
    committedByteCount = Self.headerByteCount + committedFrameCount * frameByteCount
    hasFrames = frameCount > 0
    // An incomplete frame at the end matters only if all frames before it are valid.
    let end = Self.headerByteCount + frameCount * frameByteCount
    let hasIncompleteFrame = frame == frameCount && bytes.count > end
    hasUncommittedFrames = hasInvalidFrame || hasIncompleteFrame || frame > committedFrameCount
  }
}

/// The running checksum of a log: two sums, `s0` and `s1` in SQLite's documentation.
private struct WALChecksum {
  let isBigEndian: Bool
  private(set) var s0: UInt32 = 0
  private(set) var s1: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// - Parameter range: A range whose length is a multiple of 8 bytes.
  mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
    for offset in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
      let (left, right) = (bytes.bigEndian(at: offset), bytes.bigEndian(at: offset + 4))
      s0 = s0 &+ (isBigEndian ? left : left.byteSwapped) &+ s1
      s1 = s1 &+ (isBigEndian ? right : right.byteSwapped) &+ s0
    }
  }
}

extension [UInt8] {
  /// Returns the number in four bytes, which must all exist.
  package func bigEndian(at offset: Int) -> UInt32 {
    self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}

/// A page of an SQLite database.
///
/// Source: SQLite, "Database File Format", section 1.3.2.
package enum DatabasePage {
  /// Returns whether pages can have this number of bytes.
  package static func isByteCount(_ count: Int) -> Bool { (512...65536).contains(count) && count & (count - 1) == 0 }
}
