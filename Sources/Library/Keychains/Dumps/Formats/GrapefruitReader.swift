import Basics
import KeychainFormats
import KeychainRules

/// A reader for the JSON array of keychain items that grapefruit's agent returns (`.grapefruit`).
///
/// `raw` is the secret in Base64. `data` only describes the secret and may omit bytes. It is never used as the
/// secret. In other members, binary values appear as Foundation prints them (`DataDescription`).
///
/// Source: ChiChou/grapefruit, `agent/src/fruity/modules/keychain.ts` (`list`), `bridge/dictionary.ts` (`valueOf`).
enum GrapefruitReader {
  /// The member with the secret in Base64.
  private static let secretMember = "raw"
  /// The member that only describes the secret.
  private static let secretDescriptionMember = "data"
  private static let accessControlMember = "acl"
  /// The protection class: `prot` in newer versions, `accessibleAttribute` in older ones.
  private static let protectionMembers = ["prot", "accessibleAttribute"]

  /// The attributes by their names in the output.
  static let codes: [String: AttributeCode] = [
    "creation": .creationDate, "modification": .modificationDate, "description": .itemDescription, "comment": .comment,
    "creator": .creator, "type": .type, "scriptCode": .scriptCode, "alias": .alias, "invisible": .isInvisible,
    "negative": .isNegative, "customIcon": .hasCustomIcon, "entitlementGroup": .accessGroup, "generic": .generic,
    "service": .service, "account": .account, "label": .label,
  ]

  private static let arrayReader = ClassTaggedObjectReader(
    format: .grapefruit, classMember: "clazz",
    kinds: [
      "generic": .genericPassword, "internet": .internetPassword, "cert": .certificate, "key": .key,
      "kSecClassGenericPassword": .genericPassword, "kSecClassInternetPassword": .internetPassword,
      "kSecClassCertificate": .certificate, "kSecClassKey": .key,
    ],
    identityClassNames: ["id", "kSecClassIdentity"], codes: codes)

  /// Returns whether a value is an array that contains an object with an item class.
  static func recognizes(_ root: JSONValue) -> Bool { arrayReader.recognizes(root) }

  /// Reads all entries of an array.
  ///
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  static func read(_ root: JSONValue, _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    try arrayReader.read(root, limit) { item(of: $0, at: $1, as: $2) }
  }

  private static func item(
    of members: [(String, JSONValue)], at position: Int, as kind: ItemKind
  ) -> DumpedItem {
    var (attributes, unusableAttributes) = arrayReader.attributes(in: members, of: kind, textValue: propertyValue)
    let values = Dictionary(members, uniquingKeysWith: { _, last in last })
    if let name = protectionMembers.compactMap({ values[$0]?.stringValue }).first(where: { !$0.isEmpty }) {
      attributes[AttributeCode.protection.rawValue] = .string(ProtectionClass(named: name)?.rawValue ?? name)
    }
    var reading = DumpValues.read(attributes, as: kind, style: .typed)
    unusableAttributes += reading.unusableAttributes
    // The agent describes the constraints only as text.
    let control = values[accessControlMember]?.stringValue ?? ""
    if !control.isEmpty, control != "default" { reading.item[.accessControl] = .string(control) }
    return DumpedItem(
      entryPosition: position, kind: kind, content: content(reading.item, values),
      unusableAttributes: unusableAttributes.sorted())
  }

  /// Returns the value for a text, or `nil` if it cannot be used.
  private static func propertyValue(ofText text: String, for code: AttributeCode) -> PropertyValue? {
    // The agent always writes the account as text, so it writes one of these words for an absent account.
    if code == .account, text == "null" || text == "undefined" { return nil }
    return switch DataDescription.read(text) {
    case .bytes(let bytes): .data(bytes)
    case .incomplete: nil
    case .other: .string(text)
    }
  }

  private static func content(_ item: KeychainItem, _ values: [String: JSONValue]) -> DumpedItem.Content {
    var item = item
    switch values[secretMember] {
    case .string(let text)?:
      guard let secret = Base64Digits.sensitiveBytes(of: text.utf8) else {
        return .attributesOnly(item, DumpFault(.malformed, "\(secretMember) is not Base64 text"))
      }
      guard !text.isEmpty else { return .attributesOnly(item, nil) }
      item.secret = secret
      return .open(item)
    case .null?, nil:
      let described = values[secretDescriptionMember]?.stringValue ?? ""
      return .attributesOnly(
        item, described.isEmpty ? nil : DumpFault(.malformed, "\(secretDescriptionMember) only describes the secret"))
    case .boolean?, .integer?, .number?, .sensitive?, .array?, .elements?, .object?:
      return .attributesOnly(item, DumpFault(.malformed, "\(secretMember) is not text"))
    }
  }
}
