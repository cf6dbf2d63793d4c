/// Formats and parses hyphenated UUIDs of keybags and items, without Foundation.
package enum UUIDText {
  /// The number of digits and hyphens.
  private static let textByteCount = 36

  /// Returns a UUID in upper case, as the keychain writes item identifiers; `nil` if there are not 16 bytes.
  package static func uppercase(_ bytes: [UInt8]) -> String? { bytes.count == 16 ? uppercase(SIMD16(bytes)) : nil }

  /// Returns a UUID in upper case.
  package static func uppercase(_ bytes: SIMD16<UInt8>) -> String { hyphenated(bytes, letters: UInt8(ascii: "A")) }

  /// Returns a UUID in lower case, as a backup writes `keybag-uuid`; `nil` if there are not 16 bytes.
  package static func lowercase(_ bytes: [UInt8]) -> String? {
    bytes.count == 16 ? hyphenated(SIMD16(bytes), letters: UInt8(ascii: "a")) : nil
  }

  /// Returns whether a text is a UUID in upper case.
  package static func isUppercase(_ text: UnsafeRawBufferPointer) -> Bool {
    guard text.count == textByteCount else { return false }
    for (position, sign) in text.enumerated() {
      // The groups have 8, 4, 4, 4 and 12 digits.
      let isHyphenPosition = position == 8 || position == 13 || position == 18 || position == 23
      guard isHyphenPosition ? sign == UInt8(ascii: "-") : value(of: sign) != nil else { return false }
    }
    return true
  }

  /// Decodes a UUID in upper case, and writes its 16 bytes to `target`.
  package static func write(uppercase text: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) {
    var position = 0
    for index in 0..<min(16, target.count) {
      if hasHyphen(before: index) { position += 1 }
      target[index] = (value(of: text[position]) ?? 0) << 4 | (value(of: text[position + 1]) ?? 0)
      position += 2
    }
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// Returns whether a hyphen precedes a byte in the text. The groups encode 4, 2, 2, 2 and 6 bytes.
  private static func hasHyphen(before byteIndex: Int) -> Bool {
    byteIndex == 4 || byteIndex == 6 || byteIndex == 8 || byteIndex == 10
  }

  /// Returns the hexadecimal digit for half a byte.
  ///
  /// - Parameter letters: The code of the letter for 10, which is `A` or `a`.
  private static func digit(_ half: UInt8, letters: UInt8) -> UInt8 {
    half < 10 ? UInt8(ascii: "0") + half : letters + (half - 10)
  }

  private static func hyphenated(_ bytes: SIMD16<UInt8>, letters: UInt8) -> String {
    String(unsafeUninitializedCapacity: textByteCount) { text in
      var end = 0
      func append(_ sign: UInt8) {
        text[end] = sign
        end += 1
      }
      for index in bytes.indices {
        if hasHyphen(before: index) { append(UInt8(ascii: "-")) }
        append(digit(bytes[index] >> 4, letters: letters))
        append(digit(bytes[index] & 0xF, letters: letters))
      }
      return end
    }
  }
}
