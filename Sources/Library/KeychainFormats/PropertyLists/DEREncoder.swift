import Basics

/// Encodes Apple's DER property lists.
struct DEREncoder {
  private typealias Tag = DERPropertyList.Tag

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
    case .null: Self.appendHeader(Tag.null, count: 0, to: &bytes)
    case .boolean(let value): Self.appendElement(Tag.boolean, CollectionOfOne(value ? 1 : 0), to: &bytes)
    case .integer(let value): Self.appendInteger(value, to: &bytes)
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
      Self.appendElement(Tag.generalizedTime, text, to: &bytes)
    case .data(let data): Self.appendElement(Tag.data, data, to: &bytes)
    case .string(let text): Self.appendElement(Tag.string, text.utf8, to: &bytes)
    case .uid: throw FormatError(.der, .unencodable, "a reference from a keyed archive")
    case .array(let values):
      let elements = try encodedElements(values, depth: depth)
      Self.appendElement(Tag.sequence, elements.flatMap(\.self), to: &bytes)
    case .set(let values):
      let sorted = try encodedElements(values, depth: depth).sorted(by: Self.precedes)
      Self.appendElement(Tag.set, sorted.flatMap(\.self), to: &bytes)
    case .dictionary(let dictionary):
      let pairs = try pairs(of: dictionary, depth: depth).sorted(by: Self.precedes)
      Self.appendElement(Tag.dictionary, pairs.flatMap(\.self), to: &bytes)
    }
  }

  private func encodedElements(_ values: [PropertyValue], depth: Int) throws(FormatError) -> [[UInt8]] {
    var encoded: [[UInt8]] = []
    for value in values { encoded.append(try encode(value, depth: depth + 1)) }
    return encoded
  }

  /// Returns the encoded pairs. If a key occurs twice, only its first value is encoded.
  private func pairs(of dictionary: PropertyDictionary, depth: Int) throws(FormatError) -> [[UInt8]] {
    var encodedKeys: Set<[UInt8]> = []
    var pairs: [[UInt8]] = []
    for entry in dictionary.entries {
      let key = try encode(entry.key, depth: depth + 1)
      guard encodedKeys.insert(key).inserted else { continue }
      var pair: [UInt8] = []
      let value = try encode(entry.value, depth: depth + 1)
      Self.appendElement(Tag.sequence, key + value, to: &pair)
      pairs.append(pair)
    }
    return pairs
  }

  /// Returns whether `left` comes before `right` in the order of unsigned bytes; a prefix comes before longer bytes.
  static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }

  static func appendElement(_ tag: UInt8, _ contents: some Collection<UInt8>, to bytes: inout [UInt8]) {
    appendHeader(tag, count: contents.count, to: &bytes)
    bytes.append(contentsOf: contents)
  }

  /// Appends a tag and a length in its shortest form.
  static func appendHeader(_ tag: UInt8, count: Int, to bytes: inout [UInt8]) {
    bytes.append(tag)
    guard count >= 0x80 else { return bytes.append(UInt8(count)) }
    let digits = bigEndianBytes(UInt64(count)).drop { $0 == 0 }
    bytes.append(0x80 | UInt8(digits.count))
    bytes.append(contentsOf: digits)
  }

  private static func appendInteger(_ value: Int64, to bytes: inout [UInt8]) {
    appendElement(Tag.integer, contents(of: value), to: &bytes)
  }

  /// Returns the fewest bytes of two's complement that preserve the sign.
  private static func contents(of value: Int64) -> ArraySlice<UInt8> {
    if (-0x80..<0x80).contains(value) { return [UInt8(truncatingIfNeeded: value)] }
    var digits = bigEndianBytes(UInt64(bitPattern: value))[...]
    // A first byte that only repeats the sign of the second byte is not needed.
    while let first = digits.first, let second = digits.dropFirst().first,
      first == 0 && second < 0x80 || first == 0xFF && second >= 0x80
    {
      digits.removeFirst()
    }
    return digits
  }
}
