import KeyhaulKit
import Reports

/// The items that a command selects by attributes.
///
/// The database finds the items that have exactly the values without a star. Values with stars are patterns, which are
/// then compared with each of these items.
struct ItemSelection {
  let query: ItemQuery
  /// The attributes that the user gave. An item cannot match if its kind lacks one of them.
  private let requestedCodes: Set<AttributeCode>
  let app: String?
  /// Whether any attribute was given. A command that changes items requires one, so that it never changes all items.
  let isRestricted: Bool

  init(_ filter: ItemFilterOptions) throws(CommandError) {
    let (kind, attributes) = (filter.kind?.kind, filter.attributes)
    var exactValues = try attributes.attributes(of: kind)
    var patterns: [AttributeCode: GlobPattern] = [:]
    for (code, text) in attributes.texts {
      let pattern = GlobPattern(text)
      if let exactText = pattern.text {
        // The bytes are compared, whichever type the value has.
        exactValues[code] = .string(exactText)
      } else {
        exactValues[code] = nil
        patterns[code] = pattern
      }
    }
    requestedCodes = Set(exactValues.keys).union(patterns.keys)
    var accessGroups = ItemQuery.AccessGroups.all
    if let pattern = attributes.accessGroup.map(GlobPattern.init) {
      if let exactText = pattern.text { accessGroups = .only([exactText]) } else { patterns[.accessGroup] = pattern }
    }
    query = ItemQuery(
      kind: kind, attributes: exactValues, accessGroups: accessGroups,
      synchronization: attributes.sync ? .synchronizedOnly : .any,
      condition: Self.condition(patterns, attributes.constraints))
    app = attributes.app
    isRestricted =
      kind != nil || !exactValues.isEmpty || query.condition != nil || attributes.accessGroup != nil
      || attributes.app != nil || attributes.sync
  }

  /// Returns whether an item matches, for items that are not in a database, such as those of a backup.
  func matches(_ item: KeychainItem) -> Bool {
    if let kind = query.kind, kind != item.kind { return false }
    if query.synchronization == .synchronizedOnly, !item.isSynchronizable { return false }
    if case .only(let groups) = query.accessGroups, !groups.contains(where: { $0 == item.accessGroup }) { return false }
    if let condition = query.condition, !condition(item) { return false }
    return query.attributes.allSatisfy { code, value in
      AttributeTable.definition(of: code, in: item.kind) != nil && Self.isSame(value, item[code])
    }
  }

  /// Returns whether an item matches, if only its names and class are known.
  func matches(_ identity: ItemDescriptor, protection: ProtectionClass?) -> Bool {
    matches(KeychainItem(named: identity, protection))
  }

  /// Returns whether an item without known names could match: one that cannot be decrypted, of a kind that has the
  /// requested attributes. For an item with known names, `matches` decides.
  func couldMatch(_ identity: ItemDescriptor) -> Bool {
    guard identity.isEncrypted, identity.names.isEmpty else { return false }
    if let kind = query.kind, kind != identity.kind { return false }
    return requestedCodes.allSatisfy { AttributeTable.definition(of: $0, in: identity.kind) != nil }
  }

  /// Returns whether an item matches, if only its kind and class are known.
  func matches(undecryptable kind: ItemKind, protection: ProtectionClass?) -> Bool {
    matches(ItemDescriptor(undecryptable: kind), protection: protection)
  }

  /// Compares values. Text and data are equal if their bytes are.
  private static func isSame(_ expected: PropertyValue, _ stored: PropertyValue?) -> Bool {
    guard let stored else { return false }
    return switch (bytes(of: expected), bytes(of: stored)) {
    case (let expectedBytes?, let storedBytes?): expectedBytes == storedBytes
    default: expected == stored
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
      } && constraints.allSatisfy(item.requires)
    }
  }

  /// Returns the selection, for a command that changes or deletes items.
  ///
  /// - Parameter verb: "update" or "delete".
  /// - Throws: `.usage` if no attribute was given.
  func required(to verb: String) throws(CommandError) -> ItemSelection {
    guard isRestricted else {
      throw .usage(
        "no attribute selects the items to \(verb)", why: "without one, this would apply to all items",
        try: "--service NAME, --kind KIND, or --label '*' for all items with a label")
    }
    return self
  }

  /// Rejects an app that the device does not have, and an access group that the app does not have.
  func check(on openDevice: DeviceSession) throws(CommandError) {
    guard case .only(let groups) = query.accessGroups else {
      return try ItemError.checkGroups([], of: app, on: openDevice)
    }
    try ItemError.checkGroups(groups, of: app, on: openDevice)
  }

  /// Returns the matching items of a device.
  ///
  /// - Parameter limit: The maximum number of rows that the database returns before conditions are checked; `nil` if
  ///   there is no limit.
  func items(
    on openDevice: DeviceSession, wantsSecret: Bool, limit: Int? = nil
  ) throws(CommandError) -> [KeychainEntry] {
    try check(on: openDevice)
    var query = query
    query.wantsSecret = wantsSecret
    query.limit = limit
    do throws(KeyhaulError) {
      return KeychainEntry.entries(of: try openDevice.find(query, as: app))
    } catch {
      throw ItemError.finding(error, on: openDevice)
    }
  }

  /// Returns the matching items for a change or deletion, ordered by kind and row.
  ///
  /// - Parameter verb: "change" or "delete".
  func rows(on openDevice: DeviceSession, to verb: String) throws(CommandError) -> [KeychainEntry] {
    try check(on: openDevice)
    do throws(KeyhaulError) {
      return try openDevice.rows(matching: query, as: app).map { KeychainEntry($0) }
    } catch {
      throw ItemError.committing(error, verb: verb, on: openDevice)
    }
  }
}

extension KeychainItem {
  /// Returns whether the access control contains a constraint, alone or with others.
  fileprivate func requires(_ constraint: AccessConstraint) -> Bool {
    func requirements(_ control: PropertyDictionary?) -> [PropertyValue] {
      (control?[AccessOperation.decrypt.rawValue]?.dictionaryValue?.entries ?? []).map(\.key)
    }
    let expectedRequirements = requirements(AccessConstraint.operations([constraint]))
    let existingRequirements = requirements(self[.accessControl]?.dictionaryValue)
    return !expectedRequirements.isEmpty && expectedRequirements.allSatisfy(existingRequirements.contains)
  }
}
