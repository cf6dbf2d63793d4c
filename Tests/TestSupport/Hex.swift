/// An error for a text that does not consist of whole bytes in hexadecimal.
package struct NotHexadecimal: Error {
  package let text: String
}

extension [UInt8] {
  /// Creates the bytes of hexadecimal text; blanks and line ends are skipped.
  package init(hex text: String) throws {
    let digits = text.filter { !$0.isWhitespace }.map(\.hexDigitValue)
    guard digits.count.isMultiple(of: 2) else { throw NotHexadecimal(text: text) }
    self = try stride(from: 0, to: digits.count, by: 2).map { index in
      guard let high = digits[index], let low = digits[index + 1] else { throw NotHexadecimal(text: text) }
      return UInt8(high << 4 | low)
    }
  }

  /// The bytes as lower-case hexadecimal text without separators.
  package var hex: String {
    let digits = [Character]("0123456789abcdef")
    return reduce(into: "") { text, byte in
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 0xF)])
    }
  }
}
