import Basics

/// Decodes Apple's DER property lists. Secrets can be read in place, without an intermediate array.
struct DERDecoder {
  private typealias Tag = DERPropertyList.Tag

  /// The tag of a value and its contents in place.
  struct Element {
    let tag: UInt8
    /// The offset of the tag.
    let offset: Int
    var contents: ByteCursor
  }

  private let cursor: ByteCursor
  private let dates: DERPropertyList.DateRepair
  private var valueCount = 0

  init(
    _ bytes: UnsafeRawBufferPointer, format: FormatError.Format, dates: DERPropertyList.DateRepair
  ) throws(FormatError) {
    guard bytes.count <= DERPropertyList.maximumByteCount else {
      let limit = DERPropertyList.maximumByteCount
      throw FormatError(format, .overLimit, "\(bytes.count) bytes; at most \(limit) are accepted")
    }
    cursor = ByteCursor(bytes, format: format)
    self.dates = dates
  }

  /// Reads an element that takes up all of the bytes.
  mutating func onlyElement() throws(FormatError) -> Element {
    var remaining = cursor
    let element = try element(in: &remaining)
    try checkEnd(of: remaining, after: "the value")
    return element
  }

  mutating func onlyValue() throws(FormatError) -> PropertyValue { try value(of: onlyElement(), depth: 1) }

  func checkEnd(of cursor: ByteCursor, after what: String) throws(FormatError) {
    guard cursor.isAtEnd else {
      throw FormatError(cursor.format, .trailingBytes, "\(cursor.remaining) bytes after \(what)", offset: cursor.offset)
    }
  }

  /// Reads a tag and a length, and skips the contents.
  mutating func element(in cursor: inout ByteCursor) throws(FormatError) -> Element {
    let offset = cursor.offset
    valueCount += 1
    guard valueCount <= DERPropertyList.maximumValueCount else {
      let limit = DERPropertyList.maximumValueCount
      throw FormatError(cursor.format, .overLimit, "more than \(limit) values", offset: offset)
    }
    let tag = try cursor.takeByte("a tag")
    let count = try Self.length(in: &cursor)
    return Element(tag: tag, offset: offset, contents: try cursor.takeCursor(count, "the contents"))
  }

  private static func length(in cursor: inout ByteCursor) throws(FormatError) -> Int {
    let offset = cursor.offset
    let first = try cursor.takeByte("a length")
    guard first >= 0x80 else { return Int(first) }
    guard first != 0x80 else {
      throw FormatError(cursor.format, .malformed, "an indefinite length", offset: offset)
    }
    let digits = try cursor.take(Int(first & 0x7F), "a length")
    guard digits.count <= 4 else {
      throw FormatError(cursor.format, .malformed, "a length of \(digits.count) bytes", offset: offset)
    }
    let length = cursor.bytes(in: digits).reduce(0) { $0 << 8 | Int($1) }
    guard length >= 0x80, cursor.bytes(in: digits).first != 0 else {
      throw FormatError(cursor.format, .malformed, "a length that is not in its shortest form", offset: offset)
    }
    return length
  }

  /// Returns the value of an element.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - depth: The level of the value; 1 for the root value.
  mutating func value(of element: Element, depth: Int) throws(FormatError) -> PropertyValue {
    var contents = element.contents
    let format = contents.format
    guard depth <= DERPropertyList.maximumDepth else {
      let limit = DERPropertyList.maximumDepth
      throw FormatError(format, .overLimit, "more than \(limit) levels", offset: element.offset)
    }
    switch element.tag {
    case Tag.null:
      guard contents.isAtEnd else { throw malformed(element, "a null with contents") }
      return .null
    case Tag.boolean:
      guard contents.remaining == 1 else { throw malformed(element, "a boolean of \(contents.remaining) bytes") }
      return .boolean(try contents.takeByte("a boolean") != 0)
    case Tag.integer: return .integer(try integer(of: element))
    case Tag.data, Tag.entitlements:
      return .data(try contents.takeBytes(contents.remaining, "data"))
    case Tag.string, Tag.numericString:
      return .string(try text(of: element, String.init(utf8:)))
    case Tag.generalizedTime, Tag.utcTime:
      return .date(try date(of: element))
    case Tag.sequence: return .array(try values(of: element, depth: depth))
    case Tag.set: return .set(try values(of: element, depth: depth))
    case Tag.dictionary: return .dictionary(try dictionary(of: element, depth: depth))
    default: throw malformed(element, "the tag 0x\(String(element.tag, radix: 16))")
    }
  }

  /// Returns the number of elements in a dictionary's contents.
  func pairCount(in contents: ByteCursor) throws(FormatError) -> Int {
    var (remaining, count) = (contents, 0)
    while !remaining.isAtEnd {
      _ = try remaining.takeByte("a tag")
      _ = try remaining.take(Self.length(in: &remaining), "the contents")
      count += 1
    }
    return count
  }

  /// Reads a key-value SEQUENCE in a dictionary's contents, and skips it.
  mutating func pair(in contents: inout ByteCursor) throws(FormatError) -> (key: Element, value: Element) {
    let pair = try element(in: &contents)
    guard pair.tag == Tag.sequence else { throw malformed(pair, "a pair that is not a SEQUENCE") }
    var parts = pair.contents
    let key = try element(in: &parts)
    let value = try element(in: &parts)
    try checkEnd(of: parts, after: "a key and its value")
    return (key, value)
  }

  /// Returns the attribute code in a dictionary's key.
  func attributeCode(of element: Element) throws(FormatError) -> AttributeCode {
    try text(of: element, AttributeCode.init(utf8:))
  }

  private func text<Text>(
    of element: Element, _ read: (UnsafeRawBufferPointer) -> Text?
  ) throws(FormatError) -> Text {
    guard element.tag == Tag.string || element.tag == Tag.numericString else {
      throw malformed(element, "a value that is not a string")
    }
    guard let text = read(element.contents.remainingBytes) else {
      throw malformed(element, "a string that is not UTF-8")
    }
    return text
  }

  func malformed(_ element: Element, _ reason: String) -> FormatError {
    FormatError(element.contents.format, .malformed, reason, offset: element.offset)
  }

  private func integer(of element: Element) throws(FormatError) -> Int64 {
    let bytes = element.contents.remainingBytes
    guard let first = bytes.first else { throw malformed(element, "an integer without bytes") }
    guard bytes.count <= 8 else { throw malformed(element, "an integer of \(bytes.count) bytes") }
    if bytes.count > 1, first == 0 && bytes[1] < 0x80 || first == 0xFF && bytes[1] >= 0x80 {
      throw malformed(element, "an integer that is not in its shortest form")
    }
    return bytes.reduce(first >= 0x80 ? -1 : 0) { $0 << 8 | Int64($1) }
  }

  private func date(of element: Element) throws(FormatError) -> KeychainDate {
    let text = element.contents.remainingBytes
    do throws(DERDate.Fault) {
      return element.tag == Tag.utcTime
        ? try DERDate.decodeUTCTime(text) : try DERDate.decode(text)
    } catch {
      switch (error, dates) {
      case (.malformed, .substitute): return DERDate.replacementForMalformed
      case (.malformed, .refuse), (.outOfRange, _): throw malformed(element, error.reason)
      }
    }
  }

  private mutating func values(of element: Element, depth: Int) throws(FormatError) -> [PropertyValue] {
    var contents = element.contents
    var values: [PropertyValue] = []
    while !contents.isAtEnd {
      values.append(try value(of: self.element(in: &contents), depth: depth + 1))
    }
    return values
  }

  /// Returns the entries of a dictionary. If a key occurs twice, only its first value is read.
  private mutating func dictionary(of element: Element, depth: Int) throws(FormatError) -> PropertyDictionary {
    var contents = element.contents
    var keys: Set<[UInt8]> = []
    var entries: [PropertyDictionary.Entry] = []
    while !contents.isAtEnd {
      let pair = try pair(in: &contents)
      let key = try value(of: pair.key, depth: depth + 1)
      let value = try value(of: pair.value, depth: depth + 1)
      let keyBytes = [pair.key.tag] + pair.key.contents.remainingBytes
      if keys.insert(keyBytes).inserted { entries.append(PropertyDictionary.Entry(key: key, value: value)) }
    }
    return PropertyDictionary(entries)
  }
}
