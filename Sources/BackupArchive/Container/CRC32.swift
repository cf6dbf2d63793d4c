/// The checksum of gzip and zip, of bytes that come in portions.
///
/// Source: RFC 1952, section 8. Sixteen bytes at a time, with sixteen tables.
struct CRC32 {
  private var register: UInt32 = .max

  init() {}

  /// Of all bytes so far.
  var value: UInt32 { ~register }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    let wholeCount = bytes.count & ~15
    Self.tables.withUnsafeBufferPointer { tables in
      for place in stride(from: 0, to: wholeCount, by: 16) {
        let first = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)) ^ UInt64(register)
        let second = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self))
        // What was read before goes into the first word alone: the second one's look-ups wait for nothing.
        register = Self.remainder(of: second, 0x700, tables) ^ Self.remainder(of: first, 0xF00, tables)
      }
      for byte in bytes[wholeCount...] { register = register >> 8 ^ tables[Int((register ^ UInt32(byte)) & 0xFF)] }
    }
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
