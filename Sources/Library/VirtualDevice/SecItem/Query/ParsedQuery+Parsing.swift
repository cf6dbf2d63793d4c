import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

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
    guard code != .appClip else { throw SecItemError(.parameter, "the App Clip flag belongs to the keychain") }
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
        throw SecItemError(.noSuchClass, "the persistent reference has another class than the query")
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
      throw SecItemError(.parameter, "\(code) cannot be named in a call")
    case .sha1:
      guard let digest = value.dataValue, digest.count == 20 else {
        throw SecItemError(.parameter, "\(code) takes data of 20 bytes")
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
    guard code == .issuer, let name = value.dataValue.flatMap(CertificateFacts.normalizedName) else { return value }
    return .data(name)
  }
}
