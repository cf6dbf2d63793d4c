import Basics
import KeychainFormats
import KeychainRules

/// Turns the values of a dump's entry into those of an item, with the kinds that the attributes have.
///
/// Which kind an attribute has, the attribute table says; a value of another kind is converted where nothing is guessed.
enum DumpValues {
  /// What a dump's values have kept of their types.
  enum Style {
    /// Values are of the kinds they had; where text stands for data, it is its UTF-8.
    case typed
    /// Every value is data, text sometimes with a NUL at its end.
    case untyped
    /// Bytes stand as base64 text.
    case base64Text
  }

  /// An item as far as its values could be used.
  struct Reading {
    var item: KeychainItem
    /// Codes whose values the attribute cannot have.
    var unusable: [AttributeCode] = []
    /// Whether a secret stands there and is not of a form that can be read.
    var isSecretUnusable = false
    var repeatedKeyCount = 0
  }

  /// What stands beside the attributes of an item, and is none.
  private static let besides: Set<String> = [
    "table", "rowID", "rowid", "TamperCheck", "data", "sha1", "v_pk", "class", "keyclass", "v_PersistentRef",
  ]

  /// Reads an entry's attributes and secrets.
  static func read(_ entry: PropertyDictionary, as kind: ItemKind, _ style: Style) -> Reading {
    var reading = Reading(item: KeychainItem(kind: kind))
    var seen: Set<String> = []
    for pair in entry.entries {
      guard let key = pair.key.stringValue else { continue }
      guard seen.insert(key).inserted else {
        reading.repeatedKeyCount += 1
        continue
      }
      guard !besides.contains(key) else { continue }
      if key == "SecAccessControl" || key == AttributeCode.accessControl.rawValue {
        takeAccessControl(pair.value, into: &reading)
      } else {
        take(pair.value, AttributeCode(rawValue: key), style, into: &reading)
      }
    }
    reading.unusable.sort()
    return reading
  }

  private static func take(
    _ value: PropertyValue, _ code: AttributeCode, _ style: Style, into reading: inout Reading
  ) {
    if case .null = value { return }
    guard let definition = AttributeTable.definition(of: code, in: reading.item.kind) else {
      return takeUnknown(value, code, into: &reading)
    }
    if definition.flags.contains(.returnedAsData) {
      if let secret = secret(value, style) {
        reading.item.secrets[code] = secret
      } else {
        reading.unusable.append(code)
        if code == .valueData { reading.isSecretUnusable = true }
      }
    } else if let converted = convert(value, for: definition.kind, style) {
      reading.item[code] = converted
    } else {
      reading.unusable.append(code)
    }
  }

  /// An attribute that no table knows is kept where an item can hold its value.
  private static func takeUnknown(_ value: PropertyValue, _ code: AttributeCode, into reading: inout Reading) {
    switch value {
    case .boolean, .integer, .date, .data, .string: reading.item[code] = value
    case .null, .unsignedInteger, .real, .uid, .array, .dictionary, .set: reading.unusable.append(code)
    }
  }

  /// Bytes as they are, a NUL included; of text what the style says.
  private static func secret(_ value: PropertyValue, _ style: Style) -> SensitiveBytes? {
    switch (value, style) {
    case (.data(let bytes), _): SensitiveBytes(copying: bytes)
    case (.string(let text), .base64Text): Base64Digits.bytes(of: text.utf8).map { SensitiveBytes(copying: $0) }
    case (.string(let text), .typed), (.string(let text), .untyped): SensitiveBytes(copying: Array(text.utf8))
    default: nil
    }
  }

  private static func convert(_ value: PropertyValue, for kind: AttributeKind, _ style: Style) -> PropertyValue? {
    switch kind {
    case .blob: style == .untyped ? text(of: value) ?? value : AttributeConversion.convert(value, for: kind)
    case .number, .sync, .tomb, .useTombstone, .rowID, .string, .access:
      AttributeConversion.convert(text(of: value) ?? value, for: kind)
    case .creationDate, .modificationDate, .date:
      AttributeConversion.convert(value, for: kind)
        ?? text(of: value)?.stringValue.flatMap(DumpDate.date).map(PropertyValue.date)
    case .data, .encryptedData, .sha1, .primaryKey, .uuid, .accessControl:
      AttributeConversion.convert(value, for: kind)
    }
  }

  /// Text as it is, data where it is text: UTF-8 without control characters, once a NUL at its end is taken off.
  private static func text(of value: PropertyValue) -> PropertyValue? {
    switch value {
    case .string: return value
    case .data(var bytes):
      if bytes.last == 0 { bytes.removeLast() }
      guard let text = String(validating: bytes, as: UTF8.self),
        !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
      else { return nil }
      return .string(text)
    default: return nil
    }
  }

  // MARK: Access control

  /// The constraints of a `SecAccessControl`; one that has none leaves no trace.
  ///
  /// Source: Apple `SecAccessControl.m`.
  private static func takeAccessControl(_ value: PropertyValue, into reading: inout Reading) {
    let control: PropertyDictionary?
    switch value {
    case .data(let bytes): control = (try? DERPropertyList.decode(bytes))?.dictionaryValue
    case .dictionary(let dictionary): control = dictionary
    case .null: return
    default: control = nil
    }
    guard let control else {
      reading.unusable.append(.accessControl)
      return
    }
    if reading.item[.protection] == nil, let named = control["prot"]?.stringValue {
      reading.item[.protection] = .string(named)
    }
    guard let constraints = control["acl"]?.dictionaryValue else { return }
    if constraints.entries.contains(where: { $0.key.stringValue != "dacl" }) {
      reading.item[.accessControl] = .dictionary(constraints)
    }
  }
}

/// The texts that dumps have for dates.
enum DumpDate {
  private static let separators: [Int: [UInt8]] = [
    4: [UInt8(ascii: "-")], 7: [UInt8(ascii: "-")], 10: [UInt8(ascii: " "), UInt8(ascii: "T")],
    13: [UInt8(ascii: ":")], 16: [UInt8(ascii: ":")],
  ]
  /// The most bytes of a date's text: with a fraction of as many digits as any double has.
  private static let maximumByteCount = 64

  /// The date that a text says: `2026-11-20 18:04:00 +0000`, `2026-11-20T18:04:00Z` or GeneralizedTime.
  ///
  /// - Returns: `nil` for every other text, and for a moment that does not exist.
  static func date(of text: String) -> KeychainDate? {
    guard text.utf8.count <= maximumByteCount else { return nil }
    if let date = try? DERDate.parse(text) { return date }
    let bytes = Array(text.utf8)
    guard bytes.count > 19, separators.allSatisfy({ $1.contains(bytes[$0]) }) else { return nil }
    var rest = bytes[19...]
    if let space = rest.firstIndex(of: UInt8(ascii: " ")) { rest.remove(at: space) }
    let digits = bytes.prefix(19).indices.filter { separators[$0] == nil }.map { bytes[$0] }
    guard let compact = String(validating: digits + rest, as: UTF8.self), let date = try? DERDate.parse(compact)
    else { return nil }
    return KeychainDate(secondsSinceReferenceDate: date.secondsSinceReferenceDate)
  }
}
