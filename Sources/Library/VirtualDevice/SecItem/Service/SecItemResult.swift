package import Basics
package import KeychainFormats
import Keychains

/// What a call gives back, in the shapes that the return keys ask for.
///
/// Source: Apple `SecItemDb.c` (`SecDbItemCopyResult`, `handle_result`), `SecItem.m` (`SecItemResultCopyPrepared`).
struct SecItemResult {
  private let returns: ParsedQuery.ReturnTypes
  private let queryClass: QueryClass
  private let wantsRawTokenItems: Bool

  init(_ query: ParsedQuery) {
    returns = query.returns
    queryClass = query.queryClass
    wantsRawTokenItems = query.wantsRawTokenItems
  }

  /// Of an item that was just added: of its attributes those with the flag A.
  func added(_ stored: StoredItem) -> SecItemValue? {
    value(
      stored.item, certificate: nil, persistentReference: persistentReference(to: stored.item)
    ) { item in
      item.attributes.filter { code, _ in
        AttributeTable.definition(of: code, in: item.kind)?.flags.contains(.returnedAsAttribute) ?? false
      }
    }
  }

  /// Of an item that was found: all its attributes but the secret ones and its identifiers.
  func found(_ match: SecItemMatch) -> SecItemValue? {
    value(
      match.item, certificate: match.certificate,
      persistentReference: persistentReference(to: match.certificate ?? match.item)
    ) { item in item.attributes }
  }

  /// Neither are attributes to an app.
  private static let hidden: Set<AttributeCode> = [
    .uuid, .persistentReference, .appClip, .accessControl, .encryptedData, .rowID, SecItemAuthenticator.passwordCheck,
  ]

  private func value(
    _ item: KeychainItem, certificate: KeychainItem?, persistentReference: SecItemValue?,
    attributes: (KeychainItem) -> AttributeMap<PropertyValue>
  ) -> SecItemValue? {
    let data = secretData(of: item)
    switch returns {
    case []: return nil
    case .data: return data ?? .data([])
    case .persistentReference: return persistentReference
    case .reference: return reference(item, certificate).map { .reference($0) }
    default: break
    }
    var result: SecItemQuery = [:]
    if !returns.isDisjoint(with: [.attributes, .reference]) {
      fill(&result, from: item, attributes)
      if let certificate {
        fill(&result, from: certificate, attributes)
        result["certdata"] = certificate.secret.map { .secret($0) }
      }
    }
    if returns.contains(.data) {
      if !returns.isDisjoint(with: [.attributes, .reference]) {
        for (code, secret) in item.secrets { result[code.rawValue] = .secret(secret) }
      }
      result["v_Data"] = data
    }
    if returns.contains(.persistentReference) { result["v_PersistentRef"] = persistentReference }
    if returns.contains(.reference) {
      result["class"] = .string(queryClass.name)
      result["v_Ref"] = reference(item, certificate).map { .reference($0) }
    }
    return .dictionary(result)
  }

  private func fill(
    _ result: inout SecItemQuery, from item: KeychainItem,
    _ attributes: (KeychainItem) -> AttributeMap<PropertyValue>
  ) {
    for (code, value) in attributes(item) where !Self.hidden.contains(code) {
      result[code.rawValue] = SecItemValue(value)
    }
    result["accc"] = accessControl(of: item).map { .accessControl($0) }
  }

  /// Every item has one to show: where it was added with a class alone, that class.
  private func accessControl(of item: KeychainItem) -> AccessControl? {
    if !wantsRawTokenItems, let onToken = TokenValue(of: item)?.accessControl, let protection = item.protection {
      return AccessControl(protection: protection, operations: onToken)
    }
    return item.accessControlObject
  }

  private func secretData(of item: KeychainItem) -> SecItemValue? {
    if !wantsRawTokenItems, let token = TokenValue(of: item) {
      return token.value.map { .secret(SensitiveBytes(copying: $0)) }
    }
    return item.secret.map { .secret($0) }
  }

  /// Passwords have none.
  private func reference(_ item: KeychainItem, _ certificate: KeychainItem?) -> SecItemReference? {
    switch (item.kind, certificate) {
    case (.key, let certificate?): .identity(certificate: certificate, key: item)
    case (.key, nil): .key(item)
    case (.certificate, _): .certificate(item)
    case (.genericPassword, _), (.internetPassword, _): nil
    }
  }

  private func persistentReference(to item: KeychainItem) -> SecItemValue? {
    let reference: PersistentReference
    if let tokenID = item[.tokenID]?.stringValue, let token = TokenValue(of: item) {
      reference = .token(item.kind, tokenID: tokenID, objectID: token.objectID)
    } else if let uuid = item[.persistentReference]?.dataValue {
      reference = .uuid(item.kind, uuid)
    } else {
      return nil
    }
    guard let bytes = try? reference.serialized() else { return nil }
    let plain = SecItemValue.data(bytes)
    return queryClass == .identity ? plain.asIdentityReference : plain
  }
}

extension SecItemValue {
  /// The persistent reference of a certificate as that of the identity it belongs to; `nil` for anything else.
  var asIdentityReference: SecItemValue? {
    guard case .data(let bytes) = self, bytes.starts(with: ItemKind.certificate.rawValue.utf8) else { return nil }
    return .data(Array(QueryClass.identityName.utf8) + bytes.dropFirst(4))
  }
}

/// What stands in `v_Data` of an item whose object a token holds: the token's name for the object, its access control,
/// and the object's value where the token shows it.
///
/// Source: Apple `SecItem.m` (`SecTokenItemValueCreate`, `SecTokenItemValueCopy`).
package struct TokenValue: Sendable {
  private enum Key {
    static let object = "oid"
    static let accessControl = "ac"
    static let value = "data"
  }

  /// What the token calls the object; for a key of the Secure Enclave its private number, wrapped.
  package let objectID: [UInt8]
  /// Operation to constraint, as an access control keeps it; `nil` if nothing guards the object.
  package let accessControl: PropertyDictionary?
  /// What the token shows of the object: of a private key the public one.
  package let value: [UInt8]?

  /// Creates the value of an item on a token.
  package init(objectID: [UInt8], accessControl: PropertyDictionary?, value: [UInt8]?) {
    self.objectID = objectID
    self.accessControl = accessControl
    self.value = value
  }

  /// Reads the value of an item.
  ///
  /// - Returns: `nil` for an item on no token, and for one whose bytes are no such dictionary.
  package init?(of item: KeychainItem) {
    guard !(item[.tokenID]?.stringValue ?? "").isEmpty, let secret = item.secret,
      let decoded = try? secret.withBytes({ (bytes) throws(FormatError) in try DERPropertyList.decode(bytes) }),
      let fields = decoded.dictionaryValue, let object = fields[Key.object]?.dataValue
    else { return nil }
    self.init(
      objectID: object, accessControl: fields[Key.accessControl]?.dictionaryValue, value: fields[Key.value]?.dataValue)
  }

  /// The DER that stands in the item.
  ///
  /// - Throws: `.parameter` for more than an item holds.
  package func encoded() throws(SecItemError) -> SensitiveBytes {
    var fields: PropertyDictionary = [Key.object: .data(objectID)]
    if let accessControl { fields[Key.accessControl] = .dictionary(accessControl) }
    if let value { fields[Key.value] = .data(value) }
    do throws(FormatError) {
      return SensitiveBytes(copying: try DERPropertyList.encode(.dictionary(fields)))
    } catch {
      throw SecItemError(.parameter, error.reason)
    }
  }
}
