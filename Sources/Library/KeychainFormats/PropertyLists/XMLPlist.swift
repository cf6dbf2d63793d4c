import Basics

/// XML property lists, such as the `Info.plist` of a backup, which people open in an editor.
///
/// Source: Apple's property list DTD 1.0.
package enum XMLPlist {
  /// The deepest nesting of elements.
  package static let maximumDepth = 128

  /// Returns the document with its declaration, a tab for each level, and lines that end with LF.
  ///
  /// - Throws: `.unencodable` for a null, a set, a reference, a number that is not finite, a date outside the years 0
  ///   to 9999, a key that is not text, or text with characters that XML 1.0 cannot represent; `.overLimit` for too
  ///   many levels.
  package static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """
    try append(value, to: &text, level: 0)
    text += "</plist>\n"
    return Array(text.utf8)
  }

  private static func append(_ value: PropertyValue, to text: inout String, level: Int) throws(FormatError) {
    guard level < maximumDepth else { throw FormatError(.xmlPlist, .overLimit, "more than \(maximumDepth) levels") }
    let indent = String(repeating: "\t", count: level)
    switch value {
    case .boolean(let value): text += "\(indent)<\(value)/>\n"
    case .integer(let value): text += "\(indent)<integer>\(value)</integer>\n"
    case .unsignedInteger(let value): text += "\(indent)<integer>\(value)</integer>\n"
    case .real(let value):
      guard value.isFinite else { throw FormatError(.xmlPlist, .unencodable, "a number that is not finite") }
      text += "\(indent)<real>\(value)</real>\n"
    case .date(let date): text += "\(indent)<date>\(try iso8601(date))</date>\n"
    case .data(let bytes): text += "\(indent)<data>\(Base64Digits.text(of: bytes))</data>\n"
    case .string(let value): text += "\(indent)<string>\(try escaped(value))</string>\n"
    case .array(let values):
      guard !values.isEmpty else {
        text += "\(indent)<array/>\n"
        return
      }
      text += "\(indent)<array>\n"
      for value in values { try append(value, to: &text, level: level + 1) }
      text += "\(indent)</array>\n"
    case .dictionary(let dictionary):
      guard !dictionary.entries.isEmpty else {
        text += "\(indent)<dict/>\n"
        return
      }
      text += "\(indent)<dict>\n"
      for entry in dictionary.entries {
        guard let key = entry.key.stringValue else {
          throw FormatError(.xmlPlist, .unencodable, "a key that is not text")
        }
        text += "\(indent)\t<key>\(try escaped(key))</key>\n"
        try append(entry.value, to: &text, level: level + 1)
      }
      text += "\(indent)</dict>\n"
    case .null: throw FormatError(.xmlPlist, .unencodable, "a null")
    case .uid: throw FormatError(.xmlPlist, .unencodable, "a reference from a keyed archive")
    case .set: throw FormatError(.xmlPlist, .unencodable, "a set")
    }
  }

  /// Returns the text escaped for an XML element, or `nil` if XML 1.0 cannot represent one of its characters.
  package static func escapedText(_ value: String) -> String? { try? escaped(value) }

  private static func escaped(_ value: String) throws(FormatError) -> String {
    var text = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      // A reader would convert a bare carriage return to a line feed.
      case "\r": text += "&#13;"
      case "\t", "\n": text.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}":
        throw FormatError(.xmlPlist, .unencodable, "text with a character that XML cannot represent")
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// Returns a date in whole seconds, because the format has no fractions.
  private static func iso8601(_ date: KeychainDate) throws(FormatError) -> String {
    guard let compact = DERDate.encode(date.secondsSinceReferenceDate.rounded(.down)) else {
      throw FormatError(.xmlPlist, .unencodable, "a date outside the years 0 to 9999")
    }
    let separators: [Int: String] = [4: "-", 6: "-", 8: "T", 10: ":", 12: ":"]
    return compact.enumerated().reduce(into: "") { text, element in
      text += (separators[element.offset] ?? "") + String(decoding: [element.element], as: UTF8.self)
    }
  }
}

extension XMLPlist {
  /// The maximum number of bytes; every property list of a backup has at most a few megabytes.
  package static let maximumByteCount = 64 << 20
  /// The maximum number of elements, including the root and keys.
  package static let maximumElementCount = 1_000_000

  /// Returns whether bytes start like an XML property list: a tag, after an optional byte order mark and white space.
  package static func isXML(_ bytes: [UInt8]) -> Bool {
    let start = bytes.prefix(64).drop { [0xEF, 0xBB, 0xBF, 9, 10, 13, 32].contains($0) }
    return start.first == UInt8(ascii: "<")
  }

  /// Decodes a property list in UTF-8.
  ///
  /// No external resource is ever accessed. The document type is ignored, but rejected if it contains declarations.
  /// Only XML's five predefined entities and numeric character references are supported.
  /// - Throws: `.malformed` and `.truncated` with the offset, `.overLimit` for more levels, elements or bytes.
  package static func decode(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try decode(bytes, maximumElementCount: maximumElementCount)
  }

  /// Decodes a property list and preserves every entry of a key that occurs twice, like a binary list.
  package static func decodeKeepingRepeatedKeys(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try decode(bytes, maximumElementCount: maximumElementCount, keepsRepeatedKeys: true)
  }

  static func decode(
    _ bytes: [UInt8], maximumElementCount: Int, keepsRepeatedKeys: Bool = false
  ) throws(FormatError) -> PropertyValue {
    guard bytes.count <= maximumByteCount else {
      throw FormatError(.xmlPlist, .overLimit, "\(bytes.count) bytes; at most \(maximumByteCount) are accepted")
    }
    return try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in
      var reader = XMLPlistReader(
        XMLScanner(buffer), maximumElementCount: maximumElementCount, keepsRepeatedKeys: keepsRepeatedKeys)
      return try reader.document()
    }
  }
}

/// Converts the elements of a list to values.
private struct XMLPlistReader {
  private var scanner: XMLScanner
  private var elementCount = 0
  private let maximumElementCount: Int
  private let keepsRepeatedKeys: Bool

  init(_ scanner: XMLScanner, maximumElementCount: Int, keepsRepeatedKeys: Bool) {
    self.scanner = scanner
    self.maximumElementCount = maximumElementCount
    self.keepsRepeatedKeys = keepsRepeatedKeys
  }

  mutating func document() throws(FormatError) -> PropertyValue {
    try scanner.skipProlog()
    let root = try open()
    guard root.name == "plist", !root.isEmpty else { throw scanner.malformed("it is XML, but not a property list") }
    let value = try value(of: try open(), level: 0)
    try close("plist")
    try scanner.skipMiscellany()
    guard scanner.isAtEnd else {
      throw FormatError(.xmlPlist, .trailingBytes, "more follows the plist element", offset: scanner.offset)
    }
    return value
  }

  /// Reads the start tag of an element, after optional white space and comments.
  private mutating func open() throws(FormatError) -> XMLScanner.Tag {
    guard let tag = try nextTag(), !tag.isEnd else { throw scanner.malformed("an element is expected") }
    return tag
  }

  private mutating func nextTag() throws(FormatError) -> XMLScanner.Tag? {
    try scanner.skipMiscellany()
    let tag = try scanner.tag()
    if let tag, !tag.isEnd { elementCount += 1 }
    guard elementCount <= maximumElementCount else {
      throw FormatError(.xmlPlist, .overLimit, "more than \(maximumElementCount) elements", offset: scanner.offset)
    }
    return tag
  }

  private mutating func close(_ name: String) throws(FormatError) {
    guard let tag = try nextTag(), tag.isEnd, tag.name == name else {
      throw scanner.malformed("the \(name) element is not closed")
    }
  }

  private mutating func value(of tag: XMLScanner.Tag, level: Int) throws(FormatError) -> PropertyValue {
    guard level < XMLPlist.maximumDepth else {
      throw FormatError(.xmlPlist, .overLimit, "more than \(XMLPlist.maximumDepth) levels", offset: scanner.offset)
    }
    switch tag.name {
    case "dict": return .dictionary(tag.isEmpty ? PropertyDictionary() : try dictionary(level: level))
    case "array": return .array(tag.isEmpty ? [] : try array(level: level))
    case "true", "false":
      if !tag.isEmpty { try close(tag.name) }
      return .boolean(tag.name == "true")
    case "string": return .string(try text(of: tag))
    case "integer": return try integer(try text(of: tag))
    case "real": return try real(try text(of: tag))
    case "date": return try date(try text(of: tag))
    case "data": return .data(try data(try text(of: tag)))
    default: throw scanner.malformed("an element that property lists do not have")
    }
  }

  private mutating func dictionary(level: Int) throws(FormatError) -> PropertyDictionary {
    var entries: [PropertyDictionary.Entry] = []
    var seen: Set<String> = []
    while true {
      guard let tag = try nextTag() else { throw scanner.malformed("a dictionary that does not end") }
      if tag.isEnd {
        guard tag.name == "dict" else { throw scanner.malformed("the dict element is not closed") }
        return PropertyDictionary(entries)
      }
      guard tag.name == "key" else { throw scanner.malformed("a value without a key") }
      let key = try text(of: tag)
      let value = try value(of: try open(), level: level + 1)
      if seen.insert(key).inserted || keepsRepeatedKeys { entries.append(.init(key: .string(key), value: value)) }
    }
  }

  private mutating func array(level: Int) throws(FormatError) -> [PropertyValue] {
    var values: [PropertyValue] = []
    while true {
      guard let tag = try nextTag() else { throw scanner.malformed("an array that does not end") }
      if tag.isEnd {
        guard tag.name == "array" else { throw scanner.malformed("the array element is not closed") }
        return values
      }
      values.append(try value(of: tag, level: level + 1))
    }
  }

  private mutating func text(of tag: XMLScanner.Tag) throws(FormatError) -> String {
    guard !tag.isEmpty else { return "" }
    let text = try scanner.text()
    guard let end = try scanner.tag(), end.isEnd, end.name == tag.name else {
      throw scanner.malformed("the \(tag.name) element is not closed")
    }
    return text
  }

  private func integer(_ text: String) throws(FormatError) -> PropertyValue {
    let text = text.trimmed
    let (digits, isNegative) = text.hasPrefix("-") ? (text.dropFirst(), true) : (Substring(text), false)
    let isHexadecimal = digits.hasPrefix("0x") || digits.hasPrefix("0X")
    let body = isHexadecimal ? digits.dropFirst(2) : digits
    guard body.first != "+" || !isHexadecimal, let magnitude = UInt64(body, radix: isHexadecimal ? 16 : 10) else {
      throw scanner.malformed("an integer that is not valid")
    }
    if isNegative {
      guard magnitude <= UInt64(Int64.max) + 1 else { throw scanner.malformed("an integer that is too small") }
      return .integer(Int64(truncatingIfNeeded: 0 &- magnitude))
    }
    return Int64(exactly: magnitude).map { .integer($0) } ?? .unsignedInteger(magnitude)
  }

  private func real(_ text: String) throws(FormatError) -> PropertyValue {
    guard let value = Double(text.trimmed) else { throw scanner.malformed("a real that is not valid") }
    return .real(value)
  }

  private func date(_ text: String) throws(FormatError) -> PropertyValue {
    guard let date = Timestamp.date(from: text.trimmed) else { throw scanner.malformed("a date that is not valid") }
    return .date(date)
  }

  /// Decodes base64 with optional white space between the digits; nothing may follow the padding.
  private func data(_ text: String) throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count / 4 * 3)
    var (bits, digits, padding): (UInt32, Int, Int) = (0, 0, 0)
    for character in text.utf8 {
      let value: UInt32
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = UInt32(character) - 65
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = UInt32(character) - 71
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = UInt32(character) + 4
      case UInt8(ascii: "+"): value = 62
      case UInt8(ascii: "/"): value = 63
      case UInt8(ascii: "="):
        padding += 1
        continue
      case 9, 10, 13, 32: continue
      default: throw scanner.malformed("data that is not Base64")
      }
      guard padding == 0 else { throw scanner.malformed("data after its padding") }
      bits = bits << 6 | value
      digits += 1
      guard digits.isMultiple(of: 4) else { continue }
      bytes += [
        UInt8(truncatingIfNeeded: bits >> 16), UInt8(truncatingIfNeeded: bits >> 8), UInt8(truncatingIfNeeded: bits),
      ]
      bits = 0
    }
    switch (digits % 4, padding) {
    case (0, 0): break
    case (2, 2): bytes.append(UInt8(truncatingIfNeeded: bits >> 4))
    case (3, 1): bytes += [UInt8(truncatingIfNeeded: bits >> 10), UInt8(truncatingIfNeeded: bits >> 2)]
    default: throw scanner.malformed("data that is cut short")
    }
    return bytes
  }
}

extension String {
  fileprivate var trimmed: String {
    let isSpace = { (character: UInt8) in [9, 10, 13, 32].contains(character) }
    let start = utf8.drop(while: isSpace)
    return String(decoding: start.reversed().drop(while: isSpace).reversed(), as: UTF8.self)
  }
}

/// Scans the subset of XML that property lists consist of.
///
/// Source: W3C, "Extensible Markup Language (XML) 1.0".
struct XMLScanner {
  /// The start or end tag of an element; attributes are ignored.
  struct Tag {
    let name: String
    let isEnd: Bool
    /// Whether it is a start and end tag in one.
    let isEmpty: Bool
  }

  private let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0

  /// The maximum length of a name; property lists use at most seven letters.
  private static let maximumNameLength = 16
  /// The maximum length of a character reference: `&#x10FFFF;` with some leading zeros.
  private static let maximumReferenceLength = 16

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { offset == bytes.count }

  func malformed(_ reason: String) -> FormatError {
    isAtEnd
      ? FormatError(.xmlPlist, .truncated, "it ends inside an element", offset: offset)
      : FormatError(.xmlPlist, .malformed, reason, offset: offset)
  }

  func forbidden(_ reason: String) -> FormatError {
    isAtEnd
      ? FormatError(.xmlPlist, .truncated, "it ends inside an element", offset: offset)
      : FormatError(.xmlPlist, .forbidden, reason, offset: offset)
  }

  // MARK: Before and between the elements

  /// Skips a byte order mark, the declaration, and a document type without declarations.
  mutating func skipProlog() throws(FormatError) {
    _ = take("\u{FEFF}")
    try skipMiscellany()
    guard take("<!DOCTYPE") else { return }
    while let byte = next() {
      switch byte {
      case UInt8(ascii: ">"): return try skipMiscellany()
      case UInt8(ascii: "["): throw forbidden("a document type with declarations of its own")
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        while let inner = next(), inner != byte {}
      default: continue
      }
    }
    throw malformed("the document type does not end")
  }

  /// Skips white space, comments and processing instructions.
  mutating func skipMiscellany() throws(FormatError) {
    while true {
      skipSpace()
      if take("<!--") {
        try skip(to: "-->")
      } else if take("<?") {
        try skip(to: "?>")
      } else {
        return
      }
    }
  }

  private mutating func skip(to end: String) throws(FormatError) {
    while !isAtEnd {
      if take(end) { return }
      offset += 1
    }
    throw malformed("it does not end")
  }

  // MARK: Elements

  /// Reads a tag, or returns `nil` at the end of the bytes.
  mutating func tag() throws(FormatError) -> Tag? {
    guard !isAtEnd else { return nil }
    guard take("<") else { throw malformed("text where an element is expected") }
    let isEnd = take("/")
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
        guard !isEnd, take(">") else { throw malformed("a tag that is not closed") }
        return Tag(name: name, isEnd: false, isEmpty: true)
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        while let inner = next(), inner != byte {}
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
        if take("<![CDATA[") {
          let inner = offset
          try skip(to: "]]>")
          text += bytes[inner..<(offset - 3)]
        } else if take("<!--") {
          try skip(to: "-->")
        } else {
          guard let string = String(validating: text, as: UTF8.self) else {
            throw FormatError(.xmlPlist, .malformed, "text that is not UTF-8", offset: start)
          }
          return string
        }
      case UInt8(ascii: "&"): text += Array(String(try reference()).utf8)
      case 13:
        // XML treats every line end as a line feed.
        offset += 1
        if peek() != 10 { text.append(10) }
      default:
        text.append(byte)
        offset += 1
      }
    }
    throw malformed("text that does not end")
  }

  private mutating func reference() throws(FormatError) -> Unicode.Scalar {
    let start = offset + 1
    guard let end = bytes[start...].prefix(Self.maximumReferenceLength).firstIndex(of: UInt8(ascii: ";")) else {
      throw malformed("an entity that does not end")
    }
    let name = String(decoding: bytes[start..<end], as: UTF8.self)
    let scalar: Unicode.Scalar? =
      switch name {
      case "amp": "&"
      case "lt": "<"
      case "gt": ">"
      case "quot": "\""
      case "apos": "'"
      default:
        if name.hasPrefix("#x") {
          name.dropFirst(2).first == "+" ? nil : UInt32(name.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init)
        } else if name.hasPrefix("#") {
          name.dropFirst().first == "+" ? nil : UInt32(name.dropFirst()).flatMap(Unicode.Scalar.init)
        } else {
          nil
        }
      }
    guard let scalar, scalar != "\0" else {
      if name.hasPrefix("#") { throw malformed("a character that does not exist") }
      throw forbidden("an entity that XML does not define")
    }
    offset = end + 1
    return scalar
  }

  // MARK: Bytes

  private func peek() -> UInt8? { isAtEnd ? nil : bytes[offset] }

  private mutating func next() -> UInt8? {
    guard let byte = peek() else { return nil }
    offset += 1
    return byte
  }

  private mutating func take(_ text: String) -> Bool {
    guard bytes[offset...].starts(with: text.utf8) else { return false }
    offset += text.utf8.count
    return true
  }

  private mutating func skipSpace() {
    while let byte = peek(), [9, 10, 13, 32].contains(byte) { offset += 1 }
  }

  private static func isNameCharacter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
  }
}
