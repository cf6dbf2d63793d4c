import Basics
import KeychainFormats

extension SecItemQuery {
  /// What makes a certificate or key the one it is, in a search by reference.
  private static let identifying: [ItemKind: [AttributeCode]] = [
    .certificate: [.issuer, .serialNumber, .publicKeyHash],
    .key: [.keyClass, .applicationLabel, .type, .keySizeInBits],
  ]

  /// What a stored item got from its keychain, and a new one gets again.
  private static let owned: Set<AttributeCode> = [
    .rowID, .creationDate, .modificationDate, .accessGroup, .protection, .synchronizable, .tombstone, .digest,
    .multiUser, .uuid, .persistentReference, .appClip, .sharingGroup, .accessControl, .encryptedData,
  ]

  /// The query with the attributes of its `v_Ref` in the place of it; those that the caller names count.
  ///
  /// Source: Apple `SecItem.m` (`SecItemAttributesPrepare`).
  /// - Throws: `.parameter` for a value that is no reference, or an identity, which the calls take apart before.
  func expandingReference(for call: SecItemCall) throws(SecItemError) -> SecItemQuery {
    guard let value = self["v_Ref"] else { return self }
    let item: KeychainItem
    switch value.referenceValue {
    case .certificate(let found), .key(let found): item = found
    case .identity, nil: throw SecItemError(.parameter, "v_Ref is not a certificate, key or identity")
    }
    var expanded = self
    expanded["v_Ref"] = nil
    expanded.fill("class", .string(item.kind.rawValue))
    for (code, attribute) in item.attributes where code.rawValue.utf16.count == 4 && !Self.owned.contains(code) {
      guard call == .add || (Self.identifying[item.kind] ?? []).contains(code) else { continue }
      if let value = SecItemValue(attribute) { expanded.fill(code.rawValue, value) }
    }
    if call == .add, let secret = item.secret { expanded.fill("v_Data", .secret(secret)) }
    return expanded
  }

  private mutating func fill(_ key: String, _ value: SecItemValue) {
    if self[key] == nil { self[key] = value }
  }

  /// Both halves of the identity that `v_Ref` is.
  var identityReference: (certificate: SecItemReference, key: SecItemReference)? {
    guard case .identity(let certificate, let key)? = self["v_Ref"]?.referenceValue else { return nil }
    return (.certificate(certificate), .key(key))
  }

  /// The query for one half of the identity that `v_Ref` is; the half's class takes the place of the identity's.
  func naming(half: SecItemReference) -> SecItemQuery {
    let query = replacing("v_Ref", with: .reference(half))
    return self["class"] == .string(QueryClass.identityName) ? query.replacing("class", with: nil) : query
  }

  func replacing(_ key: String, with value: SecItemValue?) -> SecItemQuery {
    var changed = self
    changed[key] = value
    return changed
  }
}
