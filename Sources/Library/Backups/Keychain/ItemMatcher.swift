public import KeychainFormats

/// What an item must be called to be meant; a matcher without conditions means every item.
///
/// Compares with the names that a report shows, so that it works on plans as on archives. A sealed item has no names:
/// only its kind can match.
public struct ItemMatcher: Hashable, Sendable {
  /// The kind that is meant; `nil` for any.
  public var kind: ItemKind?
  /// What the label must be; `nil` for anything, also none.
  public var label: ItemPattern?
  /// What the account must be; `nil` for anything, also none.
  public var account: ItemPattern?
  /// What the service must be; `nil` for anything, also none.
  public var service: ItemPattern?
  /// What the server must be; `nil` for anything, also none.
  public var server: ItemPattern?
  /// What the access group must be; `nil` for anything, also none.
  public var accessGroup: ItemPattern?

  /// Creates a matcher; an item is meant where all conditions hold.
  public init(
    kind: ItemKind? = nil, label: ItemPattern? = nil, account: ItemPattern? = nil, service: ItemPattern? = nil,
    server: ItemPattern? = nil, accessGroup: ItemPattern? = nil
  ) {
    self.kind = kind
    self.label = label
    self.account = account
    self.service = service
    self.server = server
    self.accessGroup = accessGroup
  }

  /// Returns whether an item of these names is meant. An item without a name does not meet a condition on it.
  public func matches(_ identity: ItemIdentity) -> Bool {
    if let kind, kind != identity.kind { return false }
    let conditions = [
      (label, identity.label), (account, identity.account), (service, identity.service), (server, identity.server),
      (accessGroup, identity.accessGroup),
    ]
    return conditions.allSatisfy { pattern, name in pattern?.matches(name: name) ?? true }
  }

  /// Whether an item may be meant whose names nobody knows: one that does not open, of a kind that can have what is asked
  /// for. `matches` says of such an item only what its kind says.
  public func mayMean(_ identity: ItemIdentity) -> Bool {
    guard identity.isSealed, identity.names.isEmpty, kind == nil || kind == identity.kind, !matches(identity) else {
      return false
    }
    if let group = identity.accessGroup, let accessGroup, !accessGroup.matches(name: group) { return false }
    let asked: [(ItemPattern?, AttributeCode)] = [
      (label, .label), (account, .account), (service, .service), (server, .server),
    ]
    return asked.allSatisfy { pattern, code in
      pattern == nil || AttributeTable.definition(of: code, in: identity.kind) != nil
    }
  }

  /// Whether a star makes it mean more than one name.
  public var canMatchSeveral: Bool {
    [label, account, service, server, accessGroup].contains { $0.map { $0.text == nil } ?? false }
  }
}
