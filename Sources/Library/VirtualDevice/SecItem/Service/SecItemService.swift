import Basics
public import KeychainCrypto
public import KeychainFormats
import KeychainRules
public import Keychains

/// Apple's four keychain calls on a device's keychain, as its daemon answers them.
///
/// A call gives back what the caller's result pointer would receive, `nil` where that is nothing; every other end than
/// `errSecSuccess` is a `SecItemError` with Apple's status.
/// Source: Apple `SecItem.m`, `SecItemServer.c`, `SecDbQuery.c`, `SecItemDb.c`.
public struct SecItemService: Sendable {
  /// The database that the calls read and change.
  public let store: KeychainStore

  /// Creates the four calls over a database; the caller, the keys and the environment come with each call.
  public init(store: KeychainStore) { self.store = store }
}

extension SecItemService {
  /// `SecItemAdd`.
  ///
  /// - Returns: What the return keys ask for: nothing, data, a persistent reference, or a dictionary of several.
  /// - Throws: `.duplicateItem`, `.missingEntitlement`, `.restrictedAPI`, `.interactionNotAllowed`, `.authFailed` for the
  ///   class that needs a passcode, and what a malformed query gives.
  @discardableResult
  public func add(
    _ attributes: SecItemQuery, caller: SecItemCaller, keys: borrowing ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    if let halves = attributes.identityReference {
      return try addIdentity(attributes, halves, caller: caller, keys: keys, environment: environment)
    }
    try caller.requireWritableGroup()
    let query = try ParsedQuery(attributes, for: .add, now: environment.now)
    let item = try newItem(query, caller: caller, environment: environment)
    let stored = try asCall { () throws(KeychainStoreError) in
      try store.add(item, keys: keys, now: environment.now, random: environment.random)
    }
    return SecItemResult(query).added(stored)
  }

  /// A certificate may be there already: several keys and identities share one. The same holds for the key then.
  ///
  /// Source: Apple `SecItem.m` (`explode_identity`).
  private func addIdentity(
    _ attributes: SecItemQuery, _ halves: (certificate: SecItemReference, key: SecItemReference),
    caller: SecItemCaller, keys: borrowing ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    var result: SecItemValue?
    var isCertificateThere = false
    do throws(SecItemError) {
      result = try add(
        attributes.naming(half: halves.certificate), caller: caller, keys: keys, environment: environment)
    } catch {
      guard error.status == .duplicateItem else { throw error }
      isCertificateThere = true
    }
    let keyQuery = attributes.naming(half: halves.key).replacing("r_PersistentRef", with: .boolean(false))
    do throws(SecItemError) {
      try add(keyQuery, caller: caller, keys: keys, environment: environment)
    } catch {
      guard error.status == .duplicateItem, !isCertificateThere else { throw error }
    }
    return result?.asIdentityReference
  }

  private func newItem(
    _ query: ParsedQuery, caller: SecItemCaller, environment: SecItemEnvironment
  ) throws(SecItemError) -> KeychainItem {
    guard let kind = query.kind else {
      throw SecItemError(.parameter, "an identity is added by reference")
    }
    guard query.matches.count == 0 else { throw SecItemError(.parameter, "match keys belong to searches") }
    switch query.reference {
    case .row, .token: throw SecItemError(.parameter, "an item is not added under a persistent reference of a row")
    case .uuid, nil: break
    }
    guard !(query.isSynchronizable && caller.isAppClip) else {
      throw SecItemError(.restrictedAPI, "an App Clip may not add synchronised items")
    }

    var item = KeychainItem(kind: kind, attributes: query.attributes, secrets: query.secrets)
    let group = query.accessGroup ?? caller.accessGroups.first ?? ""
    try caller.requireWritable(group)
    item[.accessGroup] = .string(group)
    item[.appClip] = caller.isAppClip ? .integer(1) : nil
    if let control = query.accessControl {
      item.protection = control.protection
      item[.accessControl] = control.operations.map { .dictionary($0) }
      if control.isConstrained, query.isSynchronizable {
        throw SecItemError(.parameter, "a synchronised item cannot have an access control")
      }
      if control.requirement(for: .decrypt).needsApplicationPassword, let password = query.context?.applicationPassword
      {
        item[SecItemAuthenticator.passwordCheck] = .data(
          try SecItemAuthenticator.check(of: password, random: environment.random))
      }
    } else if item[.protection] == nil,
      NewItem.defaultProtection(kind: kind, accessGroup: group) == .whenUnlocked
    {
      item.protection = environment.defaultProtection
    }
    if item[.tokenID] != nil, !query.wantsRawTokenItems {
      try moveToToken(&item, objectID: query.tokenObjectID, random: environment.random)
    } else {
      item.fillFacts()
    }
    return item
  }

  /// An item on a token opens at all times: the token guards the object, with the access control that the item names.
  private func moveToToken(
    _ item: inout KeychainItem, objectID: [UInt8]?, random: any RandomSource
  ) throws(SecItemError) {
    let drawn = if let objectID { objectID } else { try random.bytesForCall(count: 16) }
    let value = TokenValue(
      objectID: drawn, accessControl: item[.accessControl]?.dictionaryValue,
      value: item.secret?.withBytes { Array($0) })
    item.secret = try value.encoded()
    item[.accessControl] = nil
    item.protection = .always
  }
}

extension KeychainItem {
  /// Gives a certificate, or a key in the form in which keychains store it, the attributes that its bytes tell and its
  /// adder does not name. Bytes that are neither are stored as they are, as the daemon does not look at them.
  fileprivate mutating func fillFacts() {
    guard let secret else { return }
    let known: KeychainItem
    switch kind {
    case .genericPassword, .internetPassword: return
    case .certificate:
      guard let facts = try? CertificateFacts(der: secret.withBytes { Array($0) }) else { return }
      known = KeychainItem(facts)
    case .key:
      // A private key in another encoding is none that the attributes could be read from later.
      guard let material = try? KeyMaterial(parsing: secret),
        material.externalRepresentation.constantTimeEquals(secret)
      else { return }
      if let half = self[.keyClass], half != .integer(material.half.rawValue) { return }
      known = KeychainItem(material)
    }
    attributes.merge(known.attributes) { given, _ in given }
  }
}

extension SecItemCaller {
  /// - Throws: `.missingEntitlement` for a caller without any group, `.restrictedAPI` for an App Clip with others' groups.
  func requireWritableGroup() throws(SecItemError) {
    try checkAppClip()
    guard !writableGroups.isEmpty else {
      throw SecItemError(.missingEntitlement, "the app has no access group")
    }
  }

  func requireWritable(_ group: String) throws(SecItemError) {
    guard mayUse(group, writing: true) else {
      throw SecItemError(.missingEntitlement, "the access group is not one that the app may write to")
    }
  }
}

extension SecItemService {
  /// `SecItemUpdate`: changes every item that the query means, or none.
  ///
  /// - Throws: `.itemNotFound`; `.duplicateItem` where a changed item meets another; `.interactionNotAllowed` where one is
  ///   locked, or the class it would get is; `.authFailed`, `.userCanceled`; `.noSuchAttribute` for a change that is no
  ///   attribute; `.missingEntitlement`; what a malformed query gives.
  public func update(
    _ query: SecItemQuery, changes: SecItemQuery, caller: SecItemCaller, keys: borrowing ClassKeys,
    environment: SecItemEnvironment
  ) throws(SecItemError) {
    if let halves = query.halves {
      for half in halves {
        try update(half, changes: changes, caller: caller, keys: keys, environment: environment)
      }
      return
    }
    try caller.requireWritableGroup()
    let parsed = try ParsedQuery(query, for: .update, now: environment.now)
    guard parsed.returns.isEmpty else { throw SecItemError(.parameter, "an update returns nothing") }
    guard parsed.matches.count == 0 else { throw SecItemError(.parameter, "match keys belong to searches") }
    try parsed.checkReferenceAlone()
    let groups = try caller.writable(for: parsed)
    let change = try ParsedChanges(changes, for: parsed.queryClass)
    if let group = change.accessGroup { try caller.requireWritable(group) }
    guard !(change.makesSynchronizable && caller.isAppClip) else {
      throw SecItemError(.restrictedAPI, "an App Clip may not synchronise items")
    }
    let rows = try rows(of: parsed, groups: groups, keys: keys) { (found) throws(SecItemError) in
      try SecItemAuthenticator(parsed, environment).satisfy(
        found, .decrypt, by: SecItemAuthenticator.requirement(toOpen:))
    }
    let policy = parsed.tombstonePolicy(environment)
    try asCall { () throws(KeychainStoreError) in
      for row in rows {
        try store.update(
          row, with: change.changes, keys: keys, now: environment.now, tombstones: policy, random: environment.random)
      }
    }
  }

  /// `SecItemDelete`: deletes every item that the query means. No key is needed, but for tombstones: what is locked or
  /// will never open is deleted all the same.
  ///
  /// - Throws: `.itemNotFound`; `.authFailed`, `.userCanceled` and `.interactionNotAllowed` where an item's access control
  ///   guards its deletion; `.missingEntitlement`; what a malformed query gives.
  public func delete(
    _ query: SecItemQuery, caller: SecItemCaller, keys: borrowing ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) {
    if query.namesIdentityPersistently {
      let search = query.replacing("class", with: .string(QueryClass.identityName)).replacing("r_Ref", with: true)
      let identity = try self.search(search, caller: caller, keys: keys, environment: environment).outcome.get()
      let deletion = query.replacing("class", with: nil).replacing("v_PersistentRef", with: nil)
      return try delete(
        deletion.replacing("v_Ref", with: identity), caller: caller, keys: keys, environment: environment)
    }
    if let halves = query.halves {
      try delete(halves[0], caller: caller, keys: keys, environment: environment)
      if try !isKeyInUse(query, caller: caller, keys: keys, environment: environment) {
        try delete(halves[1], caller: caller, keys: keys, environment: environment)
      }
      return
    }
    try caller.requireWritableGroup()
    let parsed = try ParsedQuery(query, for: .delete, now: environment.now)
    guard parsed.matches.count == 0 else { throw SecItemError(.parameter, "match keys belong to searches") }
    try parsed.checkReferenceAlone()
    let groups = try caller.writable(for: parsed)
    let rows = try rows(of: parsed, groups: groups, keys: keys) { (found) throws(SecItemError) in
      try SecItemAuthenticator(parsed, environment).satisfy(
        found, .delete, by: SecItemAuthenticator.requirement(toDelete:))
    }
    let policy = parsed.tombstonePolicy(environment)
    try asCall { () throws(KeychainStoreError) in
      for row in rows {
        try store.delete(row, keys: keys, now: environment.now, tombstones: policy, random: environment.random)
      }
    }
  }

  /// The rows that a change is for, after a person was asked where one of them needs it. What is locked asks nobody: an
  /// update fails on it, a deletion does not look.
  ///
  /// - Returns: The query itself; for a token's object, which no column tells, its rows.
  private func rows(
    of query: ParsedQuery, groups: ItemQuery.AccessGroups, keys: borrowing ClassKeys,
    asking ask: ([KeychainItem]) throws(SecItemError) -> Void
  ) throws(SecItemError) -> [ItemQuery] {
    guard let kind = query.kind else { throw SecItemError(.parameter, "an identity is changed by its halves") }
    let itemQuery = SecItemMatcher.itemQuery(query, kind: kind, groups: groups) { _ in true }
    var guarded: [KeychainItem] = []
    var objects: [ItemQuery] = []
    try asCall { () throws(KeychainStoreError) in
      try store.read { (transaction) throws(KeychainStoreError) in
        try transaction.forEachRow(matching: itemQuery, keys: keys) { (row) throws(KeychainStoreError) in
          guard let item = row.item, itemQuery.admits(item) else { return }
          if case .token(_, let object) = query.reference {
            guard TokenValue(of: item)?.objectID == object else { return }
            objects.append(ItemQuery(kind: kind, accessGroups: groups, row: row.summary.reference))
          }
          if item[.accessControl] != nil { guarded.append(item) }
        }
      }
    }
    try ask(guarded)
    guard case .token = query.reference else { return [itemQuery] }
    guard !objects.isEmpty else { throw SecItemError(.itemNotFound, "nothing matches the search") }
    return objects
  }

  /// Whether another certificate makes an identity with the key of one that was deleted by reference.
  private func isKeyInUse(
    _ query: SecItemQuery, caller: SecItemCaller, keys: borrowing ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> Bool {
    guard case .identity(_, let key)? = query["v_Ref"]?.referenceValue, let label = key[.applicationLabel]?.dataValue
    else { return false }
    let others = try search(
      ["class": .string(ItemKind.certificate.rawValue), "pkhh": .data(label)], caller: caller, keys: keys,
      environment: environment)
    if case .success = others.outcome { return true }
    return false
  }
}

extension SecItemQuery {
  /// Whether `v_PersistentRef` is an identity's, and nothing says that another class is meant.
  fileprivate var namesIdentityPersistently: Bool {
    let found = self["v_PersistentRef"]?.dataValue.flatMap(QueryReference.parse)
    return found?.className == QueryClass.identityName && self["v_Ref"] == nil
      && [nil, .string(QueryClass.identityName)].contains(self["class"])
  }

  /// The two queries that a query for an identity is taken apart into, that for certificates first; `nil` for any other.
  ///
  /// Source: Apple `SecItem.m` (`explode_identity`, `handleUpdateIdentity`).
  fileprivate var halves: [SecItemQuery]? {
    if let halves = identityReference {
      return [naming(half: halves.certificate), naming(half: halves.key)]
    }
    guard self["v_Ref"] == nil, self["class"] == .string(QueryClass.identityName) else { return nil }
    return [ItemKind.certificate, .key].map { replacing("class", with: .string($0.rawValue)) }
  }
}

extension ParsedQuery {
  /// The query decides; else what is synchronized leaves a tombstone where there is someone to tell.
  fileprivate func tombstonePolicy(_ environment: SecItemEnvironment) -> TombstonePolicy {
    switch usesTombstone {
    case true?: .always
    case false?: .forbid
    case nil: environment.isSyncing ? .leave : .forbid
    }
  }
}

extension SecItemService {
  /// `SecItemCopyMatching`. Rows that no key of this device will ever open are removed on the way, as on a device.
  ///
  /// - Returns: What the return keys ask for: of one item, or an array where the limit is another than one.
  /// - Throws: `.itemNotFound`; `.interactionNotAllowed` where a matching item is locked, or asks for a person who may
  ///   not be asked; `.authFailed`, `.userCanceled`; `.missingEntitlement`; what a malformed query gives.
  public func copyMatching(
    _ query: SecItemQuery, caller: SecItemCaller, keys: borrowing ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemValue? {
    let search = try search(query, caller: caller, keys: keys, environment: environment)
    if !search.undecodable.isEmpty {
      try asCall { () throws(KeychainStoreError) in try store.remove(search.undecodable) }
    }
    return try search.outcome.get()
  }

  /// The same without changing anything: what is to be removed is named.
  ///
  /// - Throws: What is wrong with the query itself, or the caller.
  package func search(
    _ query: SecItemQuery, caller: SecItemCaller, keys: borrowing ClassKeys, environment: SecItemEnvironment
  ) throws(SecItemError) -> SecItemSearch {
    if let halves = query.identityReference {
      return try searchIdentity(query, halves, caller: caller, keys: keys, environment: environment)
    }
    try caller.checkAppClip()
    guard !caller.accessGroups.isEmpty else { throw SecItemError(.missingEntitlement, "the app has no access group") }
    let parsed = try ParsedQuery(query, for: .copyMatching, now: environment.now)
    try parsed.checkSearch()
    let groups = try caller.readable(for: parsed)
    var search = try asCall { () throws(KeychainStoreError) in
      try store.read { (transaction) throws(KeychainStoreError) in
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
    keys: borrowing ClassKeys, environment: SecItemEnvironment
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
        throw SecItemError(.parameter, "a persistent reference and attributes exclude each other")
      }
    case .token: try checkReferenceAlone()
    }
  }

  /// - Throws: `.parameter` where a persistent reference has attributes beside it.
  func checkReferenceAlone() throws(SecItemError) {
    guard reference == nil || attributes.isEmpty else {
      throw SecItemError(.parameter, "a persistent reference and attributes exclude each other")
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

extension SecItemService {
  /// Asks the person for what an operation of a token with a key takes, as the access control says that its maker named.
  ///
  /// - Throws: `.authFailed`, `.userCanceled`; `.interactionNotAllowed` where nobody is there.
  public static func authorize(
    _ operation: AccessOperation, with key: KeychainItem, environment: SecItemEnvironment
  ) throws(SecItemError) {
    guard let operations = TokenValue(of: key)?.accessControl else { return }
    let requirement = AccessControl(protection: .always, operations: operations).requirement(for: operation)
    try SecItemAuthenticator(environment).satisfy([key], operation) { _ in requirement }
  }
}

extension RandomSource {
  /// Bytes that a call needs; where there are none, that is how it ends.
  func bytesForCall(count: Int) throws(SecItemError) -> [UInt8] {
    do throws(KeychainRuleError) {
      return try NewItem.randomBytes(self, count: count)
    } catch {
      throw SecItemError(KeychainStoreError(error))
    }
  }
}
