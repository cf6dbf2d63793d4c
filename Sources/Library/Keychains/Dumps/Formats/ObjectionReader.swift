import Basics
import KeychainFormats
import KeychainRules

/// A reader for the keychain dumps of the program objection (`.objection`): a JSON array of objects with an
/// `item_class`.
///
/// `dataHex` is the secret in hexadecimal digits, and `data` is its rendering as text.
enum ObjectionReader {
  private static let protectionMember = "accessible_attribute"
  private static let accessControlMember = "access_control"
  private static let secretMember = "dataHex"
  private static let renderingMember = "data"

  /// Returns whether a text is a placeholder that objection writes for a value that it cannot show as text. The last
  /// placeholder contains the name of an Objective-C class.
  ///
  /// Source: objection, `agent/src/ios/keychain.ts` and `agent/src/ios/lib/helpers.ts`.
  private static func isPlaceholder(_ text: String) -> Bool {
    if text == "(Key data not displayed)" || text == "(failed to decode)" { return true }
    let (start, end) = ("(could not get string for class: ", ")")
    guard text.hasPrefix(start), text.hasSuffix(end) else { return false }
    return text.dropFirst(start.count).dropLast(end.count).utf8.allSatisfy { byte in
      byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "$")
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
  }

  /// The attributes by their names in the output.
  static let codes: [String: AttributeCode] = [
    "account": .account, "service": .service, "server": .server, "label": .label, "entitlement_group": .accessGroup,
    "description": .itemDescription, "comment": .comment, "generic": .generic, "creator": .creator, "type": .type,
    "script_code": .scriptCode, "alias": .alias, "invisible": .isInvisible, "negative": .isNegative,
    "custom_icon": .hasCustomIcon, "protected": .legacyProtected, "create_date": .creationDate,
    "modification_date": .modificationDate, "security_domain": .securityDomain, "protocol": .protocolType,
    "authentication_type": .authenticationType, "port": .port, "path": .path,
  ]

  private static let arrayReader = ClassTaggedObjectReader(
    format: .objection, classMember: "item_class",
    kinds: [
      "kSecClassGenericPassword": .genericPassword, "kSecClassInternetPassword": .internetPassword,
      "kSecClassCertificate": .certificate, "kSecClassKey": .key,
    ],
    identityClassNames: ["kSecClassIdentity"], codes: codes)

  /// Returns whether a value is an array that contains an object with an item class.
  static func recognizes(_ root: JSONValue) -> Bool { arrayReader.recognizes(root) }

  /// Reads all entries of an array.
  ///
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  static func read(_ root: JSONValue, _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    try arrayReader.read(root, limit) { item(of: $0, at: $1, as: $2) }
  }

  private static func item(of members: [(String, JSONValue)], at position: Int, as kind: ItemKind) -> DumpedItem {
    var (attributes, unusableAttributes) = arrayReader.attributes(in: members, of: kind) { text, _ in
      isPlaceholder(text) ? nil : .string(text)
    }
    for (name, value) in members where name == protectionMember {
      guard let text = value.stringValue, !text.isEmpty else { continue }
      if isPlaceholder(text) {
        unusableAttributes.append(.protection)
      } else {
        attributes[AttributeCode.protection.rawValue] = .string(ProtectionClass(named: text)?.rawValue ?? text)
      }
    }
    var reading = DumpValues.read(attributes, as: kind, style: .typed)
    // objection describes the constraints only as text.
    let control = members.firstValue(named: accessControlMember)?.stringValue ?? ""
    if !control.isEmpty, control != "None", !isPlaceholder(control) {
      reading.item[.accessControl] = .string(control)
    }
    let (content, isRendered) = content(
      reading.item, secret: members.lastValue(named: secretMember), rendering: members.lastValue(named: renderingMember)
    )
    return DumpedItem(
      entryPosition: position, kind: kind, content: content,
      unusableAttributes: (unusableAttributes + reading.unusableAttributes).sorted(), isSecretRendered: isRendered)
  }

  /// Returns the item with its exact secret if the dump has it, otherwise with the secret's rendering as text.
  private static func content(
    _ item: KeychainItem, secret: JSONValue?, rendering: JSONValue?
  ) -> (content: DumpedItem.Content, isRendered: Bool) {
    var item = item
    if let text = secret?.stringValue, !text.isEmpty, !isPlaceholder(text) {
      guard let bytes = HexadecimalDigits.bytes(of: text.utf8) else {
        return (.attributesOnly(item, DumpFault(.malformed, "\(secretMember) is not hexadecimal text")), false)
      }
      item.secret = SensitiveBytes(copying: bytes)
      return (.open(item), false)
    }
    guard let text = rendering?.stringValue, !text.isEmpty, !isPlaceholder(text) else {
      return (.attributesOnly(item, nil), false)
    }
    item.secret = SensitiveBytes(copying: Array(text.utf8))
    return (.open(item), true)
  }
}
