import Basics

/// Apple's DER encoding of a property list, as in decrypted keychain items and in the keychain's digests.
///
/// It is regular DER: definite lengths in their shortest form. A dictionary is a SET of key and value SEQUENCEs, sorted
/// by their encoded bytes; `true` is 01; a set has the private tag D1. Real numbers are supported only if they are
/// whole.
///
/// Source: Apple Security `der_plist.c` and its parts, with the regression tests `su-10` to `su-17`.
package enum DERPropertyList {
  /// The maximum number of bytes to read: 72 MiB, as for an encrypted item.
  package static let maximumByteCount = 72 << 20
  /// The deepest nesting of dictionaries, arrays and sets.
  package static let maximumDepth = 64
  /// The maximum number of values in a list, including containers and keys.
  package static let maximumValueCount = 100_000

  enum Tag {
    static let boolean: UInt8 = 0x01
    static let integer: UInt8 = 0x02
    static let data: UInt8 = 0x04
    static let null: UInt8 = 0x05
    static let string: UInt8 = 0x0C
    static let numericString: UInt8 = 0x12
    static let utcTime: UInt8 = 0x17
    static let generalizedTime: UInt8 = 0x18
    static let sequence: UInt8 = 0x30
    static let dictionary: UInt8 = 0x31
    /// A blob of entitlements: read as data, never written.
    static let entitlements: UInt8 = 0x70
    /// Private class, number 17; a primitive tag although it contains elements.
    static let set: UInt8 = 0xD1
  }

  /// The treatment of a date whose text is malformed. A well-formed text with a field out of range always fails.
  enum DateRepair {
    case refuse
    /// Apple's repair for items, 2001-03-24T00:00:00Z, so that a malformed date does not make the item unreadable.
    case substitute
  }

  /// Decodes a value that takes up all of the bytes.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.trailingBytes`, or `.overLimit` for one of the limits above.
  package static func decode(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in try decode(buffer)
    }
  }

  /// Decodes a value that takes up all of the bytes, without copying them.
  ///
  /// - Throws: `.truncated`, `.malformed`, `.overLimit` or `.trailingBytes`, with the offset.
  package static func decode(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue {
    var decoder = try DERDecoder(bytes, format: .der, dates: .refuse)
    return try decoder.onlyValue()
  }

  /// Encodes a value, byte for byte like Apple's encoder.
  ///
  /// - Throws: `.unencodable` for a value that DER cannot represent, `.overLimit` for more than `maximumDepth` levels.
  package static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    try DEREncoder(keepsDateText: true).encode(value)
  }
}

/// Encodes Apple's DER property lists.
struct DEREncoder {
  /// Whether a decoded date keeps its text. Digests use the seconds instead, as Apple's do.
  let keepsDateText: Bool

  func encode(_ value: PropertyValue, depth: Int = 1) throws(FormatError) -> [UInt8] {
    var bytes: [UInt8] = []
    try append(value, depth: depth, to: &bytes)
    return bytes
  }

  /// Appends an encoded value to existing bytes. Most values are short, and an array for each would cost more.
  func append(_ value: PropertyValue, depth: Int, to bytes: inout [UInt8]) throws(FormatError) {
    guard depth <= DERPropertyList.maximumDepth else {
      throw FormatError(.der, .overLimit, "more than \(DERPropertyList.maximumDepth) levels")
    }
    switch value {
    case .null:
      Self.appendHeader(DERPropertyList.Tag.null, count: 0, to: &bytes)
    case .boolean(let value):
      Self.appendElement(DERPropertyList.Tag.boolean, CollectionOfOne(value ? 1 : 0), to: &bytes)
    case .integer(let value):
      Self.appendInteger(value, to: &bytes)
    case .unsignedInteger(let value):
      guard let value = Int64(exactly: value) else {
        throw FormatError(.der, .unencodable, "an integer that is too large for a signed 64-bit number")
      }
      Self.appendInteger(value, to: &bytes)
    case .real(let value):
      guard let value = Int64(exactly: value) else {
        throw FormatError(.der, .unencodable, "a number that is not whole")
      }
      Self.appendInteger(value, to: &bytes)
    case .date(let date):
      guard let text = keepsDateText ? DERDate.encode(date) : DERDate.encode(date.secondsSinceReferenceDate) else {
        throw FormatError(.der, .unencodable, "a date outside the years 0 to 9999")
      }
      Self.appendElement(DERPropertyList.Tag.generalizedTime, text, to: &bytes)
    case .data(let data):
      Self.appendElement(DERPropertyList.Tag.data, data, to: &bytes)
    case .string(let text):
      Self.appendElement(DERPropertyList.Tag.string, text.utf8, to: &bytes)
    case .uid:
      throw FormatError(.der, .unencodable, "a reference from a keyed archive")
    case .array(let values):
      let elements = try elements(values, depth: depth)
      Self.appendElement(DERPropertyList.Tag.sequence, elements.flatMap(\.self), to: &bytes)
    case .set(let values):
      let sorted = try elements(values, depth: depth).sorted(by: Self.precedes)
      Self.appendElement(DERPropertyList.Tag.set, sorted.flatMap(\.self), to: &bytes)
    case .dictionary(let dictionary):
      let pairs = try pairs(of: dictionary, depth: depth).sorted(by: Self.precedes)
      Self.appendElement(DERPropertyList.Tag.dictionary, pairs.flatMap(\.self), to: &bytes)
    }
  }

  private func elements(_ values: [PropertyValue], depth: Int) throws(FormatError) -> [[UInt8]] {
    var encoded: [[UInt8]] = []
    for value in values { encoded.append(try encode(value, depth: depth + 1)) }
    return encoded
  }

  private func pairs(of dictionary: PropertyDictionary, depth: Int) throws(FormatError) -> [[UInt8]] {
    var seen: Set<[UInt8]> = []
    var pairs: [[UInt8]] = []
    for entry in dictionary.entries {
      let key = try encode(entry.key, depth: depth + 1)
      guard seen.insert(key).inserted else { continue }
      var pair: [UInt8] = []
      let value = try encode(entry.value, depth: depth + 1)
      Self.appendElement(DERPropertyList.Tag.sequence, key + value, to: &pair)
      pairs.append(pair)
    }
    return pairs
  }

  /// Returns whether bytes come first in unsigned order; a prefix comes before the longer bytes.
  static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }

  static func appendElement(_ tag: UInt8, _ contents: some Collection<UInt8>, to bytes: inout [UInt8]) {
    appendHeader(tag, count: contents.count, to: &bytes)
    bytes.append(contentsOf: contents)
  }

  /// Appends a tag and a length in its shortest form.
  static func appendHeader(_ tag: UInt8, count: Int, to bytes: inout [UInt8]) {
    bytes.append(tag)
    guard count >= 0x80 else { return bytes.append(UInt8(count)) }
    let digits = Self.bytes(of: Int64(count)).drop { $0 == 0 }
    bytes.append(0x80 | UInt8(digits.count))
    bytes.append(contentsOf: digits)
  }

  private static func appendInteger(_ value: Int64, to bytes: inout [UInt8]) {
    appendElement(DERPropertyList.Tag.integer, contents(of: value), to: &bytes)
  }

  private static func bytes(of value: Int64) -> [UInt8] {
    (0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// Returns the fewest bytes of two's complement that preserve the sign.
  private static func contents(of value: Int64) -> ArraySlice<UInt8> {
    if (-0x80..<0x80).contains(value) { return [UInt8(truncatingIfNeeded: value)] }
    var digits = bytes(of: value)[...]
    while let first = digits.first, let second = digits.dropFirst().first,
      first == 0 && second < 0x80 || first == 0xFF && second >= 0x80
    {
      digits.removeFirst()
    }
    return digits
  }
}

/// Decodes Apple's DER property lists. Secrets can be read in place, without an intermediate array.
struct DERDecoder {
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
    case DERPropertyList.Tag.null:
      guard contents.isAtEnd else { throw malformed(element, "a null with contents") }
      return .null
    case DERPropertyList.Tag.boolean:
      guard contents.remaining == 1 else { throw malformed(element, "a boolean of \(contents.remaining) bytes") }
      return .boolean(try contents.takeByte("a boolean") != 0)
    case DERPropertyList.Tag.integer:
      return .integer(try integer(of: element))
    case DERPropertyList.Tag.data, DERPropertyList.Tag.entitlements:
      return .data(try contents.takeBytes(contents.remaining, "data"))
    case DERPropertyList.Tag.string, DERPropertyList.Tag.numericString:
      return .string(try string(of: element))
    case DERPropertyList.Tag.generalizedTime, DERPropertyList.Tag.utcTime:
      return .date(try date(of: element))
    case DERPropertyList.Tag.sequence:
      return .array(try values(of: element, depth: depth))
    case DERPropertyList.Tag.set:
      return .set(try values(of: element, depth: depth))
    case DERPropertyList.Tag.dictionary:
      return .dictionary(try dictionary(of: element, depth: depth))
    default:
      throw malformed(element, "the tag 0x\(String(element.tag, radix: 16))")
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
    guard pair.tag == DERPropertyList.Tag.sequence else { throw malformed(pair, "a pair that is not a SEQUENCE") }
    var parts = pair.contents
    let key = try element(in: &parts)
    let value = try element(in: &parts)
    try checkEnd(of: parts, after: "a key and its value")
    return (key, value)
  }

  private func string(of element: Element) throws(FormatError) -> String {
    try text(of: element, String.init(utf8:))
  }

  /// Returns the attribute code in a dictionary's key.
  func attributeCode(of element: Element) throws(FormatError) -> AttributeCode {
    try text(of: element, AttributeCode.init(utf8:))
  }

  private func text<Text>(
    of element: Element, _ read: (UnsafeRawBufferPointer) -> Text?
  ) throws(FormatError) -> Text {
    guard element.tag == DERPropertyList.Tag.string || element.tag == DERPropertyList.Tag.numericString else {
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
      return element.tag == DERPropertyList.Tag.utcTime
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

  private mutating func dictionary(of element: Element, depth: Int) throws(FormatError) -> PropertyDictionary {
    var contents = element.contents
    var seen: Set<[UInt8]> = []
    var entries: [PropertyDictionary.Entry] = []
    while !contents.isAtEnd {
      let pair = try pair(in: &contents)
      let key = try value(of: pair.key, depth: depth + 1)
      let value = try value(of: pair.value, depth: depth + 1)
      let keyBytes = [pair.key.tag] + pair.key.contents.remainingBytes
      if seen.insert(keyBytes).inserted { entries.append(PropertyDictionary.Entry(key: key, value: value)) }
    }
    return PropertyDictionary(entries)
  }
}
