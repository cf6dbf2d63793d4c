import Basics

/// Converts the elements of an XML property list to values.
struct XMLPlistReader {
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
    var readKeys: Set<String> = []
    while true {
      guard let tag = try nextTag() else { throw scanner.malformed("a dictionary that does not end") }
      if tag.isEnd {
        guard tag.name == "dict" else { throw scanner.malformed("the dict element is not closed") }
        return PropertyDictionary(entries)
      }
      guard tag.name == "key" else { throw scanner.malformed("a value without a key") }
      let key = try text(of: tag)
      let value = try value(of: try open(), level: level + 1)
      if readKeys.insert(key).inserted || keepsRepeatedKeys { entries.append(.init(key: .string(key), value: value)) }
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
    let isNegative = text.hasPrefix("-")
    let unsigned = text.dropFirst(isNegative ? 1 : 0)
    let isHexadecimal = unsigned.hasPrefix("0x") || unsigned.hasPrefix("0X")
    let digits = unsigned.dropFirst(isHexadecimal ? 2 : 0)
    // `UInt64.init` also accepts a plus sign, which is valid only in a decimal number.
    guard digits.first != "+" || !isHexadecimal, let magnitude = UInt64(digits, radix: isHexadecimal ? 16 : 10) else {
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

  /// Decodes Base64 with optional white space between the digits; nothing may follow the padding.
  private func data(_ text: String) throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count / 4 * 3)
    var (bits, digitCount, paddingCount) = (UInt32(0), 0, 0)
    for character in text.utf8 where !XMLScanner.isSpace(character) {
      if character == UInt8(ascii: "=") {
        paddingCount += 1
        continue
      }
      guard let value = Base64Digits.value(of: character) else { throw scanner.malformed("data that is not Base64") }
      guard paddingCount == 0 else { throw scanner.malformed("data after its padding") }
      bits = bits << 6 | value
      digitCount += 1
      guard digitCount.isMultiple(of: 4) else { continue }
      for shift in [UInt32(16), 8, 0] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
      bits = 0
    }
    // In the last group, two digits encode one byte, and three encode two.
    switch (digitCount % 4, paddingCount) {
    case (0, 0): break
    case (2, 2): bytes.append(UInt8(truncatingIfNeeded: bits >> 4))
    case (3, 1): for shift in [UInt32(10), 2] { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
    default: throw scanner.malformed("data that is cut short")
    }
    return bytes
  }
}

extension String {
  /// The text without white space at its start and end.
  fileprivate var trimmed: String {
    let start = utf8.drop(while: XMLScanner.isSpace)
    return String(decoding: start.reversed().drop(while: XMLScanner.isSpace).reversed(), as: UTF8.self)
  }
}
