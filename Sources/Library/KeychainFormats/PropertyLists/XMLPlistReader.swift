import Basics

extension XMLPlist {
  /// Every list of a backup is a few megabytes at most.
  public static let maximumByteCount = 64 << 20
  /// The elements of one list, its root and keys among them.
  public static let maximumElementCount = 1_000_000

  /// Whether bytes begin as an XML property list does: after a byte-order mark and white space, a tag.
  public static func isXML(_ bytes: [UInt8]) -> Bool {
    let start = bytes.prefix(64).drop { [0xEF, 0xBB, 0xBF, 9, 10, 13, 32].contains($0) }
    return start.first == UInt8(ascii: "<")
  }

  /// Reads a list in UTF-8.
  ///
  /// Nothing outside of the bytes is ever looked at: the document type is passed over, one that declares anything of its
  /// own is refused, and so is every entity but XML's own five and characters by number.
  /// - Throws: `.malformed` and `.truncated` with the offset, `.overLimit` for more levels, elements or bytes.
  public static func decode(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try decode(bytes, maximumElementCount: maximumElementCount)
  }

  /// The same, and of a key that stands twice in a dictionary every entry, as in a binary list.
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

/// Builds values out of a list's elements.
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
    guard root.name == "plist", !root.isEmpty else { throw scanner.malformed("the root is not a plist element") }
    let value = try value(of: try open(), level: 0)
    try close("plist")
    try scanner.skipMiscellany()
    guard scanner.isAtEnd else {
      throw FormatError(.xmlPlist, .trailingBytes, "more follows the plist element", offset: scanner.offset)
    }
    return value
  }

  /// The start of an element, white space and comments before it passed over.
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
      throw scanner.malformed("the element \(name) does not end")
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
    default: throw scanner.malformed("an element that no property list has")
    }
  }

  private mutating func dictionary(level: Int) throws(FormatError) -> PropertyDictionary {
    var entries: [PropertyDictionary.Entry] = []
    var seen: Set<String> = []
    while true {
      guard let tag = try nextTag() else { throw scanner.malformed("a dictionary that does not end") }
      if tag.isEnd {
        guard tag.name == "dict" else { throw scanner.malformed("the element dict does not end") }
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
        guard tag.name == "array" else { throw scanner.malformed("the element array does not end") }
        return values
      }
      values.append(try value(of: tag, level: level + 1))
    }
  }

  private mutating func text(of tag: XMLScanner.Tag) throws(FormatError) -> String {
    guard !tag.isEmpty else { return "" }
    let text = try scanner.text()
    guard let end = try scanner.tag(), end.isEnd, end.name == tag.name else {
      throw scanner.malformed("the element \(tag.name) does not end")
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

  /// White space may stand anywhere among the digits; what follows a padding is refused.
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
