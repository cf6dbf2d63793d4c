/// Writes Apple's DER property lists.
struct DEREncoder {
  /// Whether a date that was read keeps its text. Digests are computed from the seconds, as Apple does.
  let keepsDateText: Bool

  func encode(_ value: PropertyValue, depth: Int = 1) throws(FormatError) -> [UInt8] {
    guard depth <= DERPropertyList.maximumDepth else {
      throw FormatError(.der, .overLimit, "more than \(DERPropertyList.maximumDepth) levels")
    }
    switch value {
    case .null:
      return Self.element(DERPropertyList.Tag.null, [])
    case .boolean(let value):
      return Self.element(DERPropertyList.Tag.boolean, [value ? 1 : 0])
    case .integer(let value):
      return Self.element(DERPropertyList.Tag.integer, Self.contents(of: value))
    case .unsignedInteger(let value):
      guard let value = Int64(exactly: value) else {
        throw FormatError(.der, .unencodable, "an integer above 64 signed bits")
      }
      return Self.element(DERPropertyList.Tag.integer, Self.contents(of: value))
    case .real(let value):
      guard let value = Int64(exactly: value) else {
        throw FormatError(.der, .unencodable, "a number that is not whole")
      }
      return Self.element(DERPropertyList.Tag.integer, Self.contents(of: value))
    case .date(let date):
      guard let text = keepsDateText ? DERDate.encode(date) : DERDate.encode(date.secondsSinceReferenceDate) else {
        throw FormatError(.der, .unencodable, "a date outside the years 0 to 9999")
      }
      return Self.element(DERPropertyList.Tag.generalizedTime, text)
    case .data(let bytes):
      return Self.element(DERPropertyList.Tag.data, bytes)
    case .string(let text):
      return Self.element(DERPropertyList.Tag.string, Array(text.utf8))
    case .uid:
      throw FormatError(.der, .unencodable, "a reference of a keyed archive")
    case .array(let values):
      return Self.element(DERPropertyList.Tag.sequence, try elements(values, depth: depth).flatMap(\.self))
    case .set(let values):
      let sorted = try elements(values, depth: depth).sorted(by: Self.precedes)
      return Self.element(DERPropertyList.Tag.set, sorted.flatMap(\.self))
    case .dictionary(let dictionary):
      return try encode(dictionary, depth: depth)
    }
  }

  private func elements(_ values: [PropertyValue], depth: Int) throws(FormatError) -> [[UInt8]] {
    var encoded: [[UInt8]] = []
    for value in values { encoded.append(try encode(value, depth: depth + 1)) }
    return encoded
  }

  private func encode(_ dictionary: PropertyDictionary, depth: Int) throws(FormatError) -> [UInt8] {
    var seen: Set<[UInt8]> = []
    var pairs: [[UInt8]] = []
    for entry in dictionary.entries {
      let key = try encode(entry.key, depth: depth + 1)
      guard seen.insert(key).inserted else { continue }
      pairs.append(Self.element(DERPropertyList.Tag.sequence, key + (try encode(entry.value, depth: depth + 1))))
    }
    return Self.element(DERPropertyList.Tag.dictionary, pairs.sorted(by: Self.precedes).flatMap(\.self))
  }

  /// Unsigned bytes, the shorter first where one begins the other.
  static func precedes(_ left: [UInt8], _ right: [UInt8]) -> Bool { left.lexicographicallyPrecedes(right) }

  static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] { header(tag, count: contents.count) + contents }

  /// A tag and a length in its shortest form.
  static func header(_ tag: UInt8, count: Int) -> [UInt8] {
    guard count >= 0x80 else { return [tag, UInt8(count)] }
    let digits = bytes(of: Int64(count)).drop { $0 == 0 }
    return [tag, 0x80 | UInt8(digits.count)] + digits
  }

  private static func bytes(of value: Int64) -> [UInt8] {
    (0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// The fewest bytes of two's complement that keep the sign.
  private static func contents(of value: Int64) -> [UInt8] {
    var digits = bytes(of: value)[...]
    while let first = digits.first, let second = digits.dropFirst().first,
      first == 0 && second < 0x80 || first == 0xFF && second >= 0x80
    {
      digits.removeFirst()
    }
    return Array(digits)
  }
}
