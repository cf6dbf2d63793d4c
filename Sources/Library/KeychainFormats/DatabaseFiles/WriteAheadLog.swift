/// The committed pages in a database's write-ahead log, the file `-wal`.
///
/// A log consists of a header and frames. All numbers are big-endian and have four bytes:
///
/// ```
/// header  magic, version, page size, checkpoint, two salts, two sums of the checksum
/// frame   page number, page count of the database or 0, two salts, two sums of the checksum, content of the page
/// ```
///
/// A frame with a page count commits its transaction. A frame of the current generation has the salts of the header; a
/// frame with other salts is left over from an earlier generation.
///
/// Source: SQLite, "Database File Format", section 4 (the write-ahead log).
package struct WriteAheadLog {
  package let pageByteCount: Int
  /// The offset in the log at which each page's last committed content begins, by page number. The first page is 1.
  package let pageStarts: [Int: Int]
  /// The number of pages of the database after the last commit, or 0 if the log has none.
  package let pageCount: Int
  /// Whether uncommitted, invalid or partial frames of the current generation follow the last commit.
  package let hasUncommittedFrames: Bool
  /// The offset of the end of the last commit, or of the end of the header if there is none.
  package let committedByteCount: Int
  /// Whether a complete frame of any generation follows the header.
  package let hasFrames: Bool

  private static let headerByteCount = 32
  private static let frameHeaderByteCount = 24

  /// Reads a log.
  ///
  /// - Returns: `nil` if the bytes do not start with a log's header, or its checksum is wrong.
  package init?(_ bytes: [UInt8]) {
    guard let header = Header(bytes) else { return nil }
    let frameByteCount = Self.frameHeaderByteCount + header.pageByteCount
    let frameCount = (bytes.count - Self.headerByteCount) / frameByteCount
    var reader = FrameReader(bytes, header)
    while reader.frameCount < frameCount {
      guard reader.readFrame(at: Self.headerByteCount + reader.frameCount * frameByteCount) else { break }
    }
    pageByteCount = header.pageByteCount
    pageStarts = reader.committedPageStarts
    pageCount = reader.pageCount
    committedByteCount = Self.headerByteCount + reader.committedFrameCount * frameByteCount
    hasFrames = frameCount > 0
    // An incomplete frame at the end matters only if all frames before it are valid.
    let end = Self.headerByteCount + frameCount * frameByteCount
    let hasIncompleteFrame = reader.frameCount == frameCount && bytes.count > end
    hasUncommittedFrames =
      reader.hasInvalidFrame || hasIncompleteFrame || reader.frameCount > reader.committedFrameCount
  }

  private struct Header {
    let pageByteCount: Int
    /// The checksum of the header. The checksums of the frames continue it.
    let checksum: WALChecksum

    /// The magic number without its lowest bit, which is the byte order of the checksums.
    private static let magic: UInt32 = 0x377f_0682
    private static let version: UInt32 = 3_007_000

    init?(_ bytes: [UInt8]) {
      guard bytes.count >= headerByteCount else { return nil }
      let magic = bytes.bigEndian(at: 0)
      guard magic & ~1 == Self.magic, bytes.bigEndian(at: 4) == Self.version,
        let pageByteCount = Int(exactly: bytes.bigEndian(at: 8)), DatabasePage.isByteCount(pageByteCount)
      else { return nil }
      var checksum = WALChecksum(isBigEndian: magic & 1 == 1)
      checksum.add(bytes, 0..<24)
      guard checksum.isStored(in: bytes, at: 24) else { return nil }
      self.pageByteCount = pageByteCount
      self.checksum = checksum
    }
  }

  /// Reads the valid frames of the current generation in order.
  private struct FrameReader {
    /// The number of valid frames.
    private(set) var frameCount = 0
    private(set) var committedFrameCount = 0
    private(set) var committedPageStarts: [Int: Int] = [:]
    private(set) var pageCount = 0
    private(set) var hasInvalidFrame = false
    private var uncommittedPageStarts: [Int: Int] = [:]
    private var checksum: WALChecksum
    private let bytes: [UInt8]
    private let pageByteCount: Int

    init(_ bytes: [UInt8], _ header: Header) {
      self.bytes = bytes
      pageByteCount = header.pageByteCount
      checksum = header.checksum
    }

    /// Reads the frame at an offset.
    ///
    /// - Returns: Whether the frame is valid and of the current generation.
    mutating func readFrame(at start: Int) -> Bool {
      let content = start + frameHeaderByteCount..<start + frameHeaderByteCount + pageByteCount
      // If the salts differ from the salts in the header, the frame is of an earlier generation.
      guard bytes[start + 8..<start + 16].elementsEqual(bytes[16..<24]) else { return false }
      let page = Int(bytes.bigEndian(at: start))
      checksum.add(bytes, start..<start + 8)
      checksum.add(bytes, content)
      guard page > 0, checksum.isStored(in: bytes, at: start + 16) else {
        hasInvalidFrame = true
        return false
      }
      uncommittedPageStarts[page] = content.lowerBound
      frameCount += 1
      let pageCountAfterCommit = Int(bytes.bigEndian(at: start + 4))
      if pageCountAfterCommit > 0 { commit(pageCount: pageCountAfterCommit) }
      return true
    }

    private mutating func commit(pageCount: Int) {
      committedPageStarts.merge(uncommittedPageStarts) { _, later in later }
      uncommittedPageStarts = [:]
      committedFrameCount = frameCount
      self.pageCount = pageCount
    }
  }
}

/// The running checksum of a log: two sums, `s0` and `s1` in SQLite's documentation.
private struct WALChecksum {
  private let isBigEndian: Bool
  private var s0: UInt32 = 0
  private var s1: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// - Parameter range: A range whose length is a multiple of 8 bytes.
  mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
    for offset in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
      let (left, right) = (bytes.bigEndian(at: offset), bytes.bigEndian(at: offset + 4))
      s0 = s0 &+ (isBigEndian ? left : left.byteSwapped) &+ s1
      s1 = s1 &+ (isBigEndian ? right : right.byteSwapped) &+ s0
    }
  }

  /// Returns whether both sums are stored at an offset.
  func isStored(in bytes: [UInt8], at offset: Int) -> Bool {
    s0 == bytes.bigEndian(at: offset) && s1 == bytes.bigEndian(at: offset + 4)
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
  /// Returns whether pages can have this number of bytes: a power of two from 512 to 65,536.
  package static func isByteCount(_ count: Int) -> Bool { (512...65536).contains(count) && count & (count - 1) == 0 }
}
