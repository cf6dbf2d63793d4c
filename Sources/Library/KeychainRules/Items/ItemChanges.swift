public import Basics
public import KeychainFormats

/// What an update changes in each item it meets.
public struct ItemChanges: Sendable {
  /// New values; `null` removes an attribute.
  public var attributes: AttributeMap<PropertyValue>
  /// New secrets; those not named stay.
  public var secrets: AttributeMap<SensitiveBytes>

  /// Creates changes; without any an update gives the items a new date alone.
  public init(
    attributes: AttributeMap<PropertyValue> = [:], secrets: AttributeMap<SensitiveBytes> = [:]
  ) {
    self.attributes = attributes
    self.secrets = secrets
  }

  /// Attributes that a caller never chooses; given ones are ignored.
  private static let ignored: Set<AttributeCode> = [
    .multiUser, .modificationDate, .digest, .tombstone, .rowID, .uuid, .persistentReference,
  ]

  /// - Throws: `.noSuchAttribute` for what the kind of item doesn't have, `.parameter` for what cannot be changed.
  package func applied(to item: KeychainItem, now: KeychainDate) throws(KeychainRuleError) -> KeychainItem {
    var changed = item
    for (code, value) in attributes where !Self.ignored.contains(code) {
      guard let definition = AttributeTable.definition(of: code, in: item.kind) else {
        throw KeychainRuleError(.noSuchAttribute, "a \(item.kind.reportName) has no \(code.rawValue) attribute")
      }
      guard code != .sharingGroup, code != .appClip, !definition.flags.contains(.returnedAsData) else {
        throw KeychainRuleError(.parameter, "the \(code.rawValue) attribute cannot be changed")
      }
      changed[code] = value == .null ? definition.defaultValue : try converted(value, for: definition)
    }
    changed.secrets.merge(secrets) { _, new in new }
    guard changed.accessGroup != nil, changed.protection != nil else {
      throw KeychainRuleError(.parameter, "an item needs an access group and a known protection class")
    }
    try NewItem.refuseGuardedSynchronization(of: changed)
    changed[.modificationDate] = .date(now.later(than: item.modificationDate))
    return changed
  }

  /// An access control, a dictionary of constraints, is no attribute that Apple's conversion knows.
  private func converted(
    _ value: PropertyValue, for definition: AttributeDefinition
  ) throws(KeychainRuleError) -> PropertyValue {
    definition.kind == .accessControl ? value : try ItemColumns.convert(value, for: definition)
  }
}

extension ItemChanges {
  /// Whether an item has all attributes already that it would have; its new date aside.
  package func attributesChangeNothing(of item: KeychainItem) -> Bool {
    guard let now = item.modificationDate, var changed = try? applied(to: item, now: now) else { return false }
    changed[.modificationDate] = item[.modificationDate]
    return changed.attributes == item.attributes
  }

  /// The same, with its secrets.
  package func changeNothing(of item: KeychainItem) -> Bool {
    attributesChangeNothing(of: item)
      && secrets.allSatisfy { code, secret in item.secrets[code].map { secret.constantTimeEquals($0) } ?? false }
  }
}

extension KeychainItem {
  /// The item is a reference to what a token holds (`tkid`).
  var hasToken: Bool { self[.tokenID]?.stringValue.map { !$0.isEmpty } ?? (self[.tokenID] != nil) }
  /// The item is a shared group's copy (`ggrp`).
  var isSharedCopy: Bool { self[.sharingGroup]?.stringValue.map { !$0.isEmpty } ?? false }
}
