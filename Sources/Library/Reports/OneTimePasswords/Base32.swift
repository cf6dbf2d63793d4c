import KeyhaulKit

/// Base32 as RFC 4648 defines it.
enum Base32 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// Returns bytes as Base32 digits, without padding.
  static func digits(of bytes: UnsafeRawBufferPointer) -> SensitiveBytes {
    var digits = SensitiveBuffer()
    var bits: UInt32 = 0
    var unusedBitCount = 0
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      unusedBitCount += 8
      while unusedBitCount >= 5 {
        unusedBitCount -= 5
        digits.append(alphabet[Int(bits >> UInt32(unusedBitCount) & 31)])
      }
      bits &= 31
    }
    if unusedBitCount > 0 { digits.append(alphabet[Int(bits << UInt32(5 - unusedBitCount) & 31)]) }
    return digits.bytes()
  }

  /// Returns uppercase Base32 digits from a typed text, without spaces, hyphens and padding. Percent encoding is decoded.
  ///
  /// - Returns: `nil` if the text contains any other character.
  static func digits(in bytes: Slice<UnsafeRawBufferPointer>) -> SensitiveBytes? {
    var digits = SensitiveBuffer()
    var isPadded = false
    var index = bytes.startIndex
    while let byte = Percent.next(in: bytes, at: &index) {
      switch byte {
      // In a query, a plus sign may stand for a space.
      case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "+"): continue
      case UInt8(ascii: "="): isPadded = true
      case _ where isPadded: return nil
      case UInt8(ascii: "a")...UInt8(ascii: "z"): digits.append(byte - 0x20)
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "2")...UInt8(ascii: "7"): digits.append(byte)
      default: return nil
      }
    }
    return digits.bytes()
  }

  /// Returns the bytes of Base32 digits. Like authenticator apps, it ignores the bits after the last complete byte.
  static func bytes(of digits: SensitiveBytes) -> SensitiveBytes {
    var bytes = SensitiveBuffer()
    var bits: UInt32 = 0
    var unusedBitCount = 0
    digits.withBytes { digits in
      for digit in digits {
        guard let value = alphabet.firstIndex(of: digit) else { continue }
        bits = bits << 5 | UInt32(value)
        unusedBitCount += 5
        if unusedBitCount >= 8 {
          unusedBitCount -= 8
          bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(unusedBitCount)))
        }
        bits &= 0xFF
      }
    }
    return bytes.bytes()
  }
}
