import Basics
package import KeychainFormats

/// Converts the values that apps pass in to the types that the attributes of an item store.
///
/// Source: Apple `SecDbItem.c` (`copyNumber`, `copyBlob`, `copyData`, `copyString`, `copyDate`, `copyUUID`).
package enum AttributeConversion {
  /// Converts a value for an attribute.
  ///
  /// - Throws: `.unencodable` if an attribute of this kind cannot store the value (`errSecParam` on a device). The
  ///   error does not contain the value.
  package static func convert(
    _ value: PropertyValue, for definition: AttributeDefinition
  ) throws(FormatError) -> PropertyValue {
    guard let converted = convert(value, for: definition.kind) else {
      throw FormatError(
        .item, .unencodable,
        "\(definition.code.rawValue) needs \(expectation(of: definition.kind)), not \(name(of: value))")
    }
    return converted
  }

  /// Returns a value converted for a kind of attribute, or `nil` if that kind does not accept the value.
  package static func convert(_ value: PropertyValue, for kind: AttributeKind) -> PropertyValue? {
    switch kind {
    case .number, .sync, .tomb, .useTombstone: number(value)
    case .rowID: integer(value).map(PropertyValue.integer)
    case .creationDate, .modificationDate, .date: value.dateValue.map(PropertyValue.date)
    case .blob: blob(value)
    case .data, .encryptedData, .sha1, .primaryKey, .accessControl: data(value)
    case .string, .access: string(value)
    case .uuid: uuid(value)
    }
  }

  /// Converts numbers and booleans to integers. A string becomes an integer if it is the usual decimal form of a 32-bit
  /// integer. Other strings (`htps`, `007`) are returned unchanged.
  private static func number(_ value: PropertyValue) -> PropertyValue? {
    switch value {
    case .boolean(let flag): return .integer(flag ? 1 : 0)
    case .string(let text):
      guard let number = Int32(text), String(number) == text else { return value }
      return .integer(Int64(number))
    default: return integer(value).map(PropertyValue.integer)
    }
  }

  private static func blob(_ value: PropertyValue) -> PropertyValue? {
    switch value {
    case .string, .data: value
    default: integer(value).map(PropertyValue.integer)
    }
  }

  /// Returns data unchanged, text as UTF-8, and a 32-bit number as four little-endian bytes.
  private static func data(_ value: PropertyValue) -> PropertyValue? {
    switch value {
    case .data: return value
    case .string(let text): return .data(Array(text.utf8))
    default:
      guard let number = integer(value).flatMap(Int32.init(exactly:)) else { return nil }
      var bytes: [UInt8] = []
      bytes.append(littleEndian: UInt32(bitPattern: number))
      return .data(bytes)
    }
  }

  private static func string(_ value: PropertyValue) -> PropertyValue? {
    switch value {
    case .string: value
    case .data(let bytes): String(validating: bytes, as: UTF8.self).map(PropertyValue.string)
    default: nil
    }
  }

  private static func uuid(_ value: PropertyValue) -> PropertyValue? {
    guard let bytes = value.dataValue, bytes.isEmpty || bytes.count == 16 else { return nil }
    return value
  }

  /// Returns a number of any type as an integer, or `nil` if it is not whole or too large. Returns `nil` also if the
  /// value is not a number, such as a boolean.
  private static func integer(_ value: PropertyValue) -> Int64? {
    switch value {
    case .integer(let number): number
    case .unsignedInteger(let number): Int64(exactly: number)
    case .real(let number): Int64(exactly: number)
    case .null, .boolean, .date, .data, .string, .uid, .array, .dictionary, .set: nil
    }
  }

  private static func expectation(of kind: AttributeKind) -> String {
    switch kind {
    case .number, .sync, .tomb, .useTombstone: "a whole number or text"
    case .rowID: "a whole number"
    case .creationDate, .modificationDate, .date: "a date"
    case .blob: "text, data or a whole number"
    case .data, .encryptedData, .sha1, .primaryKey, .accessControl: "data, text or a 32-bit number"
    case .string, .access: "text"
    case .uuid: "data of 0 or 16 bytes"
    }
  }

  private static func name(of value: PropertyValue) -> String {
    switch value {
    case .null: "a null"
    case .boolean: "a boolean"
    case .integer, .unsignedInteger, .real: "a number"
    case .date: "a date"
    case .data(let bytes): "data of \(bytes.count) bytes"
    case .string: "text"
    case .uid: "a reference"
    case .array: "an array"
    case .dictionary: "a dictionary"
    case .set: "a set"
    }
  }
}
