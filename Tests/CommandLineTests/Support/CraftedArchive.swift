import TestSupport

/// A tar or zip file with any entries, even those that no ordinary program writes.
///
/// Sources: POSIX.1-2017 "pax", ustar interchange format; PKWARE APPNOTE.
struct CraftedArchive {
  private struct Entry {
    let name: String
    let kind: Character
    let target: String
    let bytes: [UInt8]
  }

  private var entries: [Entry] = []

  mutating func add(name: String, kind: Character = "0", target: String = "", _ bytes: [UInt8]) {
    entries.append(Entry(name: name, kind: kind, target: target, bytes: bytes))
  }

  var tar: [UInt8] {
    var bytes: [UInt8] = []
    for entry in entries {
      var header = [UInt8](repeating: 0, count: 512)
      func put(_ text: String, at offset: Int) {
        for (index, byte) in text.utf8.enumerated() { header[offset + index] = byte }
      }
      func octal(_ value: Int, _ digits: Int) -> String {
        let text = String(value, radix: 8)
        return String(repeating: "0", count: digits - text.count) + text
      }
      put(entry.name, at: 0)
      put("0000600\u{0}0000000\u{0}0000000\u{0}", at: 100)
      put("\(octal(entry.bytes.count, 11))\u{0}\(octal(1_700_000_000, 11))\u{0}", at: 124)
      put("        ", at: 148)
      put(String(entry.kind), at: 156)
      put(entry.target, at: 157)
      put("ustar\u{0}00", at: 257)
      let sum: Int = header.reduce(0) { $0 + Int($1) }
      put("\(octal(sum, 6))\u{0} ", at: 148)
      bytes += header
      bytes += entry.bytes
      bytes += [UInt8](repeating: 0, count: (512 - entry.bytes.count % 512) % 512)
    }
    return bytes + [UInt8](repeating: 0, count: 1024)
  }

  var zip: [UInt8] {
    func little(_ value: Int, _ count: Int) -> [UInt8] { [UInt8](littleEndian: value, count: count) }
    var bytes: [UInt8] = []
    var directory: [UInt8] = []
    for entry in entries {
      let name = Array(entry.name.utf8)
      let common =
        little(0, 2) + little(0, 2) + little(0, 2) + little(0x5A21, 2) + little(Int(Self.crc32(entry.bytes)), 4)
        + little(entry.bytes.count, 4) + little(entry.bytes.count, 4) + little(name.count, 2) + little(0, 2)
      let mode = entry.kind == "2" ? 0o120777 : 0o100600
      directory +=
        little(0x0201_4B50, 4) + little(0x0314, 2) + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2)
        + little(mode << 16, 4) + little(bytes.count, 4) + name
      bytes += little(0x0403_4B50, 4) + little(20, 2) + common + name + entry.bytes
    }
    let end =
      little(0x0605_4B50, 4) + little(0, 4) + little(entries.count, 2) + little(entries.count, 2)
      + little(directory.count, 4) + little(bytes.count, 4) + little(0, 2)
    return bytes + directory + end
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
