/// Encodes and decodes base64 (RFC 4648, section 4). Secrets are encoded only into memory that is wiped.
@usableFromInline package enum Base64Digits {
  /// Returns the digits of bytes that are not secret.
  package static func text(of bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: digitCount(of: bytes.count)) { digits in
      bytes.withRawBytes { write($0, into: UnsafeMutableRawBufferPointer(digits)) }
      return digits.count
    }
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Decodes digits, which may have blanks and line ends between them.
  ///
  /// - Returns: The bytes, or `nil` if the text is not base64.
  package static func bytes(of text: some Sequence<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    return decode(text) { bytes.append($0) } ? bytes : nil
  }

  /// Decodes digits of a secret into memory that is wiped.
  ///
  /// - Returns: The bytes, or `nil` if the text is not base64.
  package static func sensitiveBytes(of text: some Sequence<UInt8>) -> SensitiveBytes? {
    var bytes = SensitiveBuffer()
    return decode(text) { bytes.append($0) } ? bytes.bytes() : nil
  }

  /// Decodes digits and calls a closure with each byte.
  ///
  /// - Returns: Whether the text is base64.
  private static func decode(_ text: some Sequence<UInt8>, _ append: (UInt8) -> Void) -> Bool {
    var (bits, digitCount, paddingCount) = (UInt32(0), 0, 0)
    for digit in text {
      if digit == 0x20 || (0x09...0x0D).contains(digit) { continue }
      digitCount += 1
      if digit == UInt8(ascii: "=") {
        paddingCount += 1
        continue
      }
      guard paddingCount == 0, let value = value(of: digit) else { return false }
      bits = bits << 6 | value
      guard digitCount.isMultiple(of: 4) else { continue }
      for shift in [UInt32(16), 8, 0] { append(UInt8(bits >> shift & 0xFF)) }
    }
    guard digitCount.isMultiple(of: 4), paddingCount <= 2 else { return false }
    // In the last group, two digits encode one byte, and three encode two.
    switch paddingCount {
    case 1: for shift in [UInt32(10), 2] { append(UInt8(bits >> shift & 0xFF)) }
    case 2: append(UInt8(bits >> 4 & 0xFF))
    default: break
    }
    return true
  }

  /// Returns the position of a digit in the alphabet, or `nil` if the byte is not a digit.
  @inlinable
  package static func value(of digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }

  /// Calls `body` with each digit in order, the padding included.
  package static func forEach(of bytes: some RandomAccessCollection<UInt8>, _ body: (UInt8) -> Void) {
    var remaining = bytes[...]
    while !remaining.isEmpty {
      let group = remaining.prefix(3)
      remaining = remaining.dropFirst(3)
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
      for position in 0..<4 {
        body(position <= group.count ? alphabet[Int(bits >> (18 - 6 * UInt32(position)) & 63)] : UInt8(ascii: "="))
      }
    }
  }

  /// Appends the digits of bytes that may be secret.
  package static func append(_ bytes: UnsafeRawBufferPointer, to buffer: inout SensitiveBuffer) {
    buffer.append(count: digitCount(of: bytes.count)) { write(bytes, into: $0) }
  }

  /// Returns the number of digits for a number of bytes, padding included.
  private static func digitCount(of byteCount: Int) -> Int { (byteCount + 2) / 3 * 4 }

  private static func write(_ bytes: UnsafeRawBufferPointer, into digits: UnsafeMutableRawBufferPointer) {
    alphabet.withUnsafeBufferPointer { alphabet in
      var position = 0
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let count = min(3, bytes.count - start)
        var bits = UInt32(bytes[start]) << 16
        if count > 1 { bits |= UInt32(bytes[start + 1]) << 8 }
        if count > 2 { bits |= UInt32(bytes[start + 2]) }
        for digit in 0..<4 {
          digits[position] = digit <= count ? alphabet[Int(bits >> (18 - 6 * UInt32(digit)) & 63)] : UInt8(ascii: "=")
          position += 1
        }
      }
    }
  }
}
