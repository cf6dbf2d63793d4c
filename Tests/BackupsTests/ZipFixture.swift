import TestSupport

/// A writer of zip files whose entries are not compressed, and which can have any fault.
///
/// A zip has entries, each with a local header and its content, then the central directory, which repeats the headers,
/// and an end record. Source: PKWARE APPNOTE, section 4.3.
struct ZipFixture {
  private enum Signature {
    static let localHeader = Array("PK\u{3}\u{4}".utf8)
    static let directoryHeader = Array("PK\u{1}\u{2}".utf8)
    static let endRecord = Array("PK\u{5}\u{6}".utf8)
    static let zip64EndRecord = Array("PK\u{6}\u{6}".utf8)
    static let zip64Locator = Array("PK\u{6}\u{7}".utf8)
  }

  /// The types of extra fields.
  private enum ExtraField {
    static let zip64 = 0x0001
    static let unicodePath = 0x7075
  }

  /// The entries with their local headers.
  private var entries: [UInt8] = []
  /// The central directory.
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

  /// The fields of a local header that differ from the central directory.
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
    let offset = entries.count
    let localName = local.name ?? nameBytes
    entries += Signature.localHeader
    entries += commonFields(
      flags: local.flags ?? flags, method: local.method, checksum: local.checksum ?? checksum,
      compressedSize: local.compressedSize ?? content.count, size: local.size ?? size, nameByteCount: localName.count)
    entries += word(local.extra.count, 2) + localName + local.extra + content

    let directoryExtra = extra + (hasZip64Offset ? zip64Field(offset) : [])
    let versionMadeByUnix = 0x0314
    let (commentByteCount, disk, internalAttributes) = (0, 0, 0)
    directory += Signature.directoryHeader + word(versionMadeByUnix, 2)
    directory += commonFields(
      flags: flags, method: 0, checksum: checksum, compressedSize: content.count, size: size,
      nameByteCount: nameBytes.count)
    directory += word(directoryExtra.count, 2) + word(commentByteCount, 2) + word(disk, 2)
    directory += word(internalAttributes, 2) + word(mode << 16, 4)
    directory += word(hasZip64Offset ? -1 : offset, 4) + nameBytes + directoryExtra
    count += 1
  }

  /// Returns the fields that both headers of an entry have, from the required version to the length of the name.
  private func commonFields(
    flags: Int, method: Int, checksum: Int, compressedSize: Int, size: Int, nameByteCount: Int
  ) -> [UInt8] {
    let (requiredVersion, time, date) = (20, 0, 0x21)
    return word(requiredVersion, 2) + word(flags, 2) + word(method, 2) + word(time, 2) + word(date, 2)
      + word(checksum, 4) + word(compressedSize, 4) + word(size, 4) + word(nameByteCount, 2)
  }

  /// Lists all entries again, so that several share a local header.
  mutating func listAgain(times: Int) {
    let (originalDirectory, originalCount) = (directory, count)
    for _ in 0..<times {
      directory += originalDirectory
      count += originalCount
    }
  }

  /// The fields of the end record: the number of entries, and the size and the offset of the directory.
  var endRecord: (count: Int, size: Int, offset: Int) { (count, directory.count, entries.count) }

  func finished() -> [UInt8] { entries + directory + serialized(endRecord) }

  private func serialized(_ endRecord: (count: Int, size: Int, offset: Int)) -> [UInt8] {
    let (disks, commentByteCount) = (0, 0)
    return Signature.endRecord + word(disks, 4) + word(endRecord.count, 2) + word(endRecord.count, 2)
      + word(endRecord.size, 4) + word(endRecord.offset, 4) + word(commentByteCount, 2)
  }

  /// Returns the zip with 64-bit end records.
  ///
  /// - Parameters:
  ///   - offset: The position of the directory in the 64-bit record, if it differs from the actual one.
  ///   - endRecord: The fields of the last record. -1 means that only the 64-bit record has the value.
  ///   - insertion: Bytes between the 64-bit record and its locator.
  func finishedAsZip64(
    directoryAt offset: Int? = nil, endRecord: (count: Int, size: Int, offset: Int) = (-1, -1, -1),
    beforeLocator insertion: [UInt8] = []
  ) -> [UInt8] {
    let zip64RecordOffset = entries.count + directory.count
    let (byteCountOfRest, version, disks, diskCount) = (44, 45, 0, 1)
    let zip64Record =
      Signature.zip64EndRecord + word(byteCountOfRest, 8) + word(version, 2) + word(version, 2) + word(disks, 8)
      + word(count, 8) + word(count, 8) + word(directory.count, 8) + word(offset ?? entries.count, 8)
    let locator = Signature.zip64Locator + word(disks, 4) + word(zip64RecordOffset, 8) + word(diskCount, 4)
    return entries + directory + zip64Record + insertion + locator + serialized(endRecord)
  }

  /// Returns Info-ZIP's Unicode path field: a UTF-8 name that replaces the header's name, and a checksum of the header's
  /// name.
  func unicodePath(_ name: String, replacing headerName: String) -> [UInt8] {
    let version: [UInt8] = [1]
    let content = version + word(Int(crc32(Array(headerName.utf8))), 4) + Array(name.utf8)
    return word(ExtraField.unicodePath, 2) + word(content.count, 2) + content
  }

  /// Returns the Zip64 extra field, with 64-bit numbers.
  func zip64Field(_ numbers: Int...) -> [UInt8] {
    word(ExtraField.zip64, 2) + word(8 * numbers.count, 2) + numbers.flatMap { word($0, 8) }
  }

  /// Returns the zip with another zip's directory between its own directory and the end record.
  func finished(before otherZip: ZipFixture) -> [UInt8] {
    entries + directory + otherZip.directory + serialized(endRecord)
  }

  /// Returns the entries without the central directory.
  func withoutDirectory() -> [UInt8] { entries }

  /// Returns a number in little-endian order.
  private func word(_ value: Int, _ byteCount: Int) -> [UInt8] {
    [UInt8](littleEndian: value, count: byteCount)
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
