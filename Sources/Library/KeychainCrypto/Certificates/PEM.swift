import Basics

/// The blocks of a PEM text (RFC 7468, and the older format with headers of RFC 1421).
///
/// A block may contain a private key, so it is decoded only into memory that is wiped, never into a `String`.
struct PEM {
  struct Block {
    /// The label, such as "CERTIFICATE" or "RSA PRIVATE KEY".
    let label: String
    /// Whether a header marks the contents as encrypted.
    let isEncrypted: Bool
    let contents: SensitiveBytes
  }

  /// The blocks in order.
  let blocks: [Block]

  private static let begin = Array("-----BEGIN ".utf8)
  private static let end = Array("-----END ".utf8)
  private static let dashes = Array("-----".utf8)
  /// The maximum number of blocks in a file; a certificate chain has about four.
  static let maximumBlockCount = 64
  private static let maximumLabelByteCount = 64

  /// Parses the PEM blocks of a text.
  ///
  /// - Returns: `nil` if the text contains no block.
  init?(_ text: UnsafeRawBufferPointer) throws(CertificateError) {
    var blocks: [Block] = []
    var lines = Lines(remaining: text)
    while let line = lines.next() {
      guard let label = Self.label(of: line, after: Self.begin) else { continue }
      guard blocks.count < Self.maximumBlockCount else {
        throw CertificateError(.overLimit, "it has more than \(Self.maximumBlockCount) PEM blocks")
      }
      blocks.append(try Self.block(label, &lines))
    }
    guard !blocks.isEmpty else { return nil }
    self.blocks = blocks
  }

  /// Reads the lines of a block after its first one.
  private static func block(_ label: String, _ lines: inout Lines) throws(CertificateError) -> Block {
    var isEncrypted = false
    var body: [UnsafeRawBufferPointer] = []
    while let line = lines.next() {
      if let closing = Self.label(of: line, after: end) {
        guard closing == label else { throw CertificateError(.malformed, "a PEM block ends with a different label") }
        return Block(label: label, isEncrypted: isEncrypted, contents: try Base64.decode(body))
      }
      // A header contains a colon; base64 never does.
      let isHeader = line.contains(UInt8(ascii: ":"))
      guard isHeader else {
        body.append(line)
        continue
      }
      // The header of an encrypted block is "Proc-Type: 4,ENCRYPTED".
      let endsInEncrypted = line.suffix("ENCRYPTED".utf8.count).elementsEqual("ENCRYPTED".utf8)
      if line.starts(with: "Proc-Type:".utf8), endsInEncrypted { isEncrypted = true }
    }
    throw CertificateError(.malformed, "a PEM block has no end")
  }

  /// Returns the label in a line such as `-----BEGIN PRIVATE KEY-----`, or `nil` if the line is not of this kind.
  private static func label(of line: UnsafeRawBufferPointer, after marker: [UInt8]) -> String? {
    guard line.starts(with: marker), line.count >= marker.count + dashes.count,
      line.suffix(dashes.count).elementsEqual(dashes)
    else { return nil }
    let label = line[marker.count..<(line.count - dashes.count)]
    let labelCharacters = UInt8(ascii: " ")...UInt8(ascii: "Z")
    guard (1...maximumLabelByteCount).contains(label.count), label.allSatisfy({ labelCharacters.contains($0) }) else {
      return nil
    }
    return String(decoding: label, as: UTF8.self)
  }

  private struct Lines {
    var remaining: UnsafeRawBufferPointer

    /// Returns the next line without its end (LF or CRLF) and without outer blanks, or `nil` at the end.
    mutating func next() -> UnsafeRawBufferPointer? {
      guard !remaining.isEmpty else { return nil }
      let end = remaining.firstIndex(of: UInt8(ascii: "\n")) ?? remaining.endIndex
      var line = remaining[..<end]
      remaining = UnsafeRawBufferPointer(rebasing: remaining[min(end + 1, remaining.endIndex)...])
      while let last = line.last, Self.isBlank(last) { line.removeLast() }
      while let first = line.first, Self.isBlank(first) { line.removeFirst() }
      return UnsafeRawBufferPointer(rebasing: line)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
  }
}

extension PEM {
  /// The number of base64 digits in a line (RFC 7468, section 2).
  private static let lineLength = 64

  static func encode(_ label: String, _ contents: UnsafeRawBufferPointer) -> SensitiveBytes {
    var buffer = SensitiveBuffer()
    buffer.append("-----BEGIN \(label)-----\n")
    var column = 0
    Base64Digits.forEach(of: contents) { digit in
      if column == lineLength {
        buffer.append(UInt8(ascii: "\n"))
        column = 0
      }
      buffer.append(digit)
      column += 1
    }
    buffer.append("\n-----END \(label)-----\n")
    return buffer.bytes()
  }
}

/// Decodes base64 (RFC 4648) into memory that is wiped. Padding is required, and unused bits must be zero.
private enum Base64 {
  static func decode(_ lines: [UnsafeRawBufferPointer]) throws(CertificateError) -> SensitiveBytes {
    let digitCount = lines.reduce(0) { $0 + $1.count }
    guard digitCount > 0, digitCount.isMultiple(of: 4) else { throw damaged }
    let paddingCount = lines.lazy.joined().reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard paddingCount <= 2 else { throw damaged }
    return try SensitiveBytes(count: digitCount / 4 * 3 - paddingCount) { (target) throws(CertificateError) in
      // The bits of the digits read so far; only the last `pendingBitCount` of them are not in `target` yet.
      var bits: UInt32 = 0
      var pendingBitCount = 0
      var offset = 0
      var digitIndex = 0
      for byte in lines.lazy.joined() where digitIndex < digitCount - paddingCount {
        guard let digit = Base64Digits.value(of: byte) else { throw damaged }
        digitIndex += 1
        bits = (bits << 6 | digit) & 0xFFFF
        pendingBitCount += 6
        guard pendingBitCount >= 8 else { continue }
        pendingBitCount -= 8
        target[offset] = UInt8(truncatingIfNeeded: bits >> UInt32(pendingBitCount))
        offset += 1
      }
      let leftoverBits = bits & ((1 << UInt32(pendingBitCount)) - 1)
      guard leftoverBits == 0 else { throw damaged }
    }
  }

  private static var damaged: CertificateError { CertificateError(.malformed, "the base64 of a PEM block is damaged") }
}
