import KeyhaulKit

/// Percent encoding as RFC 3986 defines it.
enum Percent {
  /// Returns the next byte of an encoded text, and advances the index; `nil` at the end. An incomplete escape is not
  /// decoded.
  static func next(in bytes: Slice<UnsafeRawBufferPointer>, at index: inout Int) -> UInt8? {
    guard index < bytes.endIndex else { return nil }
    defer { index += 1 }
    guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.endIndex, let high = hexDigit(bytes[index + 1]),
      let low = hexDigit(bytes[index + 2])
    else { return bytes[index] }
    index += 2
    return high << 4 | low
  }

  /// Returns a decoded text. Do not use it for secrets, because a `String` cannot be erased from memory.
  static func decoded(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
    var decoded: [UInt8] = []
    var index = bytes.startIndex
    while let byte = next(in: bytes, at: &index) { decoded.append(byte) }
    return String(decoding: decoded, as: UTF8.self)
  }

  /// Returns a text in which every byte except letters, digits and "-._~" is encoded.
  static func encoded(_ text: String) -> String {
    var encoded = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      default: encoded += "%" + String(hexadecimal: [byte]).uppercased()
      }
    }
    return encoded
  }

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
  }
}
