import Basics
import KeychainFormats

#if canImport(Glibc)
  import func Glibc.memchr
#elseif canImport(Musl)
  import func Musl.memchr
#elseif canImport(Darwin)
  import func Darwin.memchr
#endif

/// Verifies the checksums and lengths of a gzip file, which libarchive 3.6 ignores.
///
/// A gzip file can have several members with their own checksums. libarchive does not report where a member ends. So
/// each position that looks like the start of a member is a possible boundary. The bytes before it would be the
/// checksum and length of the preceding member, with which the decompressed bytes are compared. A false boundary
/// matches only once in four billion times.
///
/// Source: RFC 1952, sections 2.2 and 2.3.1.
final class GzipChecksumVerifier: ByteSource {
  private let source: FileDescriptorSource
  /// The last delivered bytes, with a few bytes before them.
  private var window: [UInt8] = []
  /// The offset of the window in the stream.
  private var windowOffset: Int64 = 0
  /// The possible boundaries that no member has ended at yet.
  private var pending: [Boundary] = []
  private var checksum = CRC32()
  /// The number of decompressed bytes that were added to the current member.
  private var byteCount: Int64 = 0

  /// A position where a member may begin, with the trailer of the preceding member.
  private struct Boundary {
    let offset: Int64
    let checksum: UInt32
    let byteCount: UInt32
  }

  private static let trailerByteCount = 8
  /// The number of bytes that are kept in the window: the last trailer, and the bytes after it that libarchive reads.
  private static let retainedByteCount = 64
  /// The maximum number of boundaries that are tested at a time. In a valid gzip file, the first boundary is the next
  /// one.
  private static let maximumAttemptCount = 256

  init(_ source: FileDescriptorSource) { self.source = source }

  var hasEnded: Bool { source.hasEnded }
  func skip(_ count: Int64) -> Int64 { 0 }
  func seek(_ offset: Int64, _ origin: SeekOrigin) -> Int64? { nil }

  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    let bytes = try source.next()
    guard !bytes.isEmpty else { return bytes }
    let retainedCount = min(window.count, Self.retainedByteCount)
    windowOffset += Int64(window.count - retainedCount)
    window.removeFirst(window.count - retainedCount)
    window.append(contentsOf: bytes)
    // A header may begin in the retained bytes and end in the new ones.
    findBoundaries(from: max(0, retainedCount - Self.headerByteCount + 1))
    return bytes
  }

  /// Adds decompressed bytes.
  ///
  /// - Parameter consumed: The position of libarchive in the stream before it returned these bytes. All compressed
  ///   bytes before it are included.
  func process(_ bytes: UnsafeRawBufferPointer, consumed: Int64) {
    var remaining = bytes[...]
    while !remaining.isEmpty {
      endMembers()
      let count = min(Int64(remaining.count), distanceToBoundary ?? .max)
      let memberBytes = remaining.prefix(Int(count))
      checksum.update(UnsafeRawBufferPointer(rebasing: memberBytes))
      byteCount += count
      remaining = remaining.dropFirst(Int(count))
    }
    endMembers()
    // libarchive has decompressed everything before `consumed`, so the remaining boundaries there are false.
    if let index = pending.firstIndex(where: { $0.offset > consumed }), index > 0 { pending.removeFirst(index) }
  }

  /// Verifies the last member.
  ///
  /// - Parameter consumed: The end of the last member in the stream.
  func finish(consumed: Int64) throws(KeyhaulError) {
    endMembers()
    let start = consumed - Int64(Self.trailerByteCount) - windowOffset
    guard let start = Int(exactly: start), start >= 0, start + Self.trailerByteCount <= window.count,
      isEnd(boundary(at: start + Self.trailerByteCount))
    else {
      throw KeyhaulError(.damaged, "the gzip checksum does not match the contents")
    }
  }

  /// The size of the magic number, method, and flags of a member's header.
  private static let headerByteCount = 4

  /// Adds the positions in the window at which a member may begin, with these bytes:
  ///
  ///     0x1F 0x8B  signature
  ///     8          the only method
  ///     flags      the three highest are reserved and zero
  private func findBoundaries(from start: Int) {
    var index = start
    while let position = firstSignature(from: index) {
      index = position + 1
      guard position + Self.headerByteCount <= window.count else { return }
      guard window[position + 1] == 0x8B, window[position + 2] == 8, window[position + 3] & 0xE0 == 0,
        position >= Self.trailerByteCount
      else { continue }
      let boundary = boundary(at: position)
      // An empty member does not change the state.
      if boundary.byteCount != 0 || boundary.checksum != 0 { pending.append(boundary) }
    }
  }

  /// Returns the next position in the window at which a header may begin.
  private func firstSignature(from start: Int) -> Int? {
    window.withUnsafeBytes { window in
      guard start < window.count, let base = window.baseAddress else { return nil }
      return memchr(base + start, 0x1F, window.count - start).map { UnsafeRawPointer($0) - base }
    }
  }

  /// Creates a boundary with the trailer before it: the checksum and the length, each a 32-bit little-endian number.
  ///
  /// - Parameter position: The position in the window, after at least eight bytes.
  private func boundary(at position: Int) -> Boundary {
    func littleEndian(at start: Int) -> UInt32 {
      window[start..<start + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
    return Boundary(
      offset: windowOffset + Int64(position), checksum: littleEndian(at: position - 8),
      byteCount: littleEndian(at: position - 4))
  }

  /// Returns whether the current member matches a boundary's checksum and length. Lengths are modulo 2^32.
  private func isEnd(_ boundary: Boundary) -> Bool {
    boundary.byteCount == UInt32(truncatingIfNeeded: byteCount) && boundary.checksum == checksum.value
  }

  /// Ends the current member, and empty members after it, if a boundary has the checksum and length of the member.
  private func endMembers() {
    while let index = pending.prefix(Self.maximumAttemptCount).firstIndex(where: isEnd) {
      pending.removeFirst(index + 1)
      checksum = CRC32()
      byteCount = 0
    }
  }

  /// The number of decompressed bytes until the next boundary can be tested, or `nil` if no boundary remains.
  private var distanceToBoundary: Int64? {
    let current = UInt32(truncatingIfNeeded: byteCount)
    return pending.prefix(Self.maximumAttemptCount).lazy.map { Int64($0.byteCount &- current) }.filter { $0 > 0 }.min()
  }
}

/// The CRC-32 checksum of gzip and zip, for data in chunks.
///
/// Processes 16 bytes at a time with 16 tables, and two ranges in parallel. Source: RFC 1952, section 8.
struct CRC32 {
  private var register: UInt32 = .max

  init() {}

  /// The checksum of all bytes that were added.
  var value: UInt32 { ~register }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    let alignedCount = bytes.count & ~15
    var (value, offset) = (register, 0)
    Self.tables.withUnsafeBufferPointer { tables in
      // Two ranges in parallel, so that their table look-ups do not wait for each other.
      while offset + 2 * Self.rangeByteCount <= bytes.count {
        var valueOfNextRange: UInt32 = 0
        for start in stride(from: offset, to: offset + Self.rangeByteCount, by: 16) {
          value = Self.register(value, after: bytes, at: start, tables)
          valueOfNextRange = Self.register(
            valueOfNextRange, after: bytes, at: start + Self.rangeByteCount, tables)
        }
        value = Self.afterRangeOfZeros(value) ^ valueOfNextRange
        offset += 2 * Self.rangeByteCount
      }
      for start in stride(from: offset, to: alignedCount, by: 16) {
        value = Self.register(value, after: bytes, at: start, tables)
      }
      for byte in bytes[alignedCount...] { value = value >> 8 ^ tables[Int((value ^ UInt32(byte)) & 0xFF)] }
    }
    register = value
  }

  /// Returns the register after 16 more bytes.
  @inline(__always)
  private static func register(
    _ register: UInt32, after bytes: UnsafeRawBufferPointer, at offset: Int, _ tables: UnsafeBufferPointer<UInt32>
  ) -> UInt32 {
    let bytes0to7 =
      UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ UInt64(register)
    let bytes8to15 = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
    // The previous register affects only the first eight bytes, so the look-ups of the others do not wait for it.
    return remainder(of: bytes8to15, firstTable: 7, tables) ^ remainder(of: bytes0to7, firstTable: 15, tables)
  }

  /// Returns the contribution of eight bytes.
  ///
  /// - Parameter firstTable: The number of the first byte's table. Each following byte has the table before.
  @inline(__always)
  private static func remainder(
    of word: UInt64, firstTable: Int, _ tables: UnsafeBufferPointer<UInt32>
  ) -> UInt32 {
    let start = firstTable << 8
    let bytes0and1 = tables[start | Int(word & 0xFF)] ^ tables[start - 0x100 | Int(word >> 8 & 0xFF)]
    let bytes2and3 = tables[start - 0x200 | Int(word >> 16 & 0xFF)] ^ tables[start - 0x300 | Int(word >> 24 & 0xFF)]
    let bytes4and5 = tables[start - 0x400 | Int(word >> 32 & 0xFF)] ^ tables[start - 0x500 | Int(word >> 40 & 0xFF)]
    let bytes6and7 = tables[start - 0x600 | Int(word >> 48 & 0xFF)] ^ tables[start - 0x700 | Int(word >> 56)]
    return bytes0and1 ^ bytes2and3 ^ bytes4and5 ^ bytes6and7
  }

  /// The size of the ranges that are processed in parallel, in bytes.
  private static let rangeByteCount = 1024

  /// Returns the register after a range of zero bytes. The checksum is linear, so the actual bytes can be added
  /// afterwards.
  private static func afterRangeOfZeros(_ register: UInt32) -> UInt32 {
    (0..<4).reduce(0) { $0 ^ zeros[$1 << 8 | Int(register >> (8 * UInt32($1)) & 0xFF)] }
  }

  /// The register after a range of zero bytes, for each value of each of its four bytes.
  private static let zeros: [UInt32] = {
    let bits = (0..<32).map { bit in
      (0..<rangeByteCount).reduce(UInt32(1) << UInt32(bit)) { value, _ in value >> 8 ^ tables[Int(value & 0xFF)] }
    }
    return (0..<1024).map { index in
      (0..<8).reduce(0) { index >> $1 & 1 == 1 ? $0 ^ bits[8 * (index >> 8) + $1] : $0 }
    }
  }()

  private static let polynomial: UInt32 = 0xEDB8_8320

  /// The tables for a byte with 0 to 15 zero bytes after it.
  private static let tables: [UInt32] = {
    var tables = (0..<256).map { byte in
      (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1 }
    }
    for index in 256..<4096 {
      let before = tables[index - 256]
      tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
    }
    return tables
  }()
}
