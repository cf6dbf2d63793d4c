import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
package import Keychains

extension SecItemService {
  /// `SecItemCopyMatching`. Rows that none of the device's keys can ever decrypt are deleted, as on a device.
  ///
  /// - Returns: The values that the return keys request: of one item, or an array if the limit is not one.
  /// - Throws: `.itemNotFound`; `.interactionNotAllowed` if a matching item's class key is not in memory, or if the
  ///   item requires authentication but the user must not be asked; `.authFailed`, `.userCanceled`;
  ///   `.missingEntitlement`; errors for an invalid query.
  package func copyMatching(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    let search = try search(query, caller: caller, keys: keys, environment: environment)
    if !search.undecodable.isEmpty {
      try translatingKeyhaulErrors { () throws(KeyhaulError) in try store.remove(search.undecodable) }
    }
    return try search.outcome.get()
  }

  /// Searches without changing anything. The result lists the rows that should be deleted.
  ///
  /// - Throws: An error for an invalid query or caller.
  package func search(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemSearch {
    if let parts = query.identityReference {
      return try searchIdentity(query, parts, caller: caller, keys: keys, environment: environment)
    }
    try caller.checkAppClip()
    guard !caller.accessGroups.isEmpty else { throw SecItemError(.missingEntitlement, "the app has no access group") }
    let parsed = try ParsedQuery(query, for: .copyMatching, now: environment.now)
    try parsed.checkSearch()
    let groups = try caller.readableGroups(for: parsed)
    var search = try translatingKeyhaulErrors { () throws(KeyhaulError) in
      try store.read { (transaction) throws(KeyhaulError) in
        var matcher = SecItemMatcher(parsed, groups: groups)
        return try matcher.matches(in: transaction, keys: keys)
      }
    }
    let outcome: Result<SecItemValue?, SecItemError>
    do throws(SecItemError) {
      outcome = .success(try results(parsed, &search.matches, environment))
    } catch {
      outcome = .failure(error)
    }
    return SecItemSearch(outcome: outcome, undecodable: search.undecodable)
  }

  private func results(
    _ query: ParsedQuery, _ matches: inout [SecItemMatch], _ environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    if !query.returns.isDisjoint(with: [.data, .reference]) {
      let requirement = SecItemAuthenticator.requirement(toDecrypt:)
      if query.interaction == .skipped { matches.removeAll { !requirement($0.item).isEmpty } }
      try SecItemAuthenticator(query, environment).satisfy(matches.map(\.item), .decrypt, by: requirement)
    }
    guard !matches.isEmpty else { throw SecItemError(.itemNotFound, "nothing matches the search") }
    let result = SecItemResult(query)
    if query.limit == .one { return result.value(forMatch: matches[0]) }
    return query.returns.isEmpty ? nil : .array(matches.compactMap(result.value(forMatch:)))
  }

  /// Searches for an identity, which exists if both its certificate and its key exist. Only the identity or its
  /// persistent reference can be returned.
  private func searchIdentity(
    _ query: SecItemQuery, _ parts: (certificate: SecItemReference, key: SecItemReference), caller: SecItemCaller,
    keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemSearch {
    let certificate = try search(
      query.referencing(parts.certificate), caller: caller, keys: keys, environment: environment)
    let key = try search(
      query.referencing(parts.key).replacing("r_PersistentRef", with: .boolean(false)),
      caller: caller, keys: keys, environment: environment)
    let outcome = certificate.outcome.flatMap { value in key.outcome.map { _ in value?.asIdentityReference } }
    return SecItemSearch(outcome: outcome, undecodable: certificate.undecodable + key.undecodable)
  }
}

/// The result of a search, and the matching rows that can never be decrypted.
package struct SecItemSearch {
  package let outcome: Result<SecItemValue?, SecItemError>
  package let undecodable: [RowReference]
}

extension ParsedQuery {
  /// Checks the match keys of a search.
  ///
  /// - Throws: `.unimplemented` for match keys that do not apply to the query's class, `.parameter` for a policy, and
  ///   for a reference together with attributes.
  func checkSearch() throws(SecItemError) {
    if matches.issuers != nil || matches.hasPolicy, !queryClass.hasCertificate {
      throw SecItemError(.unimplemented, "issuers and policies are matched only for certificates")
    }
    if matches.host != nil, queryClass != .items(.internetPassword) {
      throw SecItemError(.unimplemented, "hosts are matched only for internet passwords")
    }
    if matches.hasPolicy { throw SecItemError(.parameter, "m_Policy is not a policy") }
    switch reference {
    case .row, nil: break
    case .uuid:
      guard attributes.isEmpty else {
        throw SecItemError(.parameter, "a persistent reference and attributes cannot be combined")
      }
    case .token: try requireNoAttributesBesideReference()
    }
  }

  /// Checks that a persistent reference is not combined with attributes.
  ///
  /// - Throws: `.parameter` if it is.
  func requireNoAttributesBesideReference() throws(SecItemError) {
    guard reference == nil || attributes.isEmpty else {
      throw SecItemError(.parameter, "a persistent reference and attributes cannot be combined")
    }
  }
}

extension SecItemCaller {
  /// Returns the groups for a search: the group that the query names, or all groups of the caller except the token
  /// group.
  func readableGroups(for query: ParsedQuery) throws(SecItemError) -> ItemQuery.AccessGroups {
    guard let group = query.accessGroup else { return canUseWildcard ? .all : .only(writableGroups) }
    guard canUse(group, writing: false) else {
      throw SecItemError(.missingEntitlement, "the access group is not one of the app's")
    }
    return .only([group])
  }

  /// Returns the groups for a change: the group that the query names, or all groups that the caller can write to.
  func writableGroups(for query: ParsedQuery) throws(SecItemError) -> ItemQuery.AccessGroups {
    if let group = query.accessGroup {
      try requireWritable(group)
      return .only([group])
    }
    return canUseWildcard ? .all : .only(writableGroups)
  }
}
