import Basics
import KeychainFormats
import KeychainRules

/// A reader for the JSON array of keychain items that grapefruit's agent returns (`.grapefruit`).
///
/// `raw` is the secret in Base64. `data` is only its description, which may omit bytes, and is never used. Other data
/// appears as the description that Foundation prints of it.
///
/// Source: ChiChou/grapefruit, `agent/src/fruity/modules/keychain.ts` (`list`), `bridge/dictionary.ts` (`valueOf`).
enum GrapefruitReader {
  /// The names of members.
  private static let secretMember = "raw"
  private static let secretDescriptionMember = "data"
  private static let accessControlMember = "acl"
  /// The protection class: `prot` in newer versions, `accessibleAttribute` in older ones.
  private static let protectionMembers = ["prot", "accessibleAttribute"]

  private static let arrayReader = ClassTaggedObjectReader(
    format: .grapefruit, classMember: "clazz",
    kinds: [
      "generic": .genericPassword, "internet": .internetPassword, "cert": .certificate, "key": .key,
      "kSecClassGenericPassword": .genericPassword, "kSecClassInternetPassword": .internetPassword,
      "kSecClassCertificate": .certificate, "kSecClassKey": .key,
    ],
    identityClassNames: ["id", "kSecClassIdentity"])

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
    var (attributes, unusable) = attributes(in: members, of: kind)
    let values = Dictionary(members, uniquingKeysWith: { _, last in last })
    if let name = protectionMembers.compactMap({ values[$0]?.stringValue }).first(where: { !$0.isEmpty }) {
      attributes[AttributeCode.protection.rawValue] = .string(ProtectionClass(named: name)?.rawValue ?? name)
    }
    var reading = DumpValues.read(attributes, as: kind, .typed)
    unusable += reading.unusable
    // The agent describes the constraints only as text.
    let control = values[accessControlMember]?.stringValue ?? ""
    if !control.isEmpty, control != "default" { reading.item[.accessControl] = .string(control) }
    return DumpedItem(
      entry: position, kind: kind, content: content(reading.item, values),
      unusableAttributes: unusable.sorted())
  }

  /// Returns the attributes of an item, and the codes of those whose values cannot be used.
  private static func attributes(
    in members: [(String, JSONValue)], of kind: ItemKind
  ) -> (attributes: PropertyDictionary, unusable: [AttributeCode]) {
    var attributes = PropertyDictionary()
    var unusable: [AttributeCode] = []
    for (name, value) in members {
      guard let code = GrapefruitAttributes.codes[name], AttributeTable.definition(of: code, in: kind) != nil else {
        continue
      }
      switch value {
      // The agent always writes the account as text, so it writes one of these words for an absent account.
      case .string("null") where code == .account, .string("undefined") where code == .account: unusable.append(code)
      case .string(let text):
        switch DataDescription.read(text) {
        case .bytes(let bytes): attributes[code.rawValue] = .data(bytes)
        case .incomplete: unusable.append(code)
        case .other: if !text.isEmpty { attributes[code.rawValue] = .string(text) }
        }
      case .integer(let number): attributes[code.rawValue] = .integer(number)
      case .boolean(let flag): attributes[code.rawValue] = .boolean(flag)
      case .null: continue
      case .number, .sensitive, .array, .elements, .object: unusable.append(code)
      }
    }
    return (attributes, unusable)
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
