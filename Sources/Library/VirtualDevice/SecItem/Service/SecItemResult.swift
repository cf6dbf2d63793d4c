import Basics
import KeychainFormats
import Keychains

/// The result of a call, as the return keys request it.
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

  /// Returns the result for a new item. It contains only attributes with the flag `returnedAsAttribute`.
  func value(forAdded stored: StoredItem) -> SecItemValue? {
    value(
      stored.item, certificate: nil, persistentReference: persistentReference(to: stored.item)
    ) { item in
      item.attributes.filter { code, _ in
        AttributeTable.definition(of: code, in: item.kind)?.flags.contains(.returnedAsAttribute) ?? false
      }
    }
  }

  /// Returns the result for a matching item: all attributes except secrets and identifiers.
  func value(forMatch match: SecItemMatch) -> SecItemValue? {
    value(
      match.item, certificate: match.certificate,
      persistentReference: persistentReference(to: match.certificate ?? match.item)
    ) { item in item.attributes }
  }

  /// Attributes that apps never see.
  private static let hiddenCodes: Set<AttributeCode> = [
    .uuid, .persistentReference, .appClip, .accessControl, .encryptedData, .rowID, SecItemAuthenticator.passwordCheck,
  ]

  private func value(
    _ item: KeychainItem, certificate: KeychainItem?, persistentReference: SecItemValue?,
    attributes: (KeychainItem) -> AttributeMap<PropertyValue>
  ) -> SecItemValue? {
    // A single return key results in the value itself.
    switch returns {
    case []: nil
    case .data: secretData(of: item) ?? .data([])
    case .persistentReference: persistentReference
    case .reference: reference(item, certificate).map { .reference($0) }
    default:
      .dictionary(
        dictionary(item, certificate: certificate, persistentReference: persistentReference, attributes: attributes))
    }
  }

  private func dictionary(
    _ item: KeychainItem, certificate: KeychainItem?, persistentReference: SecItemValue?,
    attributes: (KeychainItem) -> AttributeMap<PropertyValue>
  ) -> SecItemQuery {
    var result: SecItemQuery = [:]
    let includesAttributes = !returns.isDisjoint(with: [.attributes, .reference])
    if includesAttributes {
      addAttributes(to: &result, from: item, attributes)
      if let certificate {
        addAttributes(to: &result, from: certificate, attributes)
        result["certdata"] = certificate.secret.map { .secret($0) }
      }
    }
    if returns.contains(.data) {
      if includesAttributes {
        for (code, secret) in item.secrets { result[code.rawValue] = .secret(secret) }
      }
      result["v_Data"] = secretData(of: item)
    }
    if returns.contains(.persistentReference) { result["v_PersistentRef"] = persistentReference }
    if returns.contains(.reference) {
      result["class"] = .string(queryClass.name)
      result["v_Ref"] = reference(item, certificate).map { .reference($0) }
    }
    return result
  }

  private func addAttributes(
    to result: inout SecItemQuery, from item: KeychainItem,
    _ attributes: (KeychainItem) -> AttributeMap<PropertyValue>
  ) {
    for (code, value) in attributes(item) where !Self.hiddenCodes.contains(code) {
      result[code.rawValue] = SecItemValue(value)
    }
    result["accc"] = accessControl(of: item).map { .accessControl($0) }
  }

  /// Returns the access control of an item. Every item has one: at least its protection class.
  private func accessControl(of item: KeychainItem) -> AccessControl? {
    if !wantsRawTokenItems, let operations = TokenValue(of: item)?.accessControl, let protection = item.protection {
      return AccessControl(protection: protection, operations: operations)
    }
    return item.accessControlObject
  }

  private func secretData(of item: KeychainItem) -> SecItemValue? {
    if !wantsRawTokenItems, let token = TokenValue(of: item) {
      return token.value.map { .secret(SensitiveBytes(copying: $0)) }
    }
    return item.secret.map { .secret($0) }
  }

  /// Returns the reference to an item, or `nil` if the item is a password.
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
    let value = SecItemValue.data(bytes)
    return queryClass == .identity ? value.asIdentityReference : value
  }
}

extension SecItemValue {
  /// The persistent reference of an identity, made from this reference of its certificate, or `nil` if this value is
  /// not a certificate's reference.
  var asIdentityReference: SecItemValue? {
    guard case .data(let bytes) = self, bytes.starts(with: ItemKind.certificate.rawValue.utf8) else { return nil }
    return .data(Array(QueryClass.identityName.utf8) + bytes.dropFirst(PersistentReference.classByteCount))
  }
}
