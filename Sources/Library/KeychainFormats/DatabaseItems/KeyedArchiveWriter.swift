import Basics

/// Writes a small binary property list with the layout of `NSKeyedArchiver`: containers before their contents, all keys
/// of a dictionary before its values, and a repeated string stored each time.
struct KeyedArchiveWriter {
  /// The maximum number of objects that references of one byte can represent. An archived box has fewer objects.
  static let maximumObjectCount = 256

  private var objects: [[UInt8]] = []

  mutating func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    let root = try write(value)
    var bytes = BinaryPlist.magic + BinaryPlist.version
    var offsets: [Int] = []
    for object in objects {
      offsets.append(bytes.count)
      bytes += object
    }
    let tableOffset = bytes.count
    let width = Self.width(of: UInt64(tableOffset))
    for offset in offsets { bytes += Self.bytes(of: UInt64(offset), width: width) }
    // The trailer: six unused bytes, the widths of an offset and of a reference, and three numbers.
    bytes += [0, 0, 0, 0, 0, 0, UInt8(width), 1]
    for number in [offsets.count, root, tableOffset] { bytes += Self.bytes(of: UInt64(number), width: 8) }
    return bytes
  }

  /// Writes a value.
  ///
  /// - Returns: The object's index.
  private mutating func write(_ value: PropertyValue) throws(FormatError) -> Int {
    let index = objects.count
    guard index < Self.maximumObjectCount else {
      throw FormatError(.binaryPlist, .unencodable, "more than \(Self.maximumObjectCount) objects")
    }
    objects.append([])
    switch value {
    case .integer(let number) where number >= 0: objects[index] = Self.integer(UInt64(number))
    case .uid(let number) where number <= 0xFF: objects[index] = [0x80, UInt8(number)]
    case .data(let bytes): objects[index] = Self.marker(0x40, count: bytes.count) + bytes
    case .string(let text) where text.utf8.allSatisfy({ $0 < 0x80 }):
      objects[index] = Self.marker(0x50, count: text.utf8.count) + Array(text.utf8)
    case .array(let values):
      objects[index] = Self.marker(0xA0, count: values.count) + (try references(values))
    case .dictionary(let dictionary):
      let keys = try references(dictionary.entries.map(\.key))
      let values = try references(dictionary.entries.map(\.value))
      objects[index] = Self.marker(0xD0, count: keys.count) + keys + values
    case .null, .boolean, .integer, .unsignedInteger, .real, .date, .string, .uid, .set:
      throw FormatError(.binaryPlist, .unencodable, "no archive of a box contains such a value")
    }
    return index
  }

  private mutating func references(_ values: [PropertyValue]) throws(FormatError) -> [UInt8] {
    var references: [UInt8] = []
    for value in values { references.append(UInt8(try write(value))) }
    return references
  }

  /// Returns the start of an object: its kind in the upper four bits, and its count. A count of 15 or more follows as an
  /// integer object.
  private static func marker(_ kind: UInt8, count: Int) -> [UInt8] {
    count < 15 ? [kind | UInt8(count)] : [kind | 0xF] + integer(UInt64(count))
  }

  private static func integer(_ value: UInt64) -> [UInt8] {
    let width = width(of: value)
    return [0x10 | UInt8(width.trailingZeroBitCount)] + bytes(of: value, width: width)
  }

  private static func bytes(of value: UInt64, width: Int) -> [UInt8] { bigEndianBytes(value).suffix(width) }

  /// Returns the number of bytes for a number: 1, 2, 4 or 8.
  private static func width(of value: UInt64) -> Int {
    switch value {
    case ...0xFF: 1
    case ...0xFFFF: 2
    case ...0xFFFF_FFFF: 4
    default: 8
    }
  }
}
