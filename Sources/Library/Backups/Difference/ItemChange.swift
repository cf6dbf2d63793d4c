package import Basics
package import KeychainFormats
import KeychainRules

/// The differences of an item between two lists of keychain items, without values and their lengths.
package struct ItemChange: Sendable, Equatable {
  /// The item's names in the first list.
  package let identityBefore: ItemDescriptor
  /// The item's names in the second list. Names outside the primary key can differ.
  package let identityAfter: ItemDescriptor
  /// The item's class in the second list.
  package let protection: ProtectionClass?
  /// The item's position in the first list.
  package let positionBefore: Int
  /// The item's position in the second list.
  package let positionAfter: Int
  /// The attributes that differ, including dates, in the order of Apple's schema, then unknown ones.
  package let attributes: [AttributeCode]
  /// Whether the secret differs: `v_Data`, or the additional secret of an internet password.
  package let isSecretChanged: Bool
  /// The modification date in the first list, or `nil` if the item has none.
  package let modifiedBefore: KeychainDate?
  /// The modification date in the second list, or `nil` if the item has none.
  package let modifiedAfter: KeychainDate?

  /// Whether only the modification date differs.
  package var isOnlyModificationDate: Bool { !isSecretChanged && attributes == [.modificationDate] }

  /// The description, such as "secret and label changed" or "only its date changed".
  package var summary: String {
    guard !isOnlyModificationDate else { return "only its date changed" }
    let names = attributes.filter { $0 != .modificationDate }.map { code in
      AttributeTable.definition(of: code, in: identityAfter.kind)?.displayName ?? code.rawValue
    }
    return HumanReadable.list((isSecretChanged ? ["secret"] : []) + names) + " changed"
  }

  /// Compares two items, or returns `nil` if they are equal.
  ///
  /// - Parameters:
  ///   - before: The entry in the first list.
  ///   - old: The decrypted item of that entry.
  ///   - after: The entry in the second list.
  ///   - new: The decrypted item of that entry.
  init?(
    from before: KeychainEntry, decryptedTo old: KeychainItem, to after: KeychainEntry, decryptedTo new: KeychainItem
  ) {
    let attributes = Self.differingAttributes(old, before.scope, new, after.scope)
    let isSecretChanged = !before.cannotCompareSecret(with: after) && !Self.haveSameSecrets(old, new)
    guard !attributes.isEmpty || isSecretChanged else { return nil }
    identityBefore = before.identity
    identityAfter = after.identity
    protection = after.protection
    positionBefore = before.position
    positionAfter = after.position
    self.attributes = attributes
    self.isSecretChanged = isSecretChanged
    modifiedBefore = old.modificationDate
    modifiedAfter = new.modificationDate
  }

  /// Attributes that are not compared. They derive from other attributes, identify a row, or (the access control) are
  /// missing in exports. A restore sets all of them again except the digest.
  ///
  /// Source: Apple `SecItemDb.c` (`SecServerImportItem`, `s3dl_export_row`).
  private static let bookkeeping: Set<AttributeCode> = [
    .digest, .persistentReference, .uuid, .multiUser, .rowID, .primaryKeyDigest, .accessControl,
  ]

  private static func differingAttributes(
    _ old: KeychainItem, _ oldScope: KeychainEntry.Scope, _ new: KeychainItem, _ newScope: KeychainEntry.Scope
  ) -> [AttributeCode] {
    if haveEqualAttributes(old, new) { return [] }
    let hasWholeSeconds = oldScope.hasWholeSeconds || newScope.hasWholeSeconds
    let definedCodes = AttributeTable.definitions(of: new.kind).map(\.code)
    let undefinedCodes = Set(old.attributes.keys).union(new.attributes.keys).subtracting(definedCodes).sorted()
    return (definedCodes + undefinedCodes).filter { code in
      guard !bookkeeping.contains(code), oldScope.includes(code), newScope.includes(code) else { return false }
      let (old, new) = (value(of: code, in: old), value(of: code, in: new))
      return !(hasWholeSeconds && isSameSecond(old, new)) && !isEquivalent(old, new)
    }
  }

  /// Returns whether two items have equal attributes in the same order. This fast path covers most pairs without a
  /// conversion. Bookkeeping attributes may differ.
  private static func haveEqualAttributes(_ old: KeychainItem, _ new: KeychainItem) -> Bool {
    if old.hasSamePackedContent(as: new) { return true }
    return old.kind == new.kind && old.attributes.keys == new.attributes.keys
      && old.attributes.indices.allSatisfy { index in
        let (code, value) = old.attributes[index]
        return isExactlyEqual(value, new.attributes[index].value) || bookkeeping.contains(code)
      }
  }

  /// Returns whether two values have the same type and content, so that they are equal for any attribute.
  private static func isExactlyEqual(_ old: PropertyValue, _ new: PropertyValue) -> Bool {
    if case (.string(let old), .string(let new)) = (old, new) { return old.hasSameBytes(as: new) }
    return old == new
  }

  /// Returns whether two dates are equal, apart from truncation or rounding.
  private static func isSameSecond(_ old: PropertyValue?, _ new: PropertyValue?) -> Bool {
    guard let old = old?.dateValue, let new = new?.dateValue else { return false }
    return abs(old.secondsSinceReferenceDate - new.secondsSinceReferenceDate) < 1
  }

  /// Returns the value of an attribute as a database stores it. A missing mandatory attribute has its default, and a
  /// missing part of the primary key is empty.
  static func value(of code: AttributeCode, in item: KeychainItem) -> PropertyValue? {
    guard let definition = AttributeTable.definition(of: code, in: item.kind) else { return item[code] }
    if let value = item[code] { return AttributeConversion.convert(value, for: definition.kind) ?? value }
    return definition.defaultValue ?? (definition.flags.contains(.primaryKey) ? .string("") : nil)
  }

  /// Returns whether two values are equal for a database. Text and data with the same bytes are equal, because a hashed
  /// column does not distinguish them. Dates are equal if they are the same moment.
  static func isEquivalent(_ old: PropertyValue?, _ new: PropertyValue?) -> Bool {
    switch (old, new) {
    case (.date(let old)?, .date(let new)?): old.secondsSinceReferenceDate == new.secondsSinceReferenceDate
    case (.string(let text), .data(let bytes)), (.data(let bytes), .string(let text)): text.utf8.elementsEqual(bytes)
    case (.string(let old)?, .string(let new)?): old.utf8.elementsEqual(new.utf8)
    default: old == new
    }
  }

  private static func haveSameSecrets(_ old: KeychainItem, _ new: KeychainItem) -> Bool {
    if old.secrets.keys == new.secrets.keys {
      return old.secrets.indices.allSatisfy { old.secrets[$0].value.constantTimeEquals(new.secrets[$0].value) }
    }
    return Set(old.secrets.keys).union(new.secrets.keys).allSatisfy { code in
      switch (old.secrets[code], new.secrets[code]) {
      case (let old?, let new?): old.constantTimeEquals(new)
      // An item with empty data is read like one without data.
      case (let secret?, nil), (nil, let secret?): secret.isEmpty
      case (nil, nil): true
      }
    }
  }
}
