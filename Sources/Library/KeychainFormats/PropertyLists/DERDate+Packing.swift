import Basics

/// The packed text of a date, with two characters in a byte, for items in memory.
extension DERDate {
  /// The characters, in the order of their half bytes. A text with an odd number of characters ends with the filler.
  private static let characters = Array("0123456789.Z+-".utf8)
  private static let filler: UInt8 = 0xF
  /// The maximum length of a text to pack: longer than any that a device writes, and short enough for the stack.
  private static let maximumPackedTextByteCount = 64

  private static func halfByte(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "."): 10
    case UInt8(ascii: "Z"): 11
    case UInt8(ascii: "+"): 12
    case UInt8(ascii: "-"): 13
    default: nil
    }
  }

  /// Returns the packed size of a date's text in bytes, or `nil` if the text is not a date, has characters that cannot
  /// be packed, or does not decode to exactly `date`, bit for bit.
  static func packedByteCount(of text: UnsafeRawBufferPointer, representing date: KeychainDate? = nil) -> Int? {
    guard text.count <= maximumPackedTextByteCount, text.allSatisfy({ halfByte(of: $0) != nil }),
      let decoded = try? seconds(text),
      date.map({ $0.secondsSinceReferenceDate.bitPattern == decoded.bitPattern }) ?? true
    else { return nil }
    return (text.count + 1) / 2
  }

  /// Packs a text. `target` must have exactly `packedByteCount(of:representing:)` bytes.
  static func pack(_ text: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) {
    for index in target.indices {
      let high = halfByte(of: text[2 * index])
      let low = 2 * index + 1 < text.count ? halfByte(of: text[2 * index + 1]) : nil
      target[index] = (high ?? filler) << 4 | (low ?? filler)
    }
  }

  /// Returns the date of a packed text, or `nil` if the bytes are not one.
  static func date(unpacking bytes: UnsafeRawBufferPointer) -> KeychainDate? {
    withUnsafeTemporaryAllocation(byteCount: 2 * bytes.count, alignment: 1) { text in
      var count = 0
      for position in 0..<(2 * bytes.count) {
        let byte = bytes[position / 2]
        let halfByte = Int(position.isMultiple(of: 2) ? byte >> 4 : byte & 0xF)
        guard halfByte < characters.count else { break }
        text[count] = characters[halfByte]
        count += 1
      }
      return try? decode(UnsafeRawBufferPointer(rebasing: text[..<count]))
    }
  }
}
