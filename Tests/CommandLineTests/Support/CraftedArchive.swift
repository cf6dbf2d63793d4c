import TestSupport

/// A tar or zip file with any entries, even those that no ordinary program writes.
///
/// Sources: POSIX.1-2017 "pax", ustar interchange format; PKWARE APPNOTE.
struct CraftedArchive {
  private struct Entry {
    let name: String
    /// The type flag of tar: "0" for a file, "2" for a symbolic link.
    let kind: Character
    /// The target of a link.
    let target: String
    let bytes: [UInt8]
  }

  private var entries: [Entry] = []

  mutating func add(name: String, kind: Character = "0", target: String = "", _ bytes: [UInt8]) {
    entries.append(Entry(name: name, kind: kind, target: target, bytes: bytes))
  }

  /// The size of a tar file's blocks.
  private static let blockSize = 512

  /// The entries in ustar format: for each a header and its bytes in full blocks, then two empty blocks.
  var tar: [UInt8] {
    var bytes: [UInt8] = []
    for entry in entries {
      let paddingSize = (Self.blockSize - entry.bytes.count % Self.blockSize) % Self.blockSize
      bytes += Self.tarHeader(of: entry) + entry.bytes + [UInt8](repeating: 0, count: paddingSize)
    }
    return bytes + [UInt8](repeating: 0, count: 2 * Self.blockSize)
  }

  /// Returns a header with these fields at these offsets: name (0), mode (100), user (108), group (116), size (124),
  /// modification time (136), checksum (148), kind (156), link target (157), and format (257).
  private static func tarHeader(of entry: Entry) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: blockSize)
    func put(_ text: String, at offset: Int) {
      for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
    }
    func octal(_ value: Int, digits: Int) -> String {
      let text = String(value, radix: 8)
      return String(repeating: "0", count: digits - text.count) + text + "\u{0}"
    }
    put(entry.name, at: 0)
    put(octal(0o600, digits: 7) + octal(0, digits: 7) + octal(0, digits: 7), at: 100)
    put(octal(entry.bytes.count, digits: 11) + octal(1_700_000_000, digits: 11), at: 124)
    put(String(entry.kind), at: 156)
    put(entry.target, at: 157)
    put("ustar\u{0}00", at: 257)
    // The checksum is computed as if its own eight bytes were spaces.
    put("        ", at: 148)
    let checksum: Int = header.reduce(0) { $0 + Int($1) }
    put(octal(checksum, digits: 6) + " ", at: 148)
    return header
  }

  /// The entries in zip format: for each a local header and its bytes, then a directory of all entries and an end record.
  var zip: [UInt8] {
    var contents: [UInt8] = []
    var directory: [UInt8] = []
    for entry in entries {
      directory += Self.zipDirectoryHeader(of: entry, localHeaderOffset: contents.count)
      contents += Self.zipLocalHeader(of: entry) + entry.bytes
    }
    let (signature, diskNumbers, commentLength) = (0x0605_4B50, 0, 0)
    let endRecord = Self.littleEndian(
      (signature, 4), (diskNumbers, 4), (entries.count, 2), (entries.count, 2), (directory.count, 4),
      (contents.count, 4), (commentLength, 2))
    return contents + directory + endRecord
  }

  private static func zipLocalHeader(of entry: Entry) -> [UInt8] {
    let (signature, neededVersion) = (0x0403_4B50, 20)
    return littleEndian((signature, 4), (neededVersion, 2)) + sharedZipFields(of: entry) + Array(entry.name.utf8)
  }

  private static func zipDirectoryHeader(of entry: Entry, localHeaderOffset: Int) -> [UInt8] {
    let (signature, writerOnUnix, neededVersion) = (0x0201_4B50, 0x0314, 20)
    let (commentLength, diskNumber, internalAttributes) = (0, 0, 0)
    let mode = entry.kind == "2" ? 0o120777 : 0o100600
    return littleEndian((signature, 4), (writerOnUnix, 2), (neededVersion, 2)) + sharedZipFields(of: entry)
      + littleEndian(
        (commentLength, 2), (diskNumber, 2), (internalAttributes, 2), (mode << 16, 4), (localHeaderOffset, 4))
      + Array(entry.name.utf8)
  }

  /// Returns the fields that both headers of an entry have.
  private static func sharedZipFields(of entry: Entry) -> [UInt8] {
    let (flags, uncompressed, time, firstOfJanuary2025) = (0, 0, 0, 0x5A21)
    let (size, nameLength, extraFieldLength) = (entry.bytes.count, entry.name.utf8.count, 0)
    return littleEndian(
      (flags, 2), (uncompressed, 2), (time, 2), (firstOfJanuary2025, 2), (Int(crc32(entry.bytes)), 4), (size, 4),
      (size, 4), (nameLength, 2), (extraFieldLength, 2))
  }

  private static func littleEndian(_ fields: (value: Int, byteCount: Int)...) -> [UInt8] {
    fields.flatMap { [UInt8](littleEndian: $0.value, count: $0.byteCount) }
  }

  private static func crc32(_ bytes: [UInt8]) -> UInt32 {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 {
        let isOdd = sum & 1 == 1
        sum >>= 1
        if isOdd { sum ^= 0xEDB8_8320 }
      }
    }
    return ~sum
  }
}
