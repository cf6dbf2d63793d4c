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
    try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in
      try decode(buffer)
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
