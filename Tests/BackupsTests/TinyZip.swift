/// Writes zips with any fault in them; every entry is stored as it is.
struct TinyZip {
  private var locals: [UInt8] = []
  private var directory: [UInt8] = []
  private var count = 0

  /// - Parameters:
  ///   - mode: `st_mode`, in the upper half of the external attributes as on Unix.
  ///   - claimed: The size in both headers, where it is to differ from the content's.
  mutating func add(_ name: String, _ content: [UInt8] = [], mode: Int = 0o100600, claimed: Int? = nil) {
    add(nameBytes: Array(name.utf8), content, mode: mode, claimed: claimed)
  }

  /// - Parameter hasLargePlace: Whether the directory says in the extra field of large zips where the entry stands.
  mutating func add(
    nameBytes: [UInt8], _ content: [UInt8] = [], mode: Int = 0o100600, claimed: Int? = nil, flags: Int = 0,
    hasLargePlace: Bool = false
  ) {
    let size = claimed ?? content.count
    let fields =
      word(20, 2) + word(flags, 2) + word(0, 2) + word(0, 2) + word(0x21, 2) + word(Int(crc32(content)), 4)
      + word(content.count, 4) + word(size, 4) + word(nameBytes.count, 2)
    let offset = locals.count
    locals += [0x50, 0x4B, 3, 4] + fields + word(0, 2) + nameBytes + content
    let extra = hasLargePlace ? word(1, 2) + word(8, 2) + word(offset, 8) : []
    directory += [0x50, 0x4B, 1, 2] + word(0x0314, 2) + fields + word(extra.count, 2)
    directory += word(0, 2) + word(0, 2) + word(0, 2) + word(mode << 16, 4)
    directory += word(hasLargePlace ? -1 : offset, 4) + nameBytes + extra
    count += 1
  }

  func finished() -> [UInt8] {
    locals + directory + [0x50, 0x4B, 5, 6] + word(0, 4) + word(count, 2) + word(count, 2)
      + word(directory.count, 4) + word(locals.count, 4) + word(0, 2)
  }

  /// The same with the end records of large zips, whose numbers have 64 bits.
  func finishedAsLarge(directoryAt offset: Int? = nil) -> [UInt8] {
    let record = locals.count + directory.count
    let large =
      [0x50, 0x4B, 6, 6] + word(44, 8) + word(45, 2) + word(45, 2) + word(0, 8) + word(count, 8) + word(count, 8)
      + word(directory.count, 8) + word(offset ?? locals.count, 8)
    let locator = [0x50, 0x4B, 6, 7] + word(0, 4) + word(record, 8) + word(1, 4)
    let end = [0x50, 0x4B, 5, 6] + word(0, 4) + word(-1, 2) + word(-1, 2) + word(-1, 4) + word(-1, 4) + word(0, 2)
    return locals + directory + large + locator + end
  }

  /// The entries without the directory at the end.
  func withoutDirectory() -> [UInt8] { locals }

  private func word(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// CRC-32 of ISO 3309, bit by bit.
  private func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc = ~0 as UInt32
    for byte in bytes {
      crc ^= UInt32(byte)
      // Not a range with a closure: without optimization that takes ten times as long.
      var bit = 0
      while bit < 8 {
        crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1
        bit += 1
      }
    }
    return ~crc
  }
}
