/// Scans the subset of XML that property lists consist of.
///
/// Source: W3C, "Extensible Markup Language (XML) 1.0".
struct XMLScanner {
  /// The start or end tag of an element; attributes are ignored.
  struct Tag {
    let name: String
    let isEnd: Bool
    /// Whether the tag both starts and ends the element, like `<true/>`.
    let isEmpty: Bool
  }

  private let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0

  private static let byteOrderMark = "\u{FEFF}"
  /// The maximum length of a name; property lists use at most seven letters.
  private static let maximumNameLength = 16
  /// The maximum length of a character reference: `&#x10FFFF;` with some leading zeros.
  private static let maximumReferenceLength = 16

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { offset == bytes.count }

  /// Returns the error for malformed text, or that the text is truncated if the scanner is at its end.
  func malformed(_ reason: String) -> FormatError {
    isAtEnd
      ? FormatError(.xmlPlist, .truncated, "it ends inside an element", offset: offset)
      : FormatError(.xmlPlist, .malformed, reason, offset: offset)
  }

  /// Returns the error for forbidden text, or that the text is truncated if the scanner is at its end.
  func forbidden(_ reason: String) -> FormatError {
    isAtEnd
      ? FormatError(.xmlPlist, .truncated, "it ends inside an element", offset: offset)
      : FormatError(.xmlPlist, .forbidden, reason, offset: offset)
  }

  // MARK: Before and between the elements

  /// Skips a byte order mark, the declaration, and a document type without declarations.
  mutating func skipProlog() throws(FormatError) {
    _ = skipIfPresent(Self.byteOrderMark)
    try skipMiscellany()
    guard skipIfPresent("<!DOCTYPE") else { return }
    while let byte = next() {
      switch byte {
      case UInt8(ascii: ">"): return try skipMiscellany()
      case UInt8(ascii: "["): throw forbidden("a document type with declarations of its own")
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        skipQuotedText(until: byte)
      default: continue
      }
    }
    throw malformed("the document type does not end")
  }

  /// Skips white space, comments and processing instructions.
  mutating func skipMiscellany() throws(FormatError) {
    while true {
      skipSpace()
      if skipIfPresent("<!--") {
        try skip(to: "-->")
      } else if skipIfPresent("<?") {
        try skip(to: "?>")
      } else {
        return
      }
    }
  }

  /// Skips everything up to and including the next `terminator`.
  private mutating func skip(to terminator: String) throws(FormatError) {
    while !isAtEnd {
      if skipIfPresent(terminator) { return }
      offset += 1
    }
    throw malformed("it does not end")
  }

  // MARK: Elements

  /// Reads a tag, or returns `nil` at the end of the bytes.
  mutating func tag() throws(FormatError) -> Tag? {
    guard !isAtEnd else { return nil }
    guard skipIfPresent("<") else { throw malformed("text where an element is expected") }
    let isEnd = skipIfPresent("/")
    let start = offset
    while let byte = peek(), Self.isNameCharacter(byte) { offset += 1 }
    guard offset > start, offset - start <= Self.maximumNameLength else {
      throw malformed("an element without a known name")
    }
    let name = String(decoding: bytes[start..<offset], as: UTF8.self)
    while let byte = next() {
      switch byte {
      case UInt8(ascii: ">"): return Tag(name: name, isEnd: isEnd, isEmpty: false)
      case UInt8(ascii: "/"):
        guard !isEnd, skipIfPresent(">") else { throw malformed("a tag that is not closed") }
        return Tag(name: name, isEnd: false, isEmpty: true)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        skipQuotedText(until: byte)
      case UInt8(ascii: "<"), UInt8(ascii: "&"): throw malformed("a tag that is not closed")
      default: continue
      }
    }
    throw malformed("a tag that is not closed")
  }

  /// Reads the text up to the next tag, with references resolved and comments removed.
  package mutating func text() throws(FormatError) -> String {
    var text: [UInt8] = []
    let start = offset
    while let byte = peek() {
      switch byte {
      case UInt8(ascii: "<"):
        if skipIfPresent("<![CDATA[") {
          let terminator = "]]>"
          let contentStart = offset
          try skip(to: terminator)
          text += bytes[contentStart..<(offset - terminator.utf8.count)]
        } else if skipIfPresent("<!--") {
          try skip(to: "-->")
        } else {
          guard let string = String(validating: text, as: UTF8.self) else {
            throw FormatError(.xmlPlist, .malformed, "text that is not UTF-8", offset: start)
          }
          return string
        }
      case UInt8(ascii: "&"): text += Array(String(try reference()).utf8)
      case UInt8(ascii: "\r"):
        // XML treats every line end as a line feed.
        offset += 1
        if peek() != UInt8(ascii: "\n") { text.append(UInt8(ascii: "\n")) }
      default:
        text.append(byte)
        offset += 1
      }
    }
    throw malformed("text that does not end")
  }

  /// Reads a reference such as `&amp;` or `&#x41;`.
  private mutating func reference() throws(FormatError) -> Unicode.Scalar {
    let start = offset + 1
    guard let end = bytes[start...].prefix(Self.maximumReferenceLength).firstIndex(of: UInt8(ascii: ";")) else {
      throw malformed("an entity that does not end")
    }
    let name = String(decoding: bytes[start..<end], as: UTF8.self)
    let isNumber = name.hasPrefix("#")
    let scalar = isNumber ? Self.scalar(withNumber: name.dropFirst()) : Self.predefinedEntities[name]
    guard let scalar, scalar != "\0" else {
      throw isNumber
        ? malformed("a character that does not exist") : forbidden("an entity that XML does not define")
    }
    offset = end + 1
    return scalar
  }

  private static let predefinedEntities: [String: Unicode.Scalar] = [
    "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'",
  ]

  /// Returns the character with a decimal number, or with a hexadecimal number after an `x`; `nil` if there is none.
  private static func scalar(withNumber text: Substring) -> Unicode.Scalar? {
    let isHexadecimal = text.hasPrefix("x")
    let digits = text.dropFirst(isHexadecimal ? 1 : 0)
    // `UInt32.init` would accept a plus sign.
    guard digits.first != "+" else { return nil }
    return UInt32(digits, radix: isHexadecimal ? 16 : 10).flatMap(Unicode.Scalar.init)
  }

  // MARK: Bytes

  private func peek() -> UInt8? { isAtEnd ? nil : bytes[offset] }

  private mutating func next() -> UInt8? {
    guard let byte = peek() else { return nil }
    offset += 1
    return byte
  }

  /// Skips a text if the remaining bytes start with it.
  ///
  /// - Returns: Whether the text was skipped.
  private mutating func skipIfPresent(_ text: String) -> Bool {
    guard bytes[offset...].starts(with: text.utf8) else { return false }
    offset += text.utf8.count
    return true
  }

  private mutating func skipSpace() {
    while let byte = peek(), Self.isSpace(byte) { offset += 1 }
  }

  /// Skips the rest of a quoted text and the quotation mark at its end.
  private mutating func skipQuotedText(until quotationMark: UInt8) {
    while let byte = next(), byte != quotationMark {}
  }

  /// Returns whether a byte is white space: a tab, a line feed, a carriage return or a space.
  static func isSpace(_ byte: UInt8) -> Bool { [0x09, 0x0A, 0x0D, 0x20].contains(byte) }

  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }
}
