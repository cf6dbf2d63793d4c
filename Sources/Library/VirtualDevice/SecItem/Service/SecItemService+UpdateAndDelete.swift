import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains

extension SecItemService {
  /// `SecItemUpdate`: updates every matching item, or none.
  ///
  /// - Throws: `.itemNotFound`; `.duplicateItem` if a changed item conflicts with another item;
  ///   `.interactionNotAllowed` if the key of an item's old or new class is not in memory; `.authFailed`,
  ///   `.userCanceled`; `.noSuchAttribute` for a change that is not an attribute; `.missingEntitlement`; errors for an
  ///   invalid query.
  package func update(
    _ query: SecItemQuery, changes: SecItemQuery, caller: SecItemCaller, keys: ClassKeys,
    environment: SecItemEnvironment
  ) throws(SecItemError) {
    if let identity = query.identityQueries {
      for part in [identity.certificate, identity.key] {
        try update(part, changes: changes, caller: caller, keys: keys, environment: environment)
      }
      return
    }
    try caller.requireWritableGroup()
    let parsed = try ParsedQuery(query, for: .update, now: environment.now)
    guard parsed.returns.isEmpty else { throw SecItemError(.parameter, "an update returns nothing") }
    try parsed.checkChange()
    let groups = try caller.writableGroups(for: parsed)
    let parsedChanges = try ParsedChanges(changes, for: parsed.queryClass)
    try caller.requirePermission(for: parsedChanges)
    let rows = try rows(of: parsed, groups: groups, keys: keys) { (items) throws(SecItemError) in
      try SecItemAuthenticator(parsed, environment).satisfy(
        items, .decrypt, by: SecItemAuthenticator.requirement(toDecrypt:))
    }
    let policy = parsed.tombstonePolicy(environment)
    try translatingKeyhaulErrors { () throws(KeyhaulError) in
      for row in rows {
        try store.update(
          row, with: parsedChanges.changes, keys: keys, now: environment.now, tombstones: policy,
          random: environment.random)
      }
    }
  }

  /// `SecItemDelete`: deletes every matching item. Keys are needed only for tombstones, so items that cannot be
  /// decrypted are deleted too.
  ///
  /// - Throws: `.itemNotFound`; `.authFailed`, `.userCanceled` and `.interactionNotAllowed` if an access control
  ///   restricts the deletion; `.missingEntitlement`; errors for an invalid query.
  package func delete(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) {
    if query.isPersistentIdentityReference {
      return try deleteIdentity(query, caller: caller, keys: keys, environment: environment)
    }
    if let identity = query.identityQueries {
      try delete(identity.certificate, caller: caller, keys: keys, environment: environment)
      if try !isKeyInUse(query, caller: caller, keys: keys, environment: environment) {
        try delete(identity.key, caller: caller, keys: keys, environment: environment)
      }
      return
    }
    try caller.requireWritableGroup()
    let parsed = try ParsedQuery(query, for: .delete, now: environment.now)
    try parsed.checkChange()
    let groups = try caller.writableGroups(for: parsed)
    let rows = try rows(of: parsed, groups: groups, keys: keys) { (items) throws(SecItemError) in
      try SecItemAuthenticator(parsed, environment).satisfy(
        items, .delete, by: SecItemAuthenticator.requirement(toDelete:))
    }
    let policy = parsed.tombstonePolicy(environment)
    try translatingKeyhaulErrors { () throws(KeyhaulError) in
      for row in rows {
        try store.delete(row, keys: keys, now: environment.now, tombstones: policy, random: environment.random)
      }
    }
  }

  /// Deletes the identity with a persistent reference.
  private func deleteIdentity(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) {
    let identityQuery = query.replacing("class", with: .string(QueryClass.identityName)).replacing("r_Ref", with: true)
    let identity = try search(identityQuery, caller: caller, keys: keys, environment: environment).outcome.get()
    let deletion = query.replacing("class", with: nil).replacing("v_PersistentRef", with: nil)
      .replacing("v_Ref", with: identity)
    try delete(deletion, caller: caller, keys: keys, environment: environment)
  }

  /// Returns queries for the rows to change, after the required authentication. A row whose class key
  /// is not in memory does not require authentication: an update fails on it, and a deletion does not decrypt it.
  ///
  /// - Returns: The query itself, or queries for the individual rows of a token's object, which no column identifies.
  private func rows(
    of query: ParsedQuery, groups: ItemQuery.AccessGroups, keys: ClassKeys,
    authenticating authenticate: ([KeychainItem]) throws(SecItemError) -> Void
  ) throws(SecItemError) -> [ItemQuery] {
    guard let kind = query.kind else { throw SecItemError(.parameter, "only an identity's halves can be changed") }
    let itemQuery = SecItemMatcher.itemQuery(query, kind: kind, groups: groups) { _ in true }
    var protectedItems: [KeychainItem] = []
    var tokenRows: [ItemQuery] = []
    try translatingKeyhaulErrors { () throws(KeyhaulError) in
      try store.read { (transaction) throws(KeyhaulError) in
        try transaction.forEachRow(matching: itemQuery, keys: keys) { (row) throws(KeyhaulError) in
          guard let item = row.item, itemQuery.matches(item) else { return }
          if case .token(_, let objectID) = query.reference {
            guard TokenValue(of: item)?.objectID == objectID else { return }
            tokenRows.append(ItemQuery(kind: kind, accessGroups: groups, row: row.summary.reference))
          }
          if item[.accessControl] != nil { protectedItems.append(item) }
        }
      }
    }
    try authenticate(protectedItems)
    guard case .token = query.reference else { return [itemQuery] }
    guard !tokenRows.isEmpty else { throw SecItemError(.itemNotFound, "nothing matches the search") }
    return tokenRows
  }

  /// Returns whether another certificate forms an identity with the key of an identity that was deleted by reference.
  private func isKeyInUse(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> Bool {
    guard case .identity(_, let key)? = query["v_Ref"]?.referenceValue, let label = key[.applicationLabel]?.dataValue
    else { return false }
    let certificates = try search(
      ["class": .string(ItemKind.certificate.rawValue), "pkhh": .data(label)], caller: caller, keys: keys,
      environment: environment)
    if case .success = certificates.outcome { return true }
    return false
  }
}

extension SecItemQuery {
  /// Whether `v_PersistentRef` refers to an identity, and the query names no other class.
  fileprivate var isPersistentIdentityReference: Bool {
    let reference = self["v_PersistentRef"]?.dataValue.flatMap(QueryReference.parse)
    return reference?.className == QueryClass.identityName && self["v_Ref"] == nil
      && [nil, .string(QueryClass.identityName)].contains(self["class"])
  }

  /// The queries for the certificate and the key of an identity, or `nil` if the query is not for an identity.
  ///
  /// Source: Apple `SecItem.m` (`explode_identity`, `handleUpdateIdentity`).
  fileprivate var identityQueries: (certificate: SecItemQuery, key: SecItemQuery)? {
    if let reference = identityReference {
      return (referencing(reference.certificate), referencing(reference.key))
    }
    guard self["v_Ref"] == nil, self["class"] == .string(QueryClass.identityName) else { return nil }
    return (
      replacing("class", with: .string(ItemKind.certificate.rawValue)),
      replacing("class", with: .string(ItemKind.key.rawValue))
    )
  }
}

extension ParsedQuery {
  /// Checks the keys of an update's or a deletion's query.
  ///
  /// - Throws: `.parameter` for a match key, or for an attribute beside a reference.
  fileprivate func checkChange() throws(SecItemError) {
    guard matches.count == 0 else { throw SecItemError(.parameter, "match keys are only for searches") }
    try requireNoAttributesBesideReference()
  }

  /// Returns the policy that the query requests. By default, synchronized items leave tombstones if iCloud Keychain is
  /// on.
  fileprivate func tombstonePolicy(_ environment: SecItemEnvironment) -> TombstonePolicy {
    switch usesTombstone {
    case true?: .always
    case false?: .forbid
    case nil: environment.isSyncing ? .leave : .forbid
    }
  }
}

extension SecItemCaller {
  /// Checks that the app may change the access group and the synchronization of items as requested.
  ///
  /// - Throws: `.missingEntitlement` or `.restrictedAPI` if the app may not.
  fileprivate func requirePermission(for changes: ParsedChanges) throws(SecItemError) {
    if let group = changes.accessGroup { try requireWritable(group) }
    guard !(changes.makesSynchronizable && isAppClip) else {
      throw SecItemError(.restrictedAPI, "an App Clip may not synchronize items")
    }
  }
}
