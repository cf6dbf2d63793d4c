import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains

extension SecItemService {
  /// `SecItemAdd`.
  ///
  /// - Returns: The values that the return keys request: nothing, data, a persistent reference, or a dictionary of
  ///   several.
  /// - Throws: `.duplicateItem`, `.missingEntitlement`, `.restrictedAPI`, `.interactionNotAllowed`, `.authFailed` for
  ///   the class that requires a passcode, and errors for an invalid query.
  @discardableResult
  package func add(
    _ attributes: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    if let parts = attributes.identityReference {
      return try addIdentity(attributes, parts, caller: caller, keys: keys, environment: environment)
    }
    try caller.requireWritableGroup()
    let query = try ParsedQuery(attributes, for: .add, now: environment.now)
    let item = try newItem(query, caller: caller, environment: environment)
    let stored = try translatingKeyhaulErrors { () throws(KeyhaulError) in
      try store.add(item, keys: keys, now: environment.now, random: environment.random)
    }
    return SecItemResult(query).value(forAdded: stored)
  }

  /// Adds both parts of an identity. Identities can share a certificate or a key, so one of the parts may already
  /// exist, but not both.
  ///
  /// Source: Apple `SecItem.m` (`explode_identity`).
  private func addIdentity(
    _ attributes: SecItemQuery, _ parts: (certificate: SecItemReference, key: SecItemReference),
    caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    var result: SecItemValue?
    var certificateExists = false
    do throws(SecItemError) {
      result = try add(
        attributes.referencing(parts.certificate), caller: caller, keys: keys, environment: environment)
    } catch {
      guard error.status == .duplicateItem else { throw error }
      certificateExists = true
    }
    let keyQuery = attributes.referencing(parts.key).replacing("r_PersistentRef", with: .boolean(false))
    do throws(SecItemError) {
      try add(keyQuery, caller: caller, keys: keys, environment: environment)
    } catch {
      guard error.status == .duplicateItem, !certificateExists else { throw error }
    }
    return result?.asIdentityReference
  }

  private func newItem(
    _ query: ParsedQuery, caller: SecItemCaller, environment: SecItemEnvironment
  ) throws(SecItemError) -> KeychainItem {
    let kind = try query.kindToAdd(by: caller)
    var item = KeychainItem(kind: kind, attributes: query.attributes, secrets: query.secrets)
    let group = query.accessGroup ?? caller.accessGroups.first ?? ""
    try caller.requireWritable(group)
    item[.accessGroup] = .string(group)
    item[.appClip] = caller.isAppClip ? .integer(1) : nil
    if let control = query.accessControl {
      try addAccessControl(control, of: query, to: &item, random: environment.random)
    } else if item[.protection] == nil,
      NewItemDefaults.defaultProtection(kind: kind, accessGroup: group) == .whenUnlocked
    {
      item.protection = environment.defaultProtection
    }
    if item[.tokenID] != nil, !query.wantsRawTokenItems {
      try moveToToken(&item, objectID: query.tokenObjectID, random: environment.random)
    } else {
      item.fillDerivedAttributes()
    }
    return item
  }

  /// Adds an access control to an item, and the hash of the application password if the access control requires one.
  private func addAccessControl(
    _ control: AccessControl, of query: ParsedQuery, to item: inout KeychainItem, random: any RandomSource
  ) throws(SecItemError) {
    item.protection = control.protection
    item[.accessControl] = control.operations.map { .dictionary($0) }
    if control.isConstrained, query.isSynchronizable {
      throw SecItemError(.parameter, "a synchronized item cannot have an access control")
    }
    guard control.requirement(for: .decrypt).needsApplicationPassword,
      let password = query.context?.applicationPassword
    else { return }
    item[SecItemAuthenticator.passwordCheck] = .data(
      try SecItemAuthenticator.saltedHash(of: password, random: random))
  }

  /// Converts an item to an item on a token. The keychain item is always accessible, because the token protects its
  /// object with the access control.
  private func moveToToken(
    _ item: inout KeychainItem, objectID: [UInt8]?, random: any RandomSource
  ) throws(SecItemError) {
    // Unless the query contains the token's identifier for the object, it is random.
    let id = if let objectID { objectID } else { try random.bytesForCall(count: 16) }
    let value = TokenValue(
      objectID: id, accessControl: item[.accessControl]?.dictionaryValue,
      value: item.secret?.withBytes { Array($0) })
    item.secret = try value.encoded()
    item[.accessControl] = nil
    item.protection = .always
  }
}

extension ParsedQuery {
  /// Returns the kind of a new item, after checking that the query describes one.
  ///
  /// - Throws: `.parameter` for an identity and for keys that only a search may have; `.restrictedAPI` for a
  ///   synchronized item of an App Clip.
  fileprivate func kindToAdd(by caller: SecItemCaller) throws(SecItemError) -> ItemKind {
    guard let kind else { throw SecItemError(.parameter, "an identity can be added only by reference") }
    guard matches.count == 0 else { throw SecItemError(.parameter, "match keys are only for searches") }
    switch reference {
    case .row, .token: throw SecItemError(.parameter, "an item cannot be added under a row's persistent reference")
    case .uuid, nil: break
    }
    guard !(isSynchronizable && caller.isAppClip) else {
      throw SecItemError(.restrictedAPI, "an App Clip may not add synchronized items")
    }
    return kind
  }
}

extension KeychainItem {
  /// Derives attributes from the bytes of a certificate or of a key, except for those that the caller specifies. No
  /// attributes are derived from other bytes, as in Apple's daemon.
  fileprivate mutating func fillDerivedAttributes() {
    guard let secret else { return }
    let derived: KeychainItem
    switch kind {
    case .genericPassword, .internetPassword: return
    case .certificate:
      guard let certificate = try? CertificateAttributes(der: secret.withBytes { Array($0) }) else { return }
      derived = KeychainItem(certificate)
    case .key:
      // Attributes are not derived from a private key in another encoding.
      guard let material = try? KeyMaterial(parsing: secret),
        material.externalRepresentation.constantTimeEquals(secret)
      else { return }
      if let keyClass = self[.keyClass], keyClass != .integer(material.role.rawValue) { return }
      derived = KeychainItem(material)
    }
    attributes.merge(derived.attributes) { specified, _ in specified }
  }
}

extension SecItemCaller {
  /// Checks that the caller can write to a group.
  ///
  /// - Throws: `.missingEntitlement` for a caller without groups, `.restrictedAPI` for an App Clip that has
  ///   groups other than its own.
  func requireWritableGroup() throws(SecItemError) {
    try checkAppClip()
    guard !writableGroups.isEmpty else {
      throw SecItemError(.missingEntitlement, "the app has no access group")
    }
  }

  func requireWritable(_ group: String) throws(SecItemError) {
    guard canUse(group, writing: true) else {
      throw SecItemError(.missingEntitlement, "the app may not write to this access group")
    }
  }
}
