public import Basics

/// A value of a property list in any of the supported encodings: Apple's DER, binary property list, keyed archive.
///
/// DER has no `real`, `uid` and `unsignedInteger`; a binary property list of an item has no `null`. The encoders throw
/// an error for a value that they cannot represent.
public enum PropertyValue: Sendable, Hashable {
  /// An explicit null in DER; in an item's dictionary it means that the entry is absent.
  case null
  /// True or false.
  case boolean(Bool)
  /// A whole number of 64 bits, signed.
  case integer(Int64)
  /// An integer above `Int64.max`; smaller ones are `integer`.
  case unsignedInteger(UInt64)
  /// A floating-point number in a binary property list; DER cannot represent it.
  case real(Double)
  // Stored indirectly, because a date of three words would make every value as large.
  /// A date, with the text that it was decoded from.
  indirect case date(KeychainDate)
  /// Bytes.
  case data([UInt8])
  /// Text.
  case string(String)
  /// A reference of a keyed archive (`CF$UID`).
  case uid(UInt64)
  /// Values in order.
  case array([PropertyValue])
  /// Keys and values in their original order.
  case dictionary(PropertyDictionary)
  /// Values without order; encoders sort them if their format requires it.
  case set([PropertyValue])
}

extension PropertyValue {
  /// The text, or `nil` if the value is not a string.
  public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  /// The bytes, or `nil` if the value is not data.
  package var dataValue: [UInt8]? { if case .data(let value) = self { value } else { nil } }
  /// The number, or `nil` if the value is not an integer that fits into 64 signed bits.
  package var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The boolean, or `nil` if the value is not a boolean; a number is not converted.
  package var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  /// The date, or `nil` if the value is not a date.
  package var dateValue: KeychainDate? { if case .date(let value) = self { value } else { nil } }
  /// The elements, or `nil` if the value is not an array; a set is not converted.
  package var arrayValue: [PropertyValue]? { if case .array(let value) = self { value } else { nil } }
  /// The entries, or `nil` if the value is not a dictionary.
  package var dictionaryValue: PropertyDictionary? { if case .dictionary(let value) = self { value } else { nil } }
}

/// The entries of a dictionary in the order in which they were read or added.
///
/// In DER, keys may be of any type. If a key occurs twice, the first entry counts, as in Apple's decoder.
public struct PropertyDictionary: Sendable, Hashable {
  /// A key with its value. DER allows keys of any type; a binary property list allows only strings.
  package struct Entry: Sendable, Hashable {
    /// The key, which is a string in everything that a device writes.
    package var key: PropertyValue
    /// The value of the key.
    package var value: PropertyValue

    /// Creates an entry from a key and its value.
    package init(key: PropertyValue, value: PropertyValue) {
      self.key = key
      self.value = value
    }
  }

  /// All entries in their original order, including repeated keys.
  package var entries: [Entry]

  /// Creates a dictionary with entries in any order; encoders sort them if their format requires it.
  package init(_ entries: [Entry] = []) { self.entries = entries }

  /// The value of the first entry with this key, or `nil` if there is none. Setting `nil` removes every entry with the
  /// key.
  public subscript(key: String) -> PropertyValue? {
    get { entries.first { $0.key.stringValue == key }?.value }
    set {
      if let newValue {
        if let index = entries.firstIndex(where: { $0.key.stringValue == key }) {
          entries[index].value = newValue
        } else {
          entries.append(Entry(key: .string(key), value: newValue))
        }
      } else {
        entries.removeAll { $0.key.stringValue == key }
      }
    }
  }
}

extension PropertyDictionary: ExpressibleByDictionaryLiteral {
  /// Creates a dictionary with string keys from a literal; repeated keys are preserved.
  public init(dictionaryLiteral elements: (String, PropertyValue)...) {
    self.init(elements.map { Entry(key: .string($0.0), value: $0.1) })
  }
}
