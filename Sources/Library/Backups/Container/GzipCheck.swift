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

  func next() throws(BackupArchiveError) -> UnsafeRawBufferPointer {
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
  func finish(consumed: Int64) throws(BackupArchiveError) {
    endMembers()
    let start = consumed - Int64(Self.trailerByteCount) - windowOffset
    guard let start = Int(exactly: start), start >= 0, start + Self.trailerByteCount <= window.count,
      isEnd(boundary(at: start + Self.trailerByteCount))
    else {
      throw BackupArchiveError(.damaged, "the gzip checksum does not match its contents")
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
