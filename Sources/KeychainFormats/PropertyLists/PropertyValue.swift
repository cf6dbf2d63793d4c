/// A value of a property list, in any of the three encodings this project reads: Apple's DER, binary plist, keyed archive.
///
/// DER knows no `real`, no `uid` and no `unsignedInteger`; a binary plist knows no `null` inside items. The encoders
/// throw `FormatError` for a value they have no form for.
public enum PropertyValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case integer(Int64)
  /// Only for values above `Int64.max`; smaller ones are `integer`.
  case unsignedInteger(UInt64)
  case real(Double)
  // A date is three words long; of its own it would make every value as long.
  indirect case date(KeychainDate)
  case data([UInt8])
  case string(String)
  /// A reference of a keyed archive (`CF$UID`).
  case uid(UInt64)
  case array([PropertyValue])
  case dictionary(PropertyDictionary)
  /// Elements are unordered; encoders sort them where their format asks for it.
  case set([PropertyValue])
}

extension PropertyValue {
  public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
  public var dataValue: [UInt8]? { if case .data(let value) = self { value } else { nil } }
  public var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }
  public var booleanValue: Bool? { if case .boolean(let value) = self { value } else { nil } }
  public var dateValue: KeychainDate? { if case .date(let value) = self { value } else { nil } }
  public var arrayValue: [PropertyValue]? { if case .array(let value) = self { value } else { nil } }
  public var dictionaryValue: PropertyDictionary? { if case .dictionary(let value) = self { value } else { nil } }
}

/// The pairs of a dictionary in the order in which they were read or added.
///
/// Keys may be of any type in DER; where one occurs twice the first wins, as in Apple's decoder.
public struct PropertyDictionary: Sendable, Hashable {
  public struct Entry: Sendable, Hashable {
    public var key: PropertyValue
    public var value: PropertyValue

    public init(key: PropertyValue, value: PropertyValue) {
      self.key = key
      self.value = value
    }
  }

  public var entries: [Entry]

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
  public init(dictionaryLiteral elements: (String, PropertyValue)...) {
    self.init(elements.map { Entry(key: .string($0.0), value: $0.1) })
  }
}
