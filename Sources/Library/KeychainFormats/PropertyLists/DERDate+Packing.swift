import Basics

/// The text of a date with two of its signs in a byte, for items that are held.
extension DERDate {
  /// Of each half byte; the last one fills up.
  private static let signs = Array("0123456789.Z+-".utf8)
  private static let filler: UInt8 = 0xF
  /// As short as every text that a device writes, and shorter than any that needs memory of its own while it is read.
  private static let maximumPackedTextByteCount = 64

  private static func place(of sign: UInt8) -> UInt8? {
    switch sign {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): sign - UInt8(ascii: "0")
    case UInt8(ascii: "."): 10
    case UInt8(ascii: "Z"): 11
    case UInt8(ascii: "+"): 12
    case UInt8(ascii: "-"): 13
    default: nil
    }
  }

  /// How many bytes the text of a date takes; `nil` where it is none, has other signs, or does not say `date` to the bit.
  static func packedByteCount(of text: UnsafeRawBufferPointer, saying date: KeychainDate? = nil) -> Int? {
    guard text.count <= maximumPackedTextByteCount, text.allSatisfy({ place(of: $0) != nil }),
      let said = try? seconds(text), date.map({ $0.secondsSinceReferenceDate.bitPattern == said.bitPattern }) ?? true
    else { return nil }
    return (text.count + 1) / 2
  }

  /// Fills the whole of `target`, which has as many bytes as `packedByteCount` says.
  static func pack(_ text: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) {
    for index in target.indices {
      let second = 2 * index + 1 < text.count ? place(of: text[2 * index + 1]) : nil
      target[index] = (place(of: text[2 * index]) ?? filler) << 4 | (second ?? filler)
    }
  }

  /// The date that a packed text says; `nil` for other bytes.
  static func date(unpacking bytes: UnsafeRawBufferPointer) -> KeychainDate? {
    withUnsafeTemporaryAllocation(byteCount: 2 * bytes.count, alignment: 1) { text in
      var count = 0
      for place in 0..<(2 * bytes.count) {
        let both = bytes[place / 2]
        let half = Int(place.isMultiple(of: 2) ? both >> 4 : both & 0xF)
        guard half < signs.count else { break }
        text[count] = signs[half]
        count += 1
      }
      return try? decode(UnsafeRawBufferPointer(rebasing: text[..<count]))
    }
  }
}
