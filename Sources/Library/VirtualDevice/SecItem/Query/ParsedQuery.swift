import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// The four calls, where their queries differ.
enum SecItemCall { case add, copyMatching, update, delete }

/// What a query says, checked and converted.
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

  /// Whether the person may be asked.
  enum Interaction { case allowed, forbidden, skipped }

  let queryClass: QueryClass
  /// Converted. Everything here is compared in a search.
  var attributes: AttributeMap<PropertyValue> = [:]
  var secrets: AttributeMap<SensitiveBytes> = [:]
  var accessControl: AccessControl?
  var mentionsSynchronizable = false
  var returns: ReturnTypes = []
  var limit = Limit.one
  var matches = MatchConditions()
  var reference: QueryReference?
  /// `u_Tomb`: whether a deletion leaves a tombstone, whatever the item is.
  var usesTombstone: Bool?
  var interaction = Interaction.allowed
  var context: AuthenticationContext?
  var prompt: String?
  /// `u_TokenRawItems`: the bytes of token items as they are stored.
  var wantsRawTokenItems = false
  /// `toid`: what a token calls the object, where an item on a token is added.
  var tokenObjectID: [UInt8]?

  init(_ queryClass: QueryClass) { self.queryClass = queryClass }

  var protection: ProtectionClass? { attributes[.protection]?.stringValue.flatMap(ProtectionClass.init(rawValue:)) }
  var isSynchronizable: Bool { attributes[.synchronizable] == .integer(1) }
  var accessGroup: String? { attributes[.accessGroup]?.stringValue }

  var kind: ItemKind? { if case .items(let kind) = queryClass { kind } else { nil } }
}

/// The match keys of a query.
struct MatchConditions {
  /// How many keys with `m_` there were, `m_Limit` among them.
  var count = 0
  /// `m_HostOrSubdomainOfHost`.
  var host: String?
  /// `m_EmailAddressIfPresent`.
  var emailAddress: String?
  /// `m_Issuers`: DER names.
  var issuers: [[UInt8]]?
  var hasPolicy = false
  /// `m_ValidOnDate`.
  var validDate: KeychainDate?
  var isTrustedOnly = false

  /// Whether rows are looked at one by one, so that the limit cannot be left to the database.
  var filters: Bool { host != nil || emailAddress != nil || issuers != nil || validDate != nil || isTrustedOnly }
}

extension ParsedQuery {
  /// The match keys. Those that the daemon of an iPhone does not look at count and do nothing.
  mutating func takeMatch(_ key: String, _ value: SecItemValue, now: KeychainDate) throws(SecItemError) {
    matches.count += 1
    switch key {
    case "m_Limit": limit = try Self.limit(value)
    case "m_HostOrSubdomainOfHost":
      guard let host = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      matches.host = host
    case "m_EmailAddressIfPresent":
      guard let address = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      matches.emailAddress = address
    case "m_Issuers":
      guard let names = value.arrayValue else { return }
      let issuers = names.compactMap(\.dataValue)
      if !issuers.isEmpty { matches.issuers = issuers }
    case "m_Policy": matches.hasPolicy = true
    case "m_ValidOnDate":
      switch value {
      case .null: matches.validDate = now
      case .date(let date): matches.validDate = date
      default: throw SecItemError(.parameter, "\(key) is not a date or null")
      }
    case "m_TrustedOnly":
      guard let isTrustedOnly = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
      matches.isTrustedOnly = isTrustedOnly
    default: break
    }
  }

  private static func limit(_ value: SecItemValue) throws(SecItemError) -> Limit {
    switch value {
    case .string("m_LimitOne"), .number(1): return .one
    case .string("m_LimitAll"): return .all
    case .number(let count):
      guard let count = Int(exactly: count), count >= 0 else { break }
      return .atMost(count)
    default: break
    }
    throw SecItemError(.parameter, "m_Limit is neither a number nor one of its two constants")
  }

  mutating func takeUse(_ key: String, _ value: SecItemValue, for call: SecItemCall) throws(SecItemError) {
    switch key {
    case "u_AuthUI":
      guard let choice = value.stringValue else { throw SecItemError(.parameter, "\(key) is not text") }
      try takeInteraction(choice, for: call)
    case "u_NoAuthUI":
      guard let isForbidden = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
      if isForbidden { interaction = .forbidden }
    case "u_AuthCtx":
      guard case .context(let given) = value else {
        throw SecItemError(.parameter, "\(key) is not an authentication context")
      }
      guard context == nil else { throw SecItemError(.parameter, "a context and a credential cannot be combined") }
      context = given
    case "u_CredRef":
      guard value.dataValue != nil else { throw SecItemError(.parameter, "\(key) is not data") }
      // Keys are taken by name, so a context was taken before.
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

  private mutating func takeInteraction(_ choice: String, for call: SecItemCall) throws(SecItemError) {
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

extension ParsedQuery {
  /// Checks and converts a query. Keys are taken in the order of their names, so that of several mistakes the same one
  /// is always told.
  ///
  /// - Throws: `.parameter`, `.noSuchClass`, `.noSuchAttribute`, `.missingEntitlement`.
  init(_ query: SecItemQuery, for call: SecItemCall, now: KeychainDate) throws(SecItemError) {
    let query = try query.expandingReference(for: call)
    self.init(try Self.queryClass(of: query))
    for (key, value) in query.sorted(by: { $0.key < $1.key }) {
      try take(key, value, for: call, now: now)
    }
    try checkProtection()
  }

  /// The class by its name, or that of a persistent reference.
  private static func queryClass(of query: SecItemQuery) throws(SecItemError) -> QueryClass {
    let name =
      query["class"]?.stringValue ?? query["v_PersistentRef"]?.dataValue.flatMap(QueryReference.parse)?.className
    guard let name else { throw SecItemError(.parameter, "the query names no class") }
    guard let found = QueryClass(name: name) else { throw SecItemError(.noSuchClass, "there is no such class") }
    return found
  }

  private mutating func take(
    _ key: String, _ value: SecItemValue, for call: SecItemCall, now: KeychainDate
  ) throws(SecItemError) {
    guard key.utf16.count != 4 else { return try takeAttribute(key, value, for: call) }
    switch key.first {
    case "c" where key == "class":
      guard value.stringValue != nil else { throw SecItemError(.noSuchClass, "the class is not text") }
    case "m" where key.utf16.count > 1: try takeMatch(key, value, now: now)
    case "r" where key.utf16.count > 1: try takeReturn(key, value)
    case "u" where key.utf16.count > 1: try takeUse(key, value, for: call)
    case "v" where key.utf16.count > 1: try takeValue(key, value)
    case "f" where key.utf16.count > 1: break
    default: throw SecItemError(.parameter, "a key of the query is not one of Apple's")
    }
  }

  private mutating func takeAttribute(
    _ key: String, _ value: SecItemValue, for call: SecItemCall
  ) throws(SecItemError) {
    // kSecUseDataProtectionKeychain has the form of an attribute and chooses between keychains of a Mac.
    if key == "nleg" { return }
    if key == "toid", call == .add {
      guard let object = value.dataValue else { throw SecItemError(.parameter, "toid is not data") }
      tokenObjectID = object
      return
    }
    let code = AttributeCode(rawValue: key)
    guard code != .appClip else { throw SecItemError(.parameter, "only the keychain sets the App Clip flag") }
    guard let definition = queryClass.definition(of: code) else {
      throw SecItemError(.noSuchAttribute, "the class \(queryClass.name) has no such attribute")
    }
    if code == .synchronizable {
      mentionsSynchronizable = true
      if value.stringValue == "syna" { return }
    }
    if definition.kind == .accessControl {
      guard let control = value.accessControlValue else {
        throw SecItemError(
          .parameter,
          "accc is not an access control")
      }
      accessControl = control
      return
    }
    let converted = try AttributeConversion.converted(value, for: definition)
    if definition.flags.contains(.returnedAsData) {
      guard call == .add, let bytes = converted.dataValue else {
        throw SecItemError(.parameter, "\(key) is a secret, and secrets cannot be searched for")
      }
      secrets[code] = SensitiveBytes(copying: bytes)
    } else {
      attributes[code] = converted
    }
  }

  private mutating func takeReturn(_ key: String, _ value: SecItemValue) throws(SecItemError) {
    let types: [String: ReturnTypes] = [
      "r_Data": .data, "r_Attributes": .attributes, "r_Ref": .reference, "r_PersistentRef": .persistentReference,
    ]
    guard let type = types[key] else { throw SecItemError(.parameter, "there is no such return key") }
    guard let isWanted = value.booleanValue else { throw SecItemError(.parameter, "\(key) is not a boolean") }
    if isWanted { returns.insert(type) }
  }

  private mutating func takeValue(_ key: String, _ value: SecItemValue) throws(SecItemError) {
    switch key {
    case "v_Data":
      guard let bytes = value.secretValue else { throw SecItemError(.parameter, "v_Data is not data") }
      secrets[.valueData] = bytes
    case "v_PersistentRef":
      guard let found = value.dataValue.flatMap(QueryReference.parse) else {
        throw SecItemError(.parameter, "v_PersistentRef is not a persistent reference")
      }
      guard found.className == queryClass.name else {
        throw SecItemError(.noSuchClass, "the persistent reference and the query have different classes")
      }
      reference = found.reference
    default: throw SecItemError(.parameter, "there is no such value key")
    }
  }

  /// Both a class and an access control may be named only where the control is nothing but that class.
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
  /// An app's value as an attribute takes it in.
  ///
  /// - Throws: `.parameter`; the reason tells the types, not the value.
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
    guard let plain = value.attributeValue else {
      throw SecItemError(.parameter, "\(code) does not accept a value of this type")
    }
    do throws(FormatError) {
      return normalizingName(try convert(plain, for: definition), definition.code)
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }

  /// An issuer that is given as a whole name is compared as keychains store it. Source: Apple `SecItem.m`.
  private static func normalizingName(_ value: PropertyValue, _ code: AttributeCode) -> PropertyValue {
    guard code == .issuer, let name = value.dataValue.flatMap(CertificateAttributes.normalizedName) else {
      return value
    }
    return .data(name)
  }
}

/// What the key `class` names: one of the four kinds of item, or the join of certificate and key.
///
/// Source: Apple `SecItemConstants.c` (`kSecClass…`), `SecDbQuery.c` (`kc_class_with_name`).
enum QueryClass: Equatable {
  case items(ItemKind)
  case identity

  static let identityName = "idnt"

  init?(name: String) {
    if name == Self.identityName {
      self = .identity
    } else if let kind = ItemKind(rawValue: name) {
      self = .items(kind)
    } else {
      return nil
    }
  }

  var name: String {
    switch self {
    case .items(let kind): kind.rawValue
    case .identity: Self.identityName
    }
  }

  /// Whether items of the class are or have certificates, which the match keys for certificates are for.
  var hasCertificate: Bool { self == .identity || self == .items(.certificate) }

  /// Attributes that an identity takes from its certificate; the others are its key's.
  static let certificateAttributes: Set<AttributeCode> = [
    .label, .issuer, .serialNumber, .subjectKeyID, .tokenID, .subject, .publicKeyHash, .certificateType,
    .certificateEncoding,
  ]

  func definition(of code: AttributeCode) -> AttributeDefinition? {
    switch self {
    case .items(let kind): AttributeTable.definition(of: code, in: kind)
    case .identity:
      AttributeTable.definition(of: code, in: Self.certificateAttributes.contains(code) ? .certificate : .key)
    }
  }
}

/// What a persistent reference in a query points to.
enum QueryReference: Equatable {
  case row(Int64)
  case uuid([UInt8])
  case token(id: String, object: [UInt8])

  /// Reads the bytes of a `v_PersistentRef`: of one of the four kinds, or of an identity, which is that of its certificate.
  static func parse(_ bytes: [UInt8]) -> (className: String, reference: QueryReference)? {
    let isIdentity = bytes.starts(with: QueryClass.identityName.utf8)
    let bytes = isIdentity ? Array(ItemKind.certificate.rawValue.utf8) + bytes.dropFirst(4) : bytes
    guard let reference = try? PersistentReference(parsing: bytes) else { return nil }
    let name = isIdentity ? QueryClass.identityName : reference.kind.rawValue
    switch reference {
    case .rowID(_, let number): return (name, .row(number))
    case .uuid(_, let uuid): return (name, .uuid(uuid))
    case .token(_, let id, let object): return (name, .token(id: id, object: object))
    }
  }
}
