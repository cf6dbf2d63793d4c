import KeyhaulKit
import Reports

/// Which items of a device a verb means, from the attributes that the user gave.
///
/// A value without a star has to be equal and is looked up; one with stars is compared with each item that the rest of
/// the selection leaves.
struct ItemSelection {
  let query: ItemQuery
  /// The attributes that are asked for.
  private let askedCodes: Set<AttributeCode>
  let app: String?
  /// Whether anything was asked for: a verb that changes items does not take silence for "all".
  let isRestricted: Bool

  init(_ chosen: ChosenItems) throws(CommandFailure) {
    let (kind, attributes) = (chosen.kind?.kind, chosen.attributes)
    var exact = try attributes.attributes(of: kind)
    var patterns: [AttributeCode: GlobPattern] = [:]
    for (code, text) in attributes.texts {
      let pattern = GlobPattern(text)
      if let text = pattern.text {
        // The bytes are compared, whichever type the value has.
        exact[code] = .string(text)
      } else {
        exact[code] = nil
        patterns[code] = pattern
      }
    }
    askedCodes = Set(exact.keys).union(patterns.keys)
    var groups = ItemQuery.AccessGroups.all
    if let group = attributes.accessGroup.map(GlobPattern.init) {
      if let text = group.text { groups = .only([text]) } else { patterns[.accessGroup] = group }
    }
    let constraints = attributes.constraints
    query = ItemQuery(
      kind: kind, attributes: exact, accessGroups: groups,
      synchronization: attributes.sync ? .synchronizedOnly : .any,
      condition: Self.condition(patterns, constraints))
    app = attributes.app
    isRestricted =
      kind != nil || !exact.isEmpty || query.condition != nil || attributes.accessGroup != nil || attributes.app != nil
      || attributes.sync
  }

  /// Whether an item that no database holds, as one of an archive, is meant.
  func matches(_ item: KeychainItem) -> Bool {
    if let kind = query.kind, kind != item.kind { return false }
    if query.synchronization == .synchronizedOnly, !item.isSynchronizable { return false }
    if case .only(let groups) = query.accessGroups, !groups.contains(where: { $0 == item.accessGroup }) { return false }
    if let condition = query.condition, !condition(item) { return false }
    return query.attributes.allSatisfy { code, value in
      AttributeTable.definition(of: code, in: item.kind) != nil && Self.isSame(value, item[code])
    }
  }

  /// Whether an item is meant of which only names and class are known.
  func matches(_ identity: ItemDescriptor, _ protection: ProtectionClass?) -> Bool {
    matches(KeychainItem(named: identity, protection))
  }

  /// Whether an item may be meant whose names nobody knows: one that does not open, of a kind that can have what is asked
  /// for. Of one whose names are known `matches` tells.
  func couldMatch(_ identity: ItemDescriptor) -> Bool {
    guard identity.isEncrypted, identity.names.isEmpty else { return false }
    if let kind = query.kind, kind != identity.kind { return false }
    return askedCodes.allSatisfy { AttributeTable.definition(of: $0, in: identity.kind) != nil }
  }

  /// Whether an item is meant of which nothing is known but kind and class.
  func matches(undecryptable kind: ItemKind, _ protection: ProtectionClass?) -> Bool {
    matches(ItemDescriptor(undecryptable: kind), protection)
  }

  /// Text and data are the same where their bytes are.
  private static func isSame(_ wanted: PropertyValue, _ value: PropertyValue?) -> Bool {
    guard let value else { return false }
    return switch (bytes(of: wanted), bytes(of: value)) {
    case (let wanted?, let found?): wanted == found
    default: wanted == value
    }
  }

  private static func bytes(of value: PropertyValue) -> [UInt8]? {
    switch value {
    case .string(let text): Array(text.utf8)
    case .data(let bytes): bytes
    default: nil
    }
  }

  private static func condition(
    _ patterns: [AttributeCode: GlobPattern], _ constraints: [AccessConstraint]
  ) -> (@Sendable (KeychainItem) -> Bool)? {
    guard !patterns.isEmpty || !constraints.isEmpty else { return nil }
    return { item in
      patterns.allSatisfy { code, pattern in
        AttributeTable.definition(of: code, in: item.kind) != nil && pattern.matches(item[code])
      } && constraints.allSatisfy(item.asks)
    }
  }

  /// The selection, for a verb that changes items.
  ///
  /// - Throws: `.usage` where nothing was asked for.
  func required(to verb: String) throws(CommandFailure) -> ItemSelection {
    guard isRestricted else {
      throw .usage(
        "no attribute selects the items to \(verb)", why: "without one, this would apply to all items",
        try: "--service NAME, --kind KIND, or --label '*' for all items with a label")
    }
    return self
  }

  /// Refuses an app that the device does not have, and a group that is not one of the app's.
  func check(on openDevice: DeviceSession) throws(CommandFailure) {
    guard case .only(let groups) = query.accessGroups else {
      return try ItemFailure.checkGroups([], of: app, on: openDevice)
    }
    try ItemFailure.checkGroups(groups, of: app, on: openDevice)
  }

  /// The items that are meant.
  ///
  /// - Parameter limit: How many of the rows the database gives, before a condition is looked at.
  func found(
    on openDevice: DeviceSession, wantsSecret: Bool, limit: Int? = nil
  ) throws(CommandFailure) -> [KeychainEntry] {
    try check(on: openDevice)
    var query = query
    query.wantsSecret = wantsSecret
    query.limit = limit
    do throws(KeyhaulError) {
      return KeychainEntry.all(of: try openDevice.find(query, as: app))
    } catch {
      throw ItemFailure.finding(error, on: openDevice)
    }
  }

  /// What a deletion would delete, in the order of the kinds, then of the rows.
  func rows(on openDevice: DeviceSession, to verb: String) throws(CommandFailure) -> [KeychainEntry] {
    try check(on: openDevice)
    do throws(KeyhaulError) {
      return try openDevice.rows(matching: query, as: app).map { KeychainEntry($0) }
    } catch {
      throw ItemFailure.changing(error, verb, on: openDevice)
    }
  }
}

extension KeychainItem {
  /// Whether the item's access control has this constraint, whatever else it has.
  fileprivate func asks(for constraint: AccessConstraint) -> Bool {
    func requirements(_ control: PropertyDictionary?) -> [PropertyValue] {
      (control?["od"]?.dictionaryValue?.entries ?? []).map(\.key)
    }
    let wanted = requirements(AccessConstraint.operations([constraint]))
    return !wanted.isEmpty && wanted.allSatisfy(requirements(self[.accessControl]?.dictionaryValue).contains)
  }
}
