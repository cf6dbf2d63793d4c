package import Basics
package import KeychainFormats

/// The changes that an update makes to each matching item.
package struct ItemChanges: Sendable {
  /// New values by attribute; `null` removes an attribute.
  package var attributes: AttributeMap<PropertyValue>
  /// New secrets by attribute; other secrets stay.
  package var secrets: AttributeMap<SensitiveBytes>

  /// Creates changes; without any, an update changes only the modification date.
  package init(
    attributes: AttributeMap<PropertyValue> = [:], secrets: AttributeMap<SensitiveBytes> = [:]
  ) {
    self.attributes = attributes
    self.secrets = secrets
  }

  /// The attributes that callers cannot set; changes to them are ignored.
  private static let ignoredCodes: Set<AttributeCode> = [
    .multiUser, .modificationDate, .digest, .tombstone, .rowID, .uuid, .persistentReference,
  ]

  /// The attributes that only the keychain sets; an update that names one is refused.
  package static let refusedCodes: Set<AttributeCode> = [.sharingGroup, .appClip]

  /// Returns an item with the changes applied and a new modification date.
  ///
  /// - Parameters:
  ///   - item: The item to change.
  ///   - now: The current date; the item's new date is always later than its old one.
  /// - Throws: `.noSuchAttribute` if the kind of item does not have an attribute; `.parameter` if an attribute cannot
  ///   be changed or the item would lack an access group or a known protection class.
  package func applied(to item: KeychainItem, now: KeychainDate) throws(KeychainRuleError) -> KeychainItem {
    var changed = item
    for (code, value) in attributes where !Self.ignoredCodes.contains(code) {
      guard let definition = AttributeTable.definition(of: code, in: item.kind) else {
        throw KeychainRuleError(.noSuchAttribute, "a \(item.kind.reportName) has no \(code.rawValue) attribute")
      }
      guard !Self.refusedCodes.contains(code), !definition.flags.contains(.returnedAsData) else {
        throw KeychainRuleError(.parameter, "the \(code.rawValue) attribute cannot be changed")
      }
      changed[code] = value == .null ? definition.defaultValue : try converted(value, for: definition)
    }
    changed.secrets.merge(secrets) { _, newSecret in newSecret }
    guard changed.accessGroup != nil, changed.protection != nil else {
      throw KeychainRuleError(.parameter, "an item needs an access group and a known protection class")
    }
    try NewItemDefaults.rejectSynchronizedAccessControl(in: changed)
    changed[.modificationDate] = .date(now.later(than: item.modificationDate))
    return changed
  }

  /// Returns the converted value. An access control stays as it is, because it is a dictionary of constraints.
  private func converted(
    _ value: PropertyValue, for definition: AttributeDefinition
  ) throws(KeychainRuleError) -> PropertyValue {
    definition.kind == .accessControl ? value : try ItemColumns.convert(value, for: definition)
  }
}

extension ItemChanges {
  /// Returns whether the changes would change no attribute of an item, apart from its date.
  package func attributesAreNoOp(for item: KeychainItem) -> Bool {
    guard let now = item.modificationDate, var changed = try? applied(to: item, now: now) else { return false }
    changed[.modificationDate] = item[.modificationDate]
    return changed.attributes == item.attributes
  }

  /// Returns whether the changes would change no attribute and no secret of an item, apart from its date.
  package func isNoOp(for item: KeychainItem) -> Bool {
    attributesAreNoOp(for: item)
      && secrets.allSatisfy { code, secret in item.secrets[code].map { secret.constantTimeEquals($0) } ?? false }
  }
}

extension KeychainItem {
  /// Whether the item refers to an object on a token (`tkid`).
  package var hasToken: Bool {
    guard let tokenID = self[.tokenID] else { return false }
    // A value of any other type counts as a token.
    return tokenID.stringValue.map { !$0.isEmpty } ?? true
  }

  /// Whether the item is a shared group's copy (`ggrp`).
  var isSharedCopy: Bool { self[.sharingGroup]?.stringValue.map { !$0.isEmpty } ?? false }
}
