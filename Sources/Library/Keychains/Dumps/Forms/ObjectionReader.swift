import Basics
import KeychainFormats
import KeychainRules

/// Reads a JSON array of objects with an `item_class` (`.objection`).
enum ObjectionReader {
  private static let itemClass = "item_class"
  private static let accessible = "accessible_attribute"
  private static let accessControl = "access_control"
  private static let exactSecret = "dataHex"
  private static let rendering = "data"
  /// Whether a text is what objection writes in the place of a value that it could not turn into text: `NAME` stands for a
  /// class of Objective-C in the last one.
  ///
  /// Source: objection, `agent/src/ios/keychain.ts` and `agent/src/ios/lib/helpers.ts`.
  private static func standsForNothing(_ text: String) -> Bool {
    if text == "(Key data not displayed)" || text == "(failed to decode)" { return true }
    let (start, end) = ("(could not get string for class: ", ")")
    guard text.hasPrefix(start), text.hasSuffix(end) else { return false }
    return text.dropFirst(start.count).dropLast(end.count).utf8.allSatisfy { byte in
      byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "$")
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
  }

  private static let kinds: [String: ItemKind] = [
    "kSecClassGenericPassword": .genericPassword, "kSecClassInternetPassword": .internetPassword,
    "kSecClassCertificate": .certificate, "kSecClassKey": .key,
  ]
  private static let identity = "kSecClassIdentity"

  /// Whether an array has an object with a class of item.
  static func recognizes(_ root: JSONValue) -> Bool {
    root.arrayValue?.contains { $0[itemClass]?.stringValue != nil } ?? false
  }

  /// - Throws: `.dumpOverLimit` for more entries than a dump may have.
  static func read(_ root: JSONValue, _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    var collector = DumpCollector(.objection, acceptingAtMost: limit)
    for entry in root.arrayValue ?? [] {
      let position = try collector.nextEntry()
      guard let members = entry.fields else {
        collector.skip(.notAnItem)
        continue
      }
      guard let named = entry[itemClass]?.stringValue, !named.isEmpty else {
        collector.skip(.noTable)
        continue
      }
      guard let kind = kinds[named] else {
        collector.skip(named == identity ? .identity : .unknownTable, table: named == identity ? nil : named)
        continue
      }
      collector.take(item(of: members, at: position, as: kind))
    }
    return collector.dump()
  }

  private static func item(of members: [(String, JSONValue)], at position: Int, as kind: ItemKind) -> DumpedItem {
    var entry = PropertyDictionary()
    var unusable: [AttributeCode] = []
    var (secret, rendered): (JSONValue?, JSONValue?) = (nil, nil)
    for (name, value) in members {
      switch name {
      case exactSecret: secret = value
      case rendering: rendered = value
      case accessible:
        guard let text = value.stringValue, !text.isEmpty else { continue }
        guard !standsForNothing(text) else {
          unusable.append(.protection)
          continue
        }
        entry[AttributeCode.protection.rawValue] = .string(ProtectionClass(named: text)?.rawValue ?? text)
      default:
        guard let code = ObjectionAttributes.codes[name], AttributeTable.definition(of: code, in: kind) != nil else {
          continue
        }
        switch value {
        case .string(let text) where standsForNothing(text): unusable.append(code)
        case .string(let text): if !text.isEmpty { entry[code.rawValue] = .string(text) }
        case .integer(let number): entry[code.rawValue] = .integer(number)
        case .boolean(let flag): entry[code.rawValue] = .boolean(flag)
        case .null: continue
        case .number, .sensitive, .array, .elements, .object: unusable.append(code)
        }
      }
    }
    var reading = DumpValues.read(entry, as: kind, .typed)
    // What the constraints are is told in words alone.
    let control = members.first { $0.0 == accessControl }?.1.stringValue ?? ""
    if !control.isEmpty, control != "None", !standsForNothing(control) {
      reading.item[.accessControl] = .string(control)
    }
    let (content, isRendered) = content(reading.item, secret: secret, rendered: rendered)
    return DumpedItem(
      entry: position, kind: kind, content: content, unusableAttributes: (unusable + reading.unusable).sorted(),
      isSecretRendered: isRendered)
  }

  /// The exact bytes where they are there, else the rendering of them.
  private static func content(
    _ item: KeychainItem, secret: JSONValue?, rendered: JSONValue?
  ) -> (DumpedItem.Content, isRendered: Bool) {
    var item = item
    if let text = secret?.stringValue, !text.isEmpty, !standsForNothing(text) {
      guard let bytes = HexadecimalDigits.bytes(of: text) else {
        return (.attributesOnly(item, DumpFault(.malformed, "\(exactSecret) is not hexadecimal text")), false)
      }
      item.secret = SensitiveBytes(copying: bytes)
      return (.open(item), false)
    }
    guard let text = rendered?.stringValue, !text.isEmpty, !standsForNothing(text) else {
      return (.attributesOnly(item, nil), false)
    }
    item.secret = SensitiveBytes(copying: Array(text.utf8))
    return (.open(item), true)
  }
}

/// Hexadecimal digits, two for each byte.
enum HexadecimalDigits {
  /// The bytes that digits of either case stand for; `nil` for another text.
  static func bytes(of text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    for place in stride(from: 0, to: digits.count, by: 2) {
      guard let high = value(of: digits[place]), let low = value(of: digits[place + 1]) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - 48
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - 87
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - 55
    default: nil
    }
  }
}
