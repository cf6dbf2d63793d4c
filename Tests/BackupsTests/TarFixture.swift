/// A writer of tar files with faults that no library would write.
struct TarFixture {
  private(set) var bytes: [UInt8] = []

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
    var header = [UInt8](repeating: 0, count: 512)
    put(nameBytes, at: 0, in: &header)
    put(octal(mode, digits: 7), at: 100, in: &header)
    put(octal(0, digits: 7), at: 108, in: &header)
    put(octal(0, digits: 7), at: 116, in: &header)
    put(octal(size ?? content.count, digits: 11), at: 124, in: &header)
    put(octal(0, digits: 11), at: 136, in: &header)
    put(Array("        ".utf8), at: 148, in: &header)
    put(Array(String(type).utf8), at: 156, in: &header)
    put(Array(link.utf8), at: 157, in: &header)
    put(Array("ustar\u{0}00".utf8), at: 257, in: &header)
    let sum = header.reduce(0) { $0 + Int($1) }
    put(octal(sum, digits: 6) + [0, 32], at: 148, in: &header)
    bytes += header + content
    bytes += [UInt8](repeating: 0, count: (512 - content.count % 512) % 512)
  }

  /// Adds an extended header for the next entry, with `key=value` records.
  mutating func addExtended(_ records: [(String, [UInt8])]) {
    var content: [UInt8] = []
    for (key, value) in records {
      let tail = Array(" \(key)=".utf8) + value + [10]
      var count = tail.count + 1
      while String(count).utf8.count + tail.count != count { count += 1 }
      content += Array(String(count).utf8) + tail
    }
    add("PaxHeader/x", content, type: "x")
  }

  /// Returns the archive with its end marker.
  func finished() -> [UInt8] { bytes + [UInt8](repeating: 0, count: 1024) }

  private func octal(_ number: Int, digits: Int) -> [UInt8] {
    let text = String(number, radix: 8)
    return Array((String(repeating: "0", count: max(0, digits - text.count)) + text).utf8)
  }

  private func put(_ value: [UInt8], at offset: Int, in header: inout [UInt8]) {
    for (index, byte) in value.enumerated() where offset + index < header.count { header[offset + index] = byte }
  }
}
