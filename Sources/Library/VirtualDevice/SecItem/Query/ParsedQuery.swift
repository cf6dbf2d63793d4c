import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// The four keychain calls. They accept different queries.
enum SecItemCall { case add, copyMatching, update, delete }

/// A parsed and validated query.
///
/// Source: Apple `SecDbQuery.c` (`query_applier` and the functions it calls).
struct ParsedQuery {
  struct ReturnTypes: OptionSet {
    let rawValue: UInt8
    static let data = ReturnTypes(rawValue: 1)
    static let attributes = ReturnTypes(rawValue: 2)
    static let reference = ReturnTypes(rawValue: 4)
    static let persistentReference = ReturnTypes(rawValue: 8)
  }

  enum Limit: Equatable {
    case one, all
    case atMost(Int)
  }

  /// Whether the call may ask the user to authenticate, must not ask, or skips items that require authentication.
  enum Interaction { case allowed, forbidden, skipped }

  let queryClass: QueryClass
  /// The converted attributes. A search compares all of them.
  var attributes: AttributeMap<PropertyValue> = [:]
  var secrets: AttributeMap<SensitiveBytes> = [:]
  var accessControl: AccessControl?
  var mentionsSynchronizable = false
  var returns: ReturnTypes = []
  var limit = Limit.one
  var matches = MatchConditions()
  var reference: QueryReference?
  /// `u_Tomb`: whether a deletion leaves a tombstone, regardless of the item.
  var usesTombstone: Bool?
  var interaction = Interaction.allowed
  var context: AuthenticationContext?
  var prompt: String?
  /// `u_TokenRawItems`: whether token items are returned with their stored bytes.
  var wantsRawTokenItems = false
  /// `toid`: the token's identifier for a new item on a token.
  var tokenObjectID: [UInt8]?

  init(_ queryClass: QueryClass) { self.queryClass = queryClass }

  var protection: ProtectionClass? { attributes[.protection]?.stringValue.flatMap(ProtectionClass.init(rawValue:)) }
  var isSynchronizable: Bool { attributes[.synchronizable] == .integer(1) }
  var accessGroup: String? { attributes[.accessGroup]?.stringValue }

  var kind: ItemKind? { if case .items(let kind) = queryClass { kind } else { nil } }
}

extension ParsedQuery {
  /// Parses a query. The keys are parsed in the order of their names, so that a query with several mistakes always
  /// gives the same error.
  ///
  /// - Throws: `.parameter`, `.noSuchClass`, `.noSuchAttribute`, `.missingEntitlement`.
  init(_ query: SecItemQuery, for call: SecItemCall, now: KeychainDate) throws(SecItemError) {
    let query = try query.expandingReference(for: call)
    self.init(try Self.queryClass(of: query))
    for (key, value) in query.sorted(by: { $0.key < $1.key }) {
      try parse(key, value, for: call, now: now)
    }
    try checkProtection()
  }

  /// Returns the class that the query names, or the class of its persistent reference.
  private static func queryClass(of query: SecItemQuery) throws(SecItemError) -> QueryClass {
    let name =
      query["class"]?.stringValue ?? query["v_PersistentRef"]?.dataValue.flatMap(QueryReference.parse)?.className
    guard let name else { throw SecItemError(.parameter, "the query names no class") }
    guard let queryClass = QueryClass(name: name) else {
      throw SecItemError(.noSuchClass, "there is no such class")
    }
    return queryClass
  }

  /// Parses a key of the query: an attribute has four letters, and any other key begins with a letter for its group.
  private mutating func parse(
    _ key: String, _ value: SecItemValue, for call: SecItemCall, now: KeychainDate
  ) throws(SecItemError) {
    guard key.utf16.count != 4 else { return try parseAttribute(key, value, for: call) }
    switch key.first {
    case "c" where key == "class":
      guard value.stringValue != nil else { throw SecItemError(.noSuchClass, "the class is not text") }
    case "m" where key.utf16.count > 1: try parseMatch(key, value, now: now)
    case "r" where key.utf16.count > 1: try parseReturn(key, value)
    case "u" where key.utf16.count > 1: try parseUse(key, value, for: call)
    case "v" where key.utf16.count > 1: try parseValue(key, value)
    case "f" where key.utf16.count > 1: break
    default: throw SecItemError(.parameter, "a key of the query is not one of Apple's")
    }
  }

  private mutating func parseAttribute(
    _ key: String, _ value: SecItemValue, for call: SecItemCall
  ) throws(SecItemError) {
    // `nleg` (`kSecUseDataProtectionKeychain`) looks like an attribute, but chooses between the keychains of a Mac.
    if key == "nleg" { return }
    if key == "toid", call == .add { return try parseTokenObjectID(value) }
    let definition = try attributeDefinition(forKey: key)
    let code = definition.code
    if code == .synchronizable {
      mentionsSynchronizable = true
      // `kSecAttrSynchronizableAny` matches synchronized and local items, so nothing is compared.
      if value.stringValue == "syna" { return }
    }
    if definition.kind == .accessControl { return try parseAccessControl(value) }
    let converted = try AttributeConversion.converted(value, for: definition)
    guard definition.flags.contains(.returnedAsData) else {
      attributes[code] = converted
      return
    }
    guard call == .add, let bytes = converted.dataValue else {
      throw SecItemError(.parameter, "\(key) is a secret, and secrets cannot be searched for")
    }
    secrets[code] = SensitiveBytes(copying: bytes)
  }

  private mutating func parseTokenObjectID(_ value: SecItemValue) throws(SecItemError) {
    guard let objectID = value.dataValue else { throw SecItemError(.parameter, "toid is not data") }
    tokenObjectID = objectID
  }

  private mutating func parseAccessControl(_ value: SecItemValue) throws(SecItemError) {
    guard let control = value.accessControlValue else {
      throw SecItemError(.parameter, "accc is not an access control")
    }
    accessControl = control
  }

  private func attributeDefinition(forKey key: String) throws(SecItemError) -> AttributeDefinition {
    let code = AttributeCode(rawValue: key)
    guard code != .appClip else { throw SecItemError(.parameter, "only the keychain sets the App Clip flag") }
    guard let definition = queryClass.definition(of: code) else {
      throw SecItemError(.noSuchAttribute, "the class \(queryClass.name) has no such attribute")
    }
    return definition
  }

  private mutating func parseReturn(_ key: String, _ value: SecItemValue) throws(SecItemError) {
    let types: [String: ReturnTypes] = [
      "r_Data": .data, "r_Attributes": .attributes, "r_Ref": .reference, "r_PersistentRef": .persistentReference,
    ]
    guard let type = types[key] else { throw SecItemError(.parameter, "there is no such return key") }
    guard let isWanted = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
    if isWanted { returns.insert(type) }
  }

  private mutating func parseValue(_ key: String, _ value: SecItemValue) throws(SecItemError) {
    switch key {
    case "v_Data":
      guard let bytes = value.secretValue else { throw SecItemError(.parameter, "v_Data is not data") }
      secrets[.valueData] = bytes
    case "v_PersistentRef":
      guard let parsed = value.dataValue.flatMap(QueryReference.parse) else {
        throw SecItemError(.parameter, "v_PersistentRef is not a persistent reference")
      }
      guard parsed.className == queryClass.name else {
        throw SecItemError(.noSuchClass, "the persistent reference and the query have different classes")
      }
      reference = parsed.reference
    default: throw SecItemError(.parameter, "there is no such value key")
    }
  }

  /// Checks the protection class. A query can contain a class and an access control only if the access control adds
  /// nothing to that class.
  func checkProtection() throws(SecItemError) {
    if attributes[.protection] != nil, protection == nil {
      throw SecItemError(.parameter, "the protection class is not known")
    }
    guard let accessControl, let protection else { return }
    guard !accessControl.isConstrained, accessControl.protection == protection else {
      throw SecItemError(.parameter, "the query names a protection class and an access control that differs from it")
    }
  }
}

extension AttributeConversion {
  /// Converts a value of a call to the type of an attribute.
  ///
  /// - Throws: `.parameter`. The reason states types but not the value.
  static func converted(
    _ value: SecItemValue, for definition: AttributeDefinition
  ) throws(SecItemError) -> PropertyValue {
    let code = definition.code.rawValue
    switch definition.kind {
    case .encryptedData, .primaryKey, .rowID, .useTombstone:
      throw SecItemError(.parameter, "\(code) cannot be specified in a call")
    case .sha1:
      guard let digest = value.dataValue, digest.count == 20 else {
        throw SecItemError(.parameter, "\(code) accepts only data of 20 bytes")
      }
      return .data(digest)
    case .string:
      if case .uuid(let bytes) = value, let text = UUIDText.uppercase(bytes) { return .string(text) }
    case .creationDate, .modificationDate, .date, .blob, .data, .number, .access, .accessControl, .sync, .tomb, .uuid:
      break
    }
    guard let propertyValue = value.attributeValue else {
      throw SecItemError(.parameter, "\(code) does not accept a value of this type")
    }
    do throws(FormatError) {
      return normalizingName(try convert(propertyValue, for: definition), definition.code)
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }

  /// Returns an attribute's value. The name of an issuer is normalized, as in keychains. Source: Apple `SecItem.m`.
  private static func normalizingName(_ value: PropertyValue, _ code: AttributeCode) -> PropertyValue {
    guard code == .issuer, let name = value.dataValue.flatMap(CertificateAttributes.normalizedName) else {
      return value
    }
    return .data(name)
  }
}

extension ParsedQuery {
  /// Adds a use key, such as `u_AuthUI`.
  mutating func parseUse(_ key: String, _ value: SecItemValue, for call: SecItemCall) throws(SecItemError) {
    switch key {
    case "u_AuthUI":
      guard let choice = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      try parseInteraction(choice, for: call)
    case "u_NoAuthUI":
      guard let isForbidden = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
      if isForbidden { interaction = .forbidden }
    case "u_AuthCtx":
      guard case .context(let newContext) = value else {
        throw SecItemError(.parameter, "\(key) is not an authentication context")
      }
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential cannot be combined") }
      context = newContext
    case "u_CredRef":
      guard value.dataValue != nil else { throw SecItemError(.parameter, "\(key) is not data") }
      // The keys are parsed in the order of their names, so the context was parsed before.
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential cannot be combined") }
    case "u_OpPrompt":
      guard let text = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      prompt = text
    case "u_CallerName", "u_CertWithIssuers": break
    case "u_TokenRawItems": wantsRawTokenItems = value.booleanValue ?? false
    case "u_Tomb": usesTombstone = try Self.tombstoneUse(value)
    case "u_SystemKeychain", "u_SyncBubbleKeychain":
      throw SecItemError(.missingEntitlement, "an app has no entitlement for the system's keychains")
    case "u_ItemList": throw SecItemError(.parameter, "lists of items are not supported")
    default: throw SecItemError(.parameter, "there is no such use key")
    }
  }

  private mutating func parseInteraction(_ choice: String, for call: SecItemCall) throws(SecItemError) {
    switch choice {
    case "u_AuthUIF": interaction = .forbidden
    case "u_AuthUIS":
      guard call == .copyMatching else {
        throw SecItemError(.parameter, "only searches can skip items")
      }
      interaction = .skipped
    default: break
    }
  }

  private static func tombstoneUse(_ value: SecItemValue) throws(SecItemError) -> Bool {
    switch value {
    case .boolean(let flag): return flag
    case .number(let number): return number != 0
    case .string(let text): return Int(text).map { $0 != 0 } ?? false
    default: throw SecItemError(.parameter, "u_Tomb is neither a boolean nor a number")
    }
  }
}
