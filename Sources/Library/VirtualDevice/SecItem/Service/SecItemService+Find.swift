import Basics
package import KeychainCrypto
import KeychainFormats
import KeychainRules
package import Keychains

extension SecItemService {
  /// `SecItemCopyMatching`. Rows that no key of this device will ever open are removed on the way, as on a device.
  ///
  /// - Returns: What the return keys ask for: of one item, or an array where the limit is another than one.
  /// - Throws: `.itemNotFound`; `.interactionNotAllowed` where a matching item is locked, or asks for a person who may
  ///   not be asked; `.authFailed`, `.userCanceled`; `.missingEntitlement`; what a malformed query gives.
  package func copyMatching(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    let search = try search(query, caller: caller, keys: keys, environment: environment)
    if !search.undecodable.isEmpty {
      try asCall { () throws(KeyhaulError) in try store.remove(search.undecodable) }
    }
    return try search.outcome.get()
  }

  /// The same without changing anything: what is to be removed is named.
  ///
  /// - Throws: What is wrong with the query itself, or the caller.
  package func search(
    _ query: SecItemQuery, caller: SecItemCaller, keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemSearch {
    if let halves = query.identityReference {
      return try searchIdentity(query, halves, caller: caller, keys: keys, environment: environment)
    }
    try caller.checkAppClip()
    guard !caller.accessGroups.isEmpty else { throw SecItemError(.missingEntitlement, "the app has no access group") }
    let parsed = try ParsedQuery(query, for: .copyMatching, now: environment.now)
    try parsed.checkSearch()
    let groups = try caller.readable(for: parsed)
    var search = try asCall { () throws(KeyhaulError) in
      try store.read { (transaction) throws(KeyhaulError) in
        var matcher = SecItemMatcher(parsed, groups: groups)
        return try matcher.matches(in: transaction, keys: keys)
      }
    }
    let outcome: Result<SecItemValue?, SecItemError>
    do throws(SecItemError) {
      outcome = .success(try answer(parsed, &search.matches, environment))
    } catch {
      outcome = .failure(error)
    }
    return SecItemSearch(outcome: outcome, undecodable: search.undecodable)
  }

  private func answer(
    _ query: ParsedQuery, _ matches: inout [SecItemMatch], _ environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    if !query.returns.isDisjoint(with: [.data, .reference]) {
      let requirement = SecItemAuthenticator.requirement(toOpen:)
      if query.interaction == .skipped { matches.removeAll { !requirement($0.item).isEmpty } }
      try SecItemAuthenticator(query, environment).satisfy(matches.map(\.item), .decrypt, by: requirement)
    }
    guard !matches.isEmpty else { throw SecItemError(.itemNotFound, "nothing matches the search") }
    let result = SecItemResult(query)
    if query.limit == .one { return result.found(matches[0]) }
    return query.returns.isEmpty ? nil : .array(matches.compactMap(result.found))
  }

  /// An identity is there where both halves are; its persistent reference is all that can be asked of it, or itself.
  private func searchIdentity(
    _ query: SecItemQuery, _ halves: (certificate: SecItemReference, key: SecItemReference), caller: SecItemCaller,
    keys: ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemSearch {
    let certificate = try search(
      query.naming(half: halves.certificate), caller: caller, keys: keys, environment: environment)
    let key = try search(
      query.naming(half: halves.key).replacing("r_PersistentRef", with: .boolean(false)),
      caller: caller, keys: keys, environment: environment)
    let outcome = certificate.outcome.flatMap { value in key.outcome.map { _ in value?.asIdentityReference } }
    return SecItemSearch(outcome: outcome, undecodable: certificate.undecodable + key.undecodable)
  }
}

/// What a search came to, and the rows it found that will never open.
package struct SecItemSearch {
  package let outcome: Result<SecItemValue?, SecItemError>
  package let undecodable: [RowReference]
}

extension ParsedQuery {
  /// - Throws: `.unimplemented` for match keys of another class, `.parameter` for a policy or a reference among attributes.
  func checkSearch() throws(SecItemError) {
    if matches.issuers != nil || matches.hasPolicy, !queryClass.hasCertificate {
      throw SecItemError(.unimplemented, "issuers and policies are matched only for certificates")
    }
    if matches.host != nil, queryClass != .items(.internetPassword) {
      throw SecItemError(.unimplemented, "hosts are matched only for internet passwords")
    }
    if matches.hasPolicy { throw SecItemError(.parameter, "m_Policy is no policy") }
    switch reference {
    case .row, nil: break
    case .uuid:
      guard attributes.isEmpty else {
        throw SecItemError(.parameter, "a persistent reference and attributes cannot be combined")
      }
    case .token: try checkReferenceAlone()
    }
  }

  /// - Throws: `.parameter` where a persistent reference has attributes beside it.
  func checkReferenceAlone() throws(SecItemError) {
    guard reference == nil || attributes.isEmpty else {
      throw SecItemError(.parameter, "a persistent reference and attributes cannot be combined")
    }
  }
}

extension SecItemCaller {
  /// The groups a search looks in: the one it names, or all of the caller's but that of tokens, which is named or not
  /// looked at.
  func readable(for query: ParsedQuery) throws(SecItemError) -> ItemQuery.AccessGroups {
    guard let group = query.accessGroup else { return canUseWildcard ? .all : .only(writableGroups) }
    guard mayUse(group, writing: false) else {
      throw SecItemError(.missingEntitlement, "the access group is not one of the app's")
    }
    return .only([group])
  }

  /// The groups a change looks in.
  func writable(for query: ParsedQuery) throws(SecItemError) -> ItemQuery.AccessGroups {
    if let group = query.accessGroup {
      try requireWritable(group)
      return .only([group])
    }
    return canUseWildcard ? .all : .only(writableGroups)
  }
}
