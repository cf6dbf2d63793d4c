/// The checksum of gzip and zip, of bytes that come in portions.
///
/// Source: RFC 1952, section 8. Eight bytes at a time, with eight tables.
package struct CRC32 {
  private var register: UInt32 = .max

  package init() {}

  /// Of all bytes so far.
  package var value: UInt32 { ~register }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    let wholeCount = bytes.count & ~7
    Self.tables.withUnsafeBufferPointer { tables in
      for place in stride(from: 0, to: wholeCount, by: 8) {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)) ^ UInt64(register)
        let low = tables[0x700 | Int(word & 0xFF)] ^ tables[0x600 | Int(word >> 8 & 0xFF)]
        let second = tables[0x500 | Int(word >> 16 & 0xFF)] ^ tables[0x400 | Int(word >> 24 & 0xFF)]
        let third = tables[0x300 | Int(word >> 32 & 0xFF)] ^ tables[0x200 | Int(word >> 40 & 0xFF)]
        let high = tables[0x100 | Int(word >> 48 & 0xFF)] ^ tables[Int(word >> 56)]
        register = low ^ second ^ third ^ high
      }
      for byte in bytes[wholeCount...] { register = register >> 8 ^ tables[Int((register ^ UInt32(byte)) & 0xFF)] }
    }
  }

  private static let polynomial: UInt32 = 0xEDB8_8320

  /// The table of a byte with so many zero bytes behind it, for 0 to 7 of them, one behind the other.
  private static let tables: [UInt32] = {
    var tables = (0..<256).map { byte in
      (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1 }
    }
    for index in 256..<2048 {
      let before = tables[index - 256]
      tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
    }
    return tables
  }()
}
