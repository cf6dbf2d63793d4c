import Basics
import KeychainFormats
import KeychainRules

/// Converts the values of a dump's entry to the types of item attributes.
///
/// The attribute table determines the type of each attribute. A value of another type is converted only if the
/// conversion is unambiguous.
enum DumpValues {
  /// The representation of values in a dump.
  enum Style {
    /// Values have their original types. A text instead of data is converted to its UTF-8 bytes.
    case typed
    /// Every value is data. Text may end with a NUL.
    case untyped
    /// Data is Base64 text.
    case base64Text
  }

  /// The usable values of an entry.
  struct Reading {
    var item: KeychainItem
    /// Attributes whose values have a type that the attribute cannot have.
    var unusableAttributes: [AttributeCode] = []
    /// Whether the entry has a secret that cannot be used.
    var isSecretUnusable = false
    var repeatedKeyCount = 0
  }

  /// Keys of an entry that are not attributes of the item.
  private static let nonAttributeKeys: Set<String> = [
    "table", "rowID", "rowid", "TamperCheck", "data", "sha1", "v_pk", "class", "keyclass", "v_PersistentRef",
  ]

  /// Reads an entry's attributes and secrets.
  static func read(_ entry: PropertyDictionary, as kind: ItemKind, style: Style) -> Reading {
    var reading = Reading(item: KeychainItem(kind: kind))
    var readKeys: Set<String> = []
    for pair in entry.entries {
      guard let key = pair.key.stringValue else { continue }
      guard readKeys.insert(key).inserted else {
        reading.repeatedKeyCount += 1
        continue
      }
      guard !nonAttributeKeys.contains(key) else { continue }
      if key == "SecAccessControl" || key == AttributeCode.accessControl.rawValue {
        addAccessControl(pair.value, into: &reading)
      } else {
        add(pair.value, AttributeCode(rawValue: key), style, into: &reading)
      }
    }
    reading.unusableAttributes.sort()
    return reading
  }

  private static func add(
    _ value: PropertyValue, _ code: AttributeCode, _ style: Style, into reading: inout Reading
  ) {
    if case .null = value { return }
    guard let definition = AttributeTable.definition(of: code, in: reading.item.kind) else {
      return addUnknown(value, code, into: &reading)
    }
    if definition.flags.contains(.returnedAsData) {
      if let secret = secret(value, style) {
        reading.item.secrets[code] = secret
      } else {
        reading.unusableAttributes.append(code)
        if code == .valueData { reading.isSecretUnusable = true }
      }
    } else if let converted = convert(value, for: definition.kind, style) {
      reading.item[code] = converted
    } else {
      reading.unusableAttributes.append(code)
    }
  }

  /// Adds an attribute that no table defines, if an item can contain its value.
  private static func addUnknown(_ value: PropertyValue, _ code: AttributeCode, into reading: inout Reading) {
    switch value {
    case .boolean, .integer, .date, .data, .string: reading.item[code] = value
    case .null, .unsignedInteger, .real, .uid, .array, .dictionary, .set: reading.unusableAttributes.append(code)
    }
  }

  /// Returns the bytes of a secret. Data is used as it is, including a NUL at its end.
  private static func secret(_ value: PropertyValue, _ style: Style) -> SensitiveBytes? {
    switch (value, style) {
    case (.data(let bytes), _): SensitiveBytes(copying: bytes)
    case (.string(let text), .base64Text): Base64Digits.sensitiveBytes(of: text.utf8)
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

  /// Returns text, or data that is text: UTF-8 without control characters, except for a NUL at its end, which is
  /// removed.
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

  /// Adds the constraints of a `SecAccessControl`, if it has any.
  ///
  /// Source: Apple `SecAccessControl.m`.
  private static func addAccessControl(_ value: PropertyValue, into reading: inout Reading) {
    let control: PropertyDictionary?
    switch value {
    case .data(let bytes): control = (try? DERPropertyList.decode(bytes))?.dictionaryValue
    case .dictionary(let dictionary): control = dictionary
    case .null: return
    default: control = nil
    }
    guard let control else {
      reading.unusableAttributes.append(.accessControl)
      return
    }
    if reading.item[.protection] == nil, let code = control[ItemAccessControl.protectionKey]?.stringValue {
      reading.item[.protection] = .string(code)
    }
    guard let constraints = control[ItemAccessControl.constraintsKey]?.dictionaryValue else { return }
    if AccessOperation.hasEntry(in: constraints) {
      reading.item[.accessControl] = .dictionary(constraints)
    }
  }
}
