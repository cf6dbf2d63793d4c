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
