import Basics
internal import KeychainFormats

/// The blocks of a text in PEM (RFC 7468, and the older form with headers of RFC 1421).
///
/// What a block holds may be a private key: it is decoded into memory that is wiped, and never becomes a `String`.
struct PEM {
  struct Block {
    /// "CERTIFICATE", "RSA PRIVATE KEY".
    let label: String
    /// Whether a header says that the contents are encrypted.
    let isEncrypted: Bool
    let contents: SensitiveBytes
  }

  /// In order.
  let blocks: [Block]

  private static let begin = Array("-----BEGIN ".utf8)
  private static let end = Array("-----END ".utf8)
  private static let dashes = Array("-----".utf8)
  /// More in one file are refused. A chain has four or so.
  static let maximumBlockCount = 64

  /// - Returns: `nil` where there is no line that begins a block.
  init?(_ text: UnsafeRawBufferPointer) throws(MaterialError) {
    var blocks: [Block] = []
    var lines = Lines(rest: text)
    while let line = lines.next() {
      guard let label = Self.label(of: line, after: Self.begin) else { continue }
      guard blocks.count < Self.maximumBlockCount else {
        throw MaterialError(.overLimit, "it has more than \(Self.maximumBlockCount) PEM blocks")
      }
      blocks.append(try Self.block(label, &lines))
    }
    guard !blocks.isEmpty else { return nil }
    self.blocks = blocks
  }

  private static func block(_ label: String, _ lines: inout Lines) throws(MaterialError) -> Block {
    var isEncrypted = false
    var body: [UnsafeRawBufferPointer] = []
    while let line = lines.next() {
      if let closing = Self.label(of: line, after: end) {
        guard closing == label else { throw MaterialError(.malformed, "a PEM block ends with another label") }
        return Block(label: label, isEncrypted: isEncrypted, contents: try Base64.decode(body))
      }
      // A header has a colon, base64 never does.
      guard line.contains(UInt8(ascii: ":")) else {
        body.append(line)
        continue
      }
      if line.starts(with: "Proc-Type:".utf8), line.suffix(9).elementsEqual("ENCRYPTED".utf8) { isEncrypted = true }
    }
    throw MaterialError(.malformed, "a PEM block has no end")
  }

  /// Labels are upper-case letters, digits and blanks; anything else is no line of this format.
  private static func label(of line: UnsafeRawBufferPointer, after marker: [UInt8]) -> String? {
    guard line.starts(with: marker), line.count >= marker.count + dashes.count, line.suffix(5).elementsEqual(dashes)
    else { return nil }
    let text = line[marker.count..<(line.count - dashes.count)]
    guard !text.isEmpty, text.count <= 64, text.allSatisfy({ (0x20...0x5A).contains($0) }) else { return nil }
    return String(decoding: text, as: UTF8.self)
  }

  private struct Lines {
    var rest: UnsafeRawBufferPointer

    /// The next line without blanks around it and without its end, LF or CRLF.
    mutating func next() -> UnsafeRawBufferPointer? {
      guard !rest.isEmpty else { return nil }
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      var line = rest[..<end]
      rest = UnsafeRawBufferPointer(rebasing: rest[min(end + 1, rest.endIndex)...])
      while let last = line.last, Self.isBlank(last) { line.removeLast() }
      while let first = line.first, Self.isBlank(first) { line.removeFirst() }
      return UnsafeRawBufferPointer(rebasing: line)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
  }
}

/// Base64 (RFC 4648) into memory that is wiped. Padding is required, and bits beyond the last byte are zero.
private enum Base64 {
  static func decode(_ lines: [UnsafeRawBufferPointer]) throws(MaterialError) -> SensitiveBytes {
    let digitCount = lines.reduce(0) { $0 + $1.count }
    guard digitCount > 0, digitCount.isMultiple(of: 4) else { throw damaged }
    let padding = lines.reversed().lazy.flatMap { $0.reversed() }.prefix { $0 == UInt8(ascii: "=") }.reduce(0) {
      sum, _ in
      sum + 1
    }
    guard padding <= 2 else { throw damaged }
    return try SensitiveBytes(count: digitCount / 4 * 3 - padding) { (target) throws(MaterialError) in
      var (bits, bitCount, offset, read): (UInt32, Int, Int, Int) = (0, 0, 0, 0)
      for byte in lines.lazy.joined() where read < digitCount - padding {
        guard let digit = value(of: byte) else { throw damaged }
        read += 1
        bits = (bits << 6 | UInt32(digit)) & 0xFFFF
        bitCount += 6
        guard bitCount >= 8 else { continue }
        bitCount -= 8
        target[offset] = UInt8(truncatingIfNeeded: bits >> UInt32(bitCount))
        offset += 1
      }
      guard bits & ((1 << UInt32(bitCount)) - 1) == 0 else { throw damaged }
    }
  }

  private static var damaged: MaterialError { MaterialError(.malformed, "the base64 of a PEM block is damaged") }

  private static func value(of byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
