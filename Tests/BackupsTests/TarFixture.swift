/// A writer of tar files with faults that no library would write.
struct TarFixture {
  private(set) var bytes: [UInt8] = []

  /// The offsets of the fields in the header of an entry.
  ///
  /// Source: POSIX, `pax`, "ustar Interchange Format".
  private enum Offset {
    static let name = 0
    static let mode = 100
    static let owner = 108
    static let group = 116
    static let size = 124
    static let time = 136
    static let checksum = 148
    static let type = 156
    static let link = 157
    static let magic = 257
  }

  private static let blockByteCount = 512

  /// Adds an entry. The size in the header can differ from the actual one.
  mutating func add(
    _ name: String, _ content: [UInt8] = [], type: Character = "0", link: String = "", size: Int? = nil,
    mode: Int = 0o600
  ) {
    add(nameBytes: Array(name.utf8), content, type: type, link: link, size: size, mode: mode)
  }

  mutating func add(
    nameBytes: [UInt8], _ content: [UInt8] = [], type: Character = "0", link: String = "", size: Int? = nil,
    mode: Int = 0o600
  ) {
    var header = [UInt8](repeating: 0, count: Self.blockByteCount)
    put(nameBytes, at: Offset.name, in: &header)
    put(octal(mode, digits: 7), at: Offset.mode, in: &header)
    put(octal(0, digits: 7), at: Offset.owner, in: &header)
    put(octal(0, digits: 7), at: Offset.group, in: &header)
    put(octal(size ?? content.count, digits: 11), at: Offset.size, in: &header)
    put(octal(0, digits: 11), at: Offset.time, in: &header)
    put(Array(String(type).utf8), at: Offset.type, in: &header)
    put(Array(link.utf8), at: Offset.link, in: &header)
    put(Array("ustar\u{0}00".utf8), at: Offset.magic, in: &header)
    // The checksum is the sum of the header's bytes with spaces in place of the checksum.
    put(Array("        ".utf8), at: Offset.checksum, in: &header)
    let checksum = header.reduce(0) { $0 + Int($1) }
    put(octal(checksum, digits: 6) + Array("\0 ".utf8), at: Offset.checksum, in: &header)
    bytes += header + content
    let lastBlockByteCount = content.count % Self.blockByteCount
    if lastBlockByteCount > 0 { bytes += [UInt8](repeating: 0, count: Self.blockByteCount - lastBlockByteCount) }
  }

  /// Adds an extended header for the next entry.
  ///
  /// A record is a line such as `12 path=a b` with its newline. The number is the size of the whole record, including
  /// the number itself.
  mutating func addExtended(_ records: [(key: String, value: [UInt8])]) {
    var content: [UInt8] = []
    for (key, value) in records {
      let textAfterSize = Array(" \(key)=".utf8) + value + Array("\n".utf8)
      var size = textAfterSize.count + 1
      while String(size).utf8.count + textAfterSize.count != size { size += 1 }
      content += Array(String(size).utf8) + textAfterSize
    }
    add("PaxHeader/x", content, type: "x")
  }

  /// Returns the tar with its end marker, two empty blocks.
  func finished() -> [UInt8] { bytes + [UInt8](repeating: 0, count: 2 * Self.blockByteCount) }

  private func octal(_ number: Int, digits: Int) -> [UInt8] {
    let text = String(number, radix: 8)
    let zeros = String(repeating: "0", count: max(0, digits - text.count))
    return Array((zeros + text).utf8)
  }

  /// Writes a value to a header. Bytes after the end of the header are ignored.
  private func put(_ value: [UInt8], at offset: Int, in header: inout [UInt8]) {
    for (index, byte) in value.enumerated() where offset + index < header.count { header[offset + index] = byte }
  }
}
