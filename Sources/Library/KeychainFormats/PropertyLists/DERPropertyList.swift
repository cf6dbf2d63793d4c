import Basics

/// Apple's DER form of a property list, which decrypted keychain items and the keychain's digests use.
///
/// Ordinary DER with definite lengths in their shortest form. A dictionary is a SET of key and value SEQUENCEs, sorted
/// by their encoded bytes; `true` is 01; a set has the private tag D1. Real numbers exist only where they are whole.
///
/// Source: Apple Security `der_plist.c` and its parts, with the regression tests `su-10` to `su-17`.
public enum DERPropertyList {
  /// The most bytes that are read: 72 MiB, as of a sealed item.
  public static let maximumByteCount = 72 << 20
  /// The most levels of dictionaries, arrays and sets inside each other.
  public static let maximumDepth = 64
  /// How many values one list may hold, containers and keys among them.
  public static let maximumValueCount = 100_000

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
    /// Private class, number 17, and primitive although it holds elements.
    static let set: UInt8 = 0xD1
  }

  /// What to do with a date whose text is malformed. A well-formed text with a field out of range always fails.
  enum DateRepair {
    case refuse
    /// Apple's repair for items: 2001-03-24T00:00:00Z, so that a bad date does not cost the item.
    case substitute
  }

  /// Reads one value that takes up all of the bytes.
  ///
  /// - Throws: `.malformed`, `.truncated`, `.trailingBytes`, or `.overLimit` for one of the limits above.
  public static func decode(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in try decode(buffer)
    }
  }

  /// Decodes one value that takes up all of the bytes, without a copy of them.
  ///
  /// - Throws: `.truncated`, `.malformed`, `.overLimit` or `.trailingBytes`, with the offset.
  public static func decode(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue {
    var decoder = try DERDecoder(bytes, format: .der, dates: .refuse)
    return try decoder.onlyValue()
  }

  /// Writes a value, byte for byte as Apple's encoder does.
  ///
  /// - Throws: `.unencodable` for a value without a form, `.overLimit` for more than `maximumDepth` levels.
  public static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    try DEREncoder(keepsDateText: true).encode(value)
  }
}
