import Basics
package import KeychainFormats
package import KeychainRules

/// An item in a dump, with the parts that the dump contains unencrypted.
package struct DumpedItem: Sendable {
  /// The item's index among the dump's items, from 0, in the order genp, inet, cert, keys, as in a backup. The dump sets
  /// the index.
  package internal(set) var index = 0
  /// The item's position among all entries of the dump, from 0, including skipped entries.
  package let entryPosition: Int
  /// The table of the item.
  package let kind: ItemKind
  /// The way in which the table was determined.
  package let tableSource: TableSource
  /// The readable parts of the item.
  package let content: Content
  /// Attributes whose values have a type that the attribute cannot have. They are omitted from the item.
  package let unusableAttributes: [AttributeCode]
  /// Whether the dump contains the secret only as text, so that the original bytes may differ.
  package let isSecretRendered: Bool
  /// Whether the stored digest differs from the digest of the decrypted content. Someone with the keys changed the
  /// digest or the content.
  package let hasMismatchedDigest: Bool

  /// The way in which an item's table was determined.
  package enum TableSource: String, Sendable, Hashable {
    /// The dump states the table.
    case stated
    /// The table follows from attributes that only one table has. It may be wrong.
    case inferred
  }

  /// The readable parts of an item.
  package enum Content: Sendable {
    /// The attributes and the secret.
    case open(KeychainItem)
    /// The attributes only, with the reason why the secret is missing; `nil` if the dump has no secret for the item.
    case attributesOnly(KeychainItem, DumpFault?)
    /// Neither part, with the protection class if it is stored outside the encrypted item.
    case undecryptable(DumpFault, protection: ProtectionClass?)
  }

  /// Creates an item of a dump.
  ///
  /// - Parameters:
  ///   - entryPosition: The position among all entries of the dump, from 0.
  ///   - kind: The table of the item.
  ///   - tableSource: The way in which the table was determined.
  ///   - content: The readable parts of the item.
  ///   - unusableAttributes: Attributes whose values have the wrong type.
  ///   - isSecretRendered: Whether the dump contains the secret only as text.
  ///   - hasMismatchedDigest: Whether the stored digest differs from the digest of the decrypted content.
  package init(
    entryPosition: Int, kind: ItemKind, tableSource: TableSource = .stated, content: Content,
    unusableAttributes: [AttributeCode] = [], isSecretRendered: Bool = false, hasMismatchedDigest: Bool = false
  ) {
    self.hasMismatchedDigest = hasMismatchedDigest
    self.entryPosition = entryPosition
    self.kind = kind
    self.tableSource = tableSource
    self.content = content
    self.unusableAttributes = unusableAttributes
    self.isSecretRendered = isSecretRendered
  }

  /// The item in plaintext, with its secret if that could be read; `nil` if the attributes could not be read.
  package var item: KeychainItem? {
    switch content {
    case .open(let item), .attributesOnly(let item, _): item
    case .undecryptable: nil
    }
  }

  /// The reason why the attributes or the secret could not be read; `nil` if both were read, or the dump has no secret
  /// for the item.
  package var fault: DumpFault? {
    switch content {
    case .open: nil
    case .attributesOnly(_, let fault): fault
    case .undecryptable(let fault, _): fault
    }
  }

  /// Whether the dump contains the secret.
  package var hasSecret: Bool { if case .open = content { true } else { false } }

  /// The item's protection class. If the item could not be read, the class comes from the data stored with it. `nil` if
  /// no known class is named.
  package var protection: ProtectionClass? {
    switch content {
    case .open(let item), .attributesOnly(let item, _): item.protection
    case .undecryptable(_, let protection): protection
    }
  }
}

/// The reason why a part of a dumped item cannot be read.
package struct DumpFault: Sendable, Hashable {
  /// The reason, which all reports share.
  package let reason: Reason
  /// The details. They quote no value of the item.
  package let detail: String

  /// Creates a fault.
  package init(_ reason: Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }
}
