package import Basics
package import KeychainFormats
import KeychainRules

/// What is different about an item that two keychains have. Values are never part of it, nor are their lengths.
package struct ItemChange: Sendable, Equatable {
  /// The names in the first list.
  package let before: ItemIdentity
  /// The names in the second list, which differ where a name was changed that is in no primary key.
  package let after: ItemIdentity
  /// The class that it has in the second list.
  package let protection: ProtectionClass?
  /// Its position in either list.
  package let indexBefore: Int
  /// Its position in the second list.
  package let indexAfter: Int
  /// The attributes that differ, dates among them, in the order of Apple's schema and then those that it does not know.
  package let attributes: [AttributeCode]
  /// Whether the secret differs: `v_Data`, or what an internet password holds besides.
  package let isSecretChanged: Bool
  /// The date of the last change in the first list; `nil` if it has none.
  package let modifiedBefore: KeychainDate?
  /// The date of the last change in the second list; `nil` if it has none.
  package let modifiedAfter: KeychainDate?

  /// Only the date of the last change differs.
  package var isOnlyModificationDate: Bool { !isSecretChanged && attributes == [.modificationDate] }

  /// "secret and label changed", "only its date changed"
  package var words: String {
    guard !isOnlyModificationDate else { return "only its date changed" }
    let names = attributes.filter { $0 != .modificationDate }.map { code in
      AttributeTable.definition(of: code, in: after.kind)?.words ?? code.rawValue
    }
    return HumanReadable.list((isSecretChanged ? ["secret"] : []) + names) + " changed"
  }

  /// - Returns: `nil` if the two are the same.
  init?(_ before: KeychainEntry, _ old: KeychainItem, _ after: KeychainEntry, _ new: KeychainItem) {
    let attributes = Self.differingAttributes(old, before.scope, new, after.scope)
    let isSecretChanged = !before.leavesSecretOpen(beside: after) && !Self.haveSameSecrets(old, new)
    guard !attributes.isEmpty || isSecretChanged else { return nil }
    self.before = before.identity
    self.after = after.identity
    protection = after.protection
    indexBefore = before.position
    indexAfter = after.position
    self.attributes = attributes
    self.isSecretChanged = isSecretChanged
    modifiedBefore = old.modificationDate
    modifiedAfter = new.modificationDate
  }

  /// What follows from the others, or only says which row of a database an item is in. A restore sets all but the digest
  /// again, and an export drops the access control, so that they say nothing about the item.
  ///
  /// Source: Apple `SecItemDb.c` (`SecServerImportItem`, `s3dl_export_row`).
  private static let bookkeeping: Set<AttributeCode> = [
    .digest, .persistentReference, .uuid, .multiUser, .rowID, .primaryKeyDigest, .accessControl,
  ]

  private static func differingAttributes(
    _ old: KeychainItem, _ oldScope: KeychainEntry.Scope, _ new: KeychainItem, _ newScope: KeychainEntry.Scope
  ) -> [AttributeCode] {
    if areAlike(old, new) { return [] }
    let hasWholeSeconds = oldScope.hasWholeSeconds || newScope.hasWholeSeconds
    let known = AttributeTable.definitions(of: new.kind).map(\.code)
    let others = Set(old.attributes.keys).union(new.attributes.keys).subtracting(known).sorted()
    return (known + others).filter { code in
      guard !bookkeeping.contains(code), oldScope.tells(code), newScope.tells(code) else { return false }
      let (old, new) = (value(of: code, in: old), value(of: code, in: new))
      return !(hasWholeSeconds && isSameSecond(old, new)) && !isSame(old, new)
    }
  }

  /// Whether two items have the same attributes in the same order, each with the same value: most pairs do, and nothing
  /// has to be converted then. Those of bookkeeping may differ.
  private static func areAlike(_ old: KeychainItem, _ new: KeychainItem) -> Bool {
    if old.hasSamePackedContent(as: new) { return true }
    return old.kind == new.kind && old.attributes.keys == new.attributes.keys
      && old.attributes.indices.allSatisfy { place in
        let (code, value) = old.attributes[place]
        return isIdentical(value, new.attributes[place].value) || bookkeeping.contains(code)
      }
  }

  /// Whether two values are the same in whatever an attribute makes of them.
  private static func isIdentical(_ old: PropertyValue, _ new: PropertyValue) -> Bool {
    if case (.string(let old), .string(let new)) = (old, new) { return old.hasSameBytes(as: new) }
    return old == new
  }

  /// Whether two dates differ in no more than what one of them was cut or rounded by.
  private static func isSameSecond(_ old: PropertyValue?, _ new: PropertyValue?) -> Bool {
    guard let old = old?.dateValue, let new = new?.dateValue else { return false }
    return abs(old.secondsSinceReferenceDate - new.secondsSinceReferenceDate) < 1
  }

  /// As a database would take it in: an attribute that may not be absent counts with its default where it is, and a part
  /// of the primary key that may be counts as empty.
  static func value(of code: AttributeCode, in item: KeychainItem) -> PropertyValue? {
    guard let definition = AttributeTable.definition(of: code, in: item.kind) else { return item[code] }
    if let value = item[code] { return AttributeConversion.convert(value, for: definition.kind) ?? value }
    return definition.defaultValue ?? (definition.flags.contains(.primaryKey) ? .string("") : nil)
  }

  /// Text and data are the same where their bytes are, as in a hashed column; dates count by their moment, not by their
  /// digits.
  static func isSame(_ old: PropertyValue?, _ new: PropertyValue?) -> Bool {
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
      // An item that was stored with nothing and one that was stored without anything read alike.
      case (let only?, nil), (nil, let only?): only.isEmpty
      case (nil, nil): true
      }
    }
  }
}
