import Basics
import KeychainFormats

#if canImport(Glibc)
  import func Glibc.memchr
#elseif canImport(Musl)
  import func Musl.memchr
#elseif canImport(Darwin)
  import func Darwin.memchr
#endif

/// Holds what a gzip becomes against the checksum and the length behind it, which libarchive (3.6) passes over.
///
/// A gzip may have several members, each with a checksum of its own. Where one ends is not asked of libarchive, which
/// does not say: each place that looks like the next member's beginning is tried when as many bytes have come as the
/// length before it says. A place that is none has the right checksum once in four thousand million times.
///
/// Source: RFC 1952, sections 2.2 and 2.3.1.
final class GzipCheck: ByteFeed {
  private let source: DescriptorFeed
  /// What was delivered last, with a few bytes from before it.
  private var window: [UInt8] = []
  /// Where the window begins in the stream.
  private var windowOffset: Int64 = 0
  private var pending: [Boundary] = []
  private var checksum = CRC32()
  /// Of the member that is being read.
  private var byteCount: Int64 = 0

  /// A place in the stream where another member may begin, and what the eight bytes before it say of the one that ends.
  private struct Boundary {
    let offset: Int64
    let checksum: UInt32
    let byteCount: UInt32
  }

  private static let trailerByteCount = 8
  /// Bytes of the window that are kept when the next ones come: the last trailer and what libarchive looks at behind it.
  private static let keptByteCount = 64
  /// Boundaries that are tried at a time, the first ones. Of an honest gzip the first one is the next.
  private static let triedCount = 256

  init(_ source: DescriptorFeed) { self.source = source }

  var hasEnded: Bool { source.hasEnded }
  func skip(_ count: Int64) -> Int64 { 0 }
  func seek(_ offset: Int64, _ origin: SeekOrigin) -> Int64? { nil }

  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer {
    let bytes = try source.next()
    guard !bytes.isEmpty else { return bytes }
    let kept = min(window.count, Self.keptByteCount)
    windowOffset += Int64(window.count - kept)
    window.removeFirst(window.count - kept)
    window.append(contentsOf: bytes)
    findBoundaries(from: max(0, kept - Self.headerByteCount + 1))
    return bytes
  }

  /// Takes what came out.
  ///
  /// - Parameter consumed: Where in the stream libarchive stood before it was asked for these bytes: what was packed
  ///   before that has come out with them.
  func take(_ bytes: UnsafeRawBufferPointer, consumed: Int64) {
    var rest = bytes[...]
    while !rest.isEmpty {
      endMembers()
      let count = min(Int64(rest.count), distanceToBoundary ?? .max)
      let part = rest.prefix(Int(count))
      checksum.update(UnsafeRawBufferPointer(rebasing: part))
      byteCount += count
      rest = rest.dropFirst(Int(count))
    }
    endMembers()
    if let index = pending.firstIndex(where: { $0.offset > consumed }), index > 0 { pending.removeFirst(index) }
  }

  /// Asks whether the last member was what its own end says.
  ///
  /// - Parameter consumed: Where in the stream the last member ends.
  func finish(consumed: Int64) throws(KeyhaulError) {
    endMembers()
    let start = consumed - Int64(Self.trailerByteCount) - windowOffset
    guard let start = Int(exactly: start), start >= 0, start + Self.trailerByteCount <= window.count,
      isEnd(boundary(at: start + Self.trailerByteCount))
    else {
      throw KeyhaulError(.damaged, "the gzip checksum does not match the contents")
    }
  }

  /// Mark, method and flags of a member's header.
  private static let headerByteCount = 4

  private func findBoundaries(from start: Int) {
    var index = start
    while let place = firstMark(from: index) {
      index = place + 1
      guard place + Self.headerByteCount <= window.count else { return }
      // Method 8 is the only one there is; three flags are not taken. Source: RFC 1952, section 2.3.1.
      guard window[place + 1] == 0x8B, window[place + 2] == 8, window[place + 3] & 0xE0 == 0,
        place >= Self.trailerByteCount
      else { continue }
      let found = boundary(at: place)
      // Behind an empty member all is as it was before it.
      if found.byteCount != 0 || found.checksum != 0 { pending.append(found) }
    }
  }

  /// The place in the window of the next byte that a header could begin with.
  private func firstMark(from start: Int) -> Int? {
    window.withUnsafeBytes { window in
      guard start < window.count, let base = window.baseAddress else { return nil }
      return memchr(base + start, 0x1F, window.count - start).map { UnsafeRawPointer($0) - base }
    }
  }

  /// - Parameter place: In the window, with at least eight bytes before it.
  private func boundary(at place: Int) -> Boundary {
    func number(_ start: Int) -> UInt32 { window[start..<start + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) } }
    return Boundary(
      offset: windowOffset + Int64(place), checksum: number(place - 8), byteCount: number(place - 4))
  }

  /// Whether what came of the member is all that a boundary says of it. Lengths count modulo 2^32.
  private func isEnd(_ boundary: Boundary) -> Bool {
    boundary.byteCount == UInt32(truncatingIfNeeded: byteCount) && boundary.checksum == checksum.value
  }

  private func endMembers() {
    while let index = pending.prefix(Self.triedCount).firstIndex(where: isEnd) {
      pending.removeFirst(index + 1)
      checksum = CRC32()
      byteCount = 0
    }
  }

  /// How many bytes are missing of the shortest member that ends at one of the boundaries.
  private var distanceToBoundary: Int64? {
    let current = UInt32(truncatingIfNeeded: byteCount)
    return pending.prefix(Self.triedCount).lazy.map { Int64($0.byteCount &- current) }.filter { $0 > 0 }.min()
  }
}

/// The checksum of gzip and zip, of bytes that come in portions.
///
/// Source: RFC 1952, section 8. Sixteen bytes at a time, with sixteen tables, and two stretches of bytes side by side.
struct CRC32 {
  private var register: UInt32 = .max

  init() {}

  /// Of all bytes so far.
  var value: UInt32 { ~register }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    let wholeCount = bytes.count & ~15
    var (first, place) = (register, 0)
    Self.tables.withUnsafeBufferPointer { tables in
      // Two stretches side by side: neither waits for the look-ups of the other.
      while place + 2 * Self.stretch <= bytes.count {
        var second: UInt32 = 0
        for start in stride(from: place, to: place + Self.stretch, by: 16) {
          first = Self.after(first, bytes, start, tables)
          second = Self.after(second, bytes, start + Self.stretch, tables)
        }
        first = Self.afterStretchOfZeros(first) ^ second
        place += 2 * Self.stretch
      }
      for start in stride(from: place, to: wholeCount, by: 16) { first = Self.after(first, bytes, start, tables) }
      for byte in bytes[wholeCount...] { first = first >> 8 ^ tables[Int((first ^ UInt32(byte)) & 0xFF)] }
    }
    register = first
  }

  /// What a register becomes by the sixteen bytes at a place.
  @inline(__always)
  private static func after(
    _ register: UInt32, _ bytes: UnsafeRawBufferPointer, _ place: Int, _ tables: UnsafeBufferPointer<UInt32>
  ) -> UInt32 {
    let first = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)) ^ UInt64(register)
    let second = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self))
    // What was read before goes into the first word alone: the second one's look-ups wait for nothing.
    return remainder(of: second, 0x700, tables) ^ remainder(of: first, 0xF00, tables)
  }

  /// What eight bytes come to.
  ///
  /// - Parameter start: Where the table of the first of them begins; those of the others stand before it.
  @inline(__always)
  private static func remainder(of word: UInt64, _ start: Int, _ tables: UnsafeBufferPointer<UInt32>) -> UInt32 {
    let low = tables[start | Int(word & 0xFF)] ^ tables[start - 0x100 | Int(word >> 8 & 0xFF)]
    let second = tables[start - 0x200 | Int(word >> 16 & 0xFF)] ^ tables[start - 0x300 | Int(word >> 24 & 0xFF)]
    let third = tables[start - 0x400 | Int(word >> 32 & 0xFF)] ^ tables[start - 0x500 | Int(word >> 40 & 0xFF)]
    let high = tables[start - 0x600 | Int(word >> 48 & 0xFF)] ^ tables[start - 0x700 | Int(word >> 56)]
    return low ^ second ^ third ^ high
  }

  /// How many bytes are read beside as many others.
  private static let stretch = 1024

  /// What a register becomes by a stretch of zeros. What follows it adds to that alone: the checksum is linear.
  private static func afterStretchOfZeros(_ register: UInt32) -> UInt32 {
    (0..<4).reduce(0) { $0 ^ zeros[$1 << 8 | Int(register >> (8 * UInt32($1)) & 0xFF)] }
  }

  /// The same of a register with one byte alone, for each byte of the lowest, the next one and so on.
  private static let zeros: [UInt32] = {
    let bits = (0..<32).map { bit in
      (0..<stretch).reduce(UInt32(1) << UInt32(bit)) { value, _ in value >> 8 ^ tables[Int(value & 0xFF)] }
    }
    return (0..<1024).map { index in
      (0..<8).reduce(0) { index >> $1 & 1 == 1 ? $0 ^ bits[8 * (index >> 8) + $1] : $0 }
    }
  }()

  private static let polynomial: UInt32 = 0xEDB8_8320

  /// The table of a byte with so many zero bytes behind it, for 0 to 15 of them, one behind the other.
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
