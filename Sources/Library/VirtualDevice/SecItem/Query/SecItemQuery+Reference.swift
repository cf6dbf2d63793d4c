import Basics
import KeychainFormats

extension SecItemQuery {
  /// The attributes that identify a certificate or key in a search by reference.
  private static let identifyingCodes: [ItemKind: [AttributeCode]] = [
    .certificate: [.issuer, .serialNumber, .publicKeyHash],
    .key: [.keyClass, .applicationLabel, .type, .keySizeInBits],
  ]

  /// Attributes that the keychain assigns to each stored item.
  private static let assignedCodes: Set<AttributeCode> = [
    .rowID, .creationDate, .modificationDate, .accessGroup, .protection, .synchronizable, .tombstone, .digest,
    .multiUser, .uuid, .persistentReference, .appClip, .sharingGroup, .accessControl, .encryptedData,
  ]

  /// Returns the query with the reference's attributes instead of `v_Ref`. Attributes of the query take precedence.
  ///
  /// Source: Apple `SecItem.m` (`SecItemAttributesPrepare`).
  ///
  /// - Throws: `.parameter` for a value that is not a reference, and for an identity, which the calls split beforehand.
  func expandingReference(for call: SecItemCall) throws(SecItemError) -> SecItemQuery {
    guard let value = self["v_Ref"] else { return self }
    let item: KeychainItem
    switch value.referenceValue {
    case .certificate(let referenced), .key(let referenced): item = referenced
    case .identity, nil: throw SecItemError(.parameter, "v_Ref is not a certificate, key or identity")
    }
    var expanded = self
    expanded["v_Ref"] = nil
    expanded.setIfAbsent("class", .string(item.kind.rawValue))
    for (code, attribute) in item.attributes where code.rawValue.utf16.count == 4 && !Self.assignedCodes.contains(code)
    {
      guard call == .add || (Self.identifyingCodes[item.kind] ?? []).contains(code) else { continue }
      if let value = SecItemValue(attribute) { expanded.setIfAbsent(code.rawValue, value) }
    }
    if call == .add, let secret = item.secret { expanded.setIfAbsent("v_Data", .secret(secret)) }
    return expanded
  }

  private mutating func setIfAbsent(_ key: String, _ value: SecItemValue) {
    if self[key] == nil { self[key] = value }
  }

  /// The certificate and the key of an identity in `v_Ref`.
  var identityReference: (certificate: SecItemReference, key: SecItemReference)? {
    guard case .identity(let certificate, let key)? = self["v_Ref"]?.referenceValue else { return nil }
    return (.certificate(certificate), .key(key))
  }

  /// Returns the query for the certificate or the key of an identity in `v_Ref`, without the identity's class.
  func referencing(_ part: SecItemReference) -> SecItemQuery {
    let query = replacing("v_Ref", with: .reference(part))
    return self["class"] == .string(QueryClass.identityName) ? query.replacing("class", with: nil) : query
  }

  func replacing(_ key: String, with value: SecItemValue?) -> SecItemQuery {
    var changed = self
    changed[key] = value
    return changed
  }
}
