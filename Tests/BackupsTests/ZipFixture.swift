/// A writer of zip files with any faults and uncompressed entries.
struct ZipFixture {
  private var locals: [UInt8] = []
  private var directory: [UInt8] = []
  private var count = 0

  /// Adds an entry.
  ///
  /// - Parameters:
  ///   - mode: The `st_mode` in the upper half of the external attributes, as on Unix.
  ///   - claimed: The size in both headers, if it differs from the actual one.
  mutating func add(_ name: String, _ content: [UInt8] = [], mode: Int = 0o100600, claimed: Int? = nil) {
    add(nameBytes: Array(name.utf8), content, mode: mode, claimed: claimed)
  }

  /// Differences between the local header and the central directory.
  struct Local {
    var name: [UInt8]?
    var flags: Int?
    var method = 0
    var checksum: Int?
    var compressedSize: Int?
    var size: Int?
    var extra: [UInt8] = []
  }

  /// Adds an entry with differing headers.
  ///
  /// - Parameters:
  ///   - hasZip64Offset: Whether the directory gives the entry's position in the Zip64 extra field.
  ///   - extra: The extra fields in the directory.
  ///   - local: The differences between the local header and the directory.
  mutating func add(
    nameBytes: [UInt8], _ content: [UInt8] = [], mode: Int = 0o100600, claimed: Int? = nil, flags: Int = 0,
    hasZip64Offset: Bool = false, extra: [UInt8] = [], local: Local = Local()
  ) {
    let size = claimed ?? content.count
    let checksum = Int(crc32(content))
    func fields(_ name: [UInt8], _ flags: Int, _ method: Int, _ checksum: Int, _ compressedSize: Int, _ size: Int)
      -> [UInt8]
    {
      word(20, 2) + word(flags, 2) + word(method, 2) + word(0, 2) + word(0x21, 2) + word(checksum, 4)
        + word(compressedSize, 4)
        + word(size, 4) + word(name.count, 2)
    }
    let offset = locals.count
    let localName = local.name ?? nameBytes
    locals += [0x50, 0x4B, 3, 4]
    locals += fields(
      localName, local.flags ?? flags, local.method, local.checksum ?? checksum, local.compressedSize ?? content.count,
      local.size ?? size)
    locals += word(local.extra.count, 2) + localName + local.extra + content
    let extra = extra + (hasZip64Offset ? word(1, 2) + word(8, 2) + word(offset, 8) : [])
    directory += [0x50, 0x4B, 1, 2] + word(0x0314, 2)
    directory += fields(nameBytes, flags, 0, checksum, content.count, size) + word(extra.count, 2)
    directory += word(0, 2) + word(0, 2) + word(0, 2) + word(mode << 16, 4)
    directory += word(hasZip64Offset ? -1 : offset, 4) + nameBytes + extra
    count += 1
  }

  /// Lists all entries again, so that several share a local header.
  mutating func listAgain(times: Int) {
    let (entries, entryCount) = (directory, count)
    for _ in 0..<times {
      directory += entries
      count += entryCount
    }
  }

  /// The numbers of the end record.
  var endRecord: (count: Int, size: Int, offset: Int) { (count, directory.count, locals.count) }

  func finished() -> [UInt8] {
    locals + directory + [0x50, 0x4B, 5, 6] + word(0, 4) + word(count, 2) + word(count, 2)
      + word(directory.count, 4) + word(locals.count, 4) + word(0, 2)
  }

  /// Returns the zip with 64-bit end records.
  ///
  /// - Parameters:
  ///   - offset: The position of the directory in the 64-bit record, if it differs from the actual one.
  ///   - endRecord: The numbers of the last record. -1 means that only the 64-bit record has the number.
  func finishedAsZip64(
    directoryAt offset: Int? = nil, endRecord: (count: Int, size: Int, offset: Int) = (-1, -1, -1)
  ) -> [UInt8] {
    let record = locals.count + directory.count
    let large =
      [0x50, 0x4B, 6, 6] + word(44, 8) + word(45, 2) + word(45, 2) + word(0, 8) + word(count, 8) + word(count, 8)
      + word(directory.count, 8) + word(offset ?? locals.count, 8)
    let locator = [0x50, 0x4B, 6, 7] + word(0, 4) + word(record, 8) + word(1, 4)
    let end =
      [0x50, 0x4B, 5, 6] + word(0, 4) + word(endRecord.count, 2) + word(endRecord.count, 2) + word(endRecord.size, 4)
      + word(endRecord.offset, 4) + word(0, 2)
    return locals + directory + large + locator + end
  }

  /// Returns Info-ZIP's extra field with a UTF-8 name, which replaces the name in a header.
  func unicodePath(_ name: String, of header: String) -> [UInt8] {
    word(0x7075, 2) + word(5 + name.utf8.count, 2) + [1] + word(Int(crc32(Array(header.utf8))), 4) + Array(name.utf8)
  }

  /// Returns the Zip64 extra field, with 64-bit numbers.
  func zip64Field(_ numbers: Int...) -> [UInt8] {
    word(1, 2) + word(8 * numbers.count, 2) + numbers.flatMap { word($0, 8) }
  }

  /// Returns the zip with another zip's directory between its own directory and the end record.
  func finished(before other: ZipFixture) -> [UInt8] {
    locals + directory + other.directory + [0x50, 0x4B, 5, 6] + word(0, 4) + word(count, 2) + word(count, 2)
      + word(directory.count, 4) + word(locals.count, 4) + word(0, 2)
  }

  /// Returns the entries without the central directory.
  func withoutDirectory() -> [UInt8] { locals }

  private func word(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Returns the CRC-32 checksum of ISO 3309, computed bit by bit.
  private func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc = ~0 as UInt32
    for byte in bytes {
      crc ^= UInt32(byte)
      // A range with a closure would be ten times slower without optimization.
      var bit = 0
      while bit < 8 {
        crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1
        bit += 1
      }
    }
    return ~crc
  }
}
