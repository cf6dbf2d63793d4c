public import Basics

/// A value of a property list, in any of the three encodings this project reads: Apple's DER, binary plist, keyed archive.
///
/// DER knows no `real`, no `uid` and no `unsignedInteger`; a binary plist knows no `null` inside items. The encoders
/// throw `FormatError` for a value they have no form for.
public enum PropertyValue: Sendable, Hashable {
  /// No value, where DER says so; a dictionary of an item treats it as an absent entry.
  case null
  /// True or false.
  case boolean(Bool)
  /// A whole number of 64 bits, signed.
  case integer(Int64)
  /// Only for values above `Int64.max`; smaller ones are `integer`.
  case unsignedInteger(UInt64)
  /// A floating-point number of a binary property list; DER has no form for it.
  case real(Double)
  // A date is three words long; of its own it would make every value as long.
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
  /// Keys and values; the order is kept as it was read.
  case dictionary(PropertyDictionary)
  /// Elements are unordered; encoders sort them where their format asks for it.
  case set([PropertyValue])
}

extension PropertyValue {
  /// The text of a string; `nil` for every other value.
  public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  /// The bytes of data; `nil` for every other value.
  public var dataValue: [UInt8]? { if case .data(let value) = self { value } else { nil } }
  /// The number of an integer that 64 signed bits hold; `nil` for every other value.
  public var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The value of a boolean; `nil` for every other value, a number as well.
  public var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  /// The date of a date; `nil` for every other value.
  public var dateValue: KeychainDate? { if case .date(let value) = self { value } else { nil } }
  /// The elements of an array; `nil` for every other value, a set as well.
  public var arrayValue: [PropertyValue]? { if case .array(let value) = self { value } else { nil } }
  /// The entries of a dictionary; `nil` for every other value.
  public var dictionaryValue: PropertyDictionary? { if case .dictionary(let value) = self { value } else { nil } }
}

/// The pairs of a dictionary in the order in which they were read or added.
///
/// Keys may be of any type in DER; where one occurs twice the first wins, as in Apple's decoder.
public struct PropertyDictionary: Sendable, Hashable {
  /// One key with its value. DER allows keys of any type; a binary property list strings alone.
  public struct Entry: Sendable, Hashable {
    /// The key, a string in everything that a device writes.
    public var key: PropertyValue
    /// The value under the key.
    public var value: PropertyValue

    /// Creates an entry of a key and its value.
    public init(key: PropertyValue, value: PropertyValue) {
      self.key = key
      self.value = value
    }
  }

  /// Every entry as it was read, a repeated key among them.
  public var entries: [Entry]

  /// Creates a dictionary of entries in an order of one's own; encoders sort where their format asks for it.
  public init(_ entries: [Entry] = []) { self.entries = entries }

  /// The value of the first entry with this text as its key. Setting `nil` removes every entry with the key.
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
  /// Creates a dictionary with string keys from a literal; a repeated key is kept as it stands.
  public init(dictionaryLiteral elements: (String, PropertyValue)...) {
    self.init(elements.map { Entry(key: .string($0.0), value: $0.1) })
  }
}
