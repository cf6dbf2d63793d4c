import TestSupport

/// A writer of gzip files without compression, and with any faults in their trailers.
///
/// Source: RFC 1952 for the member, RFC 1951 section 3.2.4 for its blocks.
struct GzipFixture {
  private(set) var bytes: [UInt8] = []

  /// Adds a member. Its checksum and length can differ from those of its content.
  mutating func add(_ content: [UInt8], checksum: UInt32? = nil, byteCount: Int? = nil) {
    // The magic number, the method "deflate", no flags, no time, no extra flags, and an unknown system.
    bytes += [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
    var remaining = content[...]
    repeat {
      let block = remaining.prefix(65_535)
      remaining = remaining.dropFirst(block.count)
      let isLastBlock = remaining.isEmpty
      bytes.append(isLastBlock ? 1 : 0)
      // The length, and its complement.
      bytes += [UInt8](littleEndian: block.count, count: 2) + [UInt8](littleEndian: ~block.count, count: 2)
      bytes += block
    } while !remaining.isEmpty
    bytes += [UInt8](littleEndian: Int(checksum ?? Self.checksum(content)), count: 4)
    bytes += [UInt8](littleEndian: byteCount ?? content.count, count: 4)
  }

  /// Returns the checksum computed bit by bit, as RFC 1952 defines it.
  static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var register = UInt32.max
    for byte in bytes {
      register ^= UInt32(byte)
      for _ in 0..<8 { register = register & 1 == 1 ? register >> 1 ^ 0xEDB8_8320 : register >> 1 }
    }
    return ~register
  }
}
