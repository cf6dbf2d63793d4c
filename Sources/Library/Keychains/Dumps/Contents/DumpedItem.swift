import Basics
package import KeychainFormats
package import KeychainRules

/// One item of a dump: as much of it as the dump gives in clear.
package struct DumpedItem: Sendable {
  /// Its position among the dump's items, counting genp, inet, cert, keys in that order from 0, as in a backup. A dump
  /// sets it when it takes the items.
  package internal(set) var index = 0
  /// Its position in the dump's own order, counted from 0 among all entries, those that were skipped too.
  package let entry: Int
  /// The table that it is of.
  package let kind: ItemKind
  /// How the table is known.
  package let tableSource: TableSource
  /// What of it could be read.
  package let content: Content
  /// Attributes whose values are of a kind that the attribute cannot have; they are not in the item.
  package let unusableAttributes: [AttributeCode]
  /// Whether the secret is only as the dump rendered it as text, so that its bytes may have been others.
  package let isSecretRendered: Bool
  /// Whether the digest that stands with it is another than that of what opens: something was changed, with its keys.
  package let hasOtherDigest: Bool

  /// How it is known which table an item is of.
  package enum TableSource: String, Sendable, Hashable {
    /// The dump says so.
    case stated
    /// From attributes that only one table has; nothing says it is right.
    case inferred
  }

  /// What of an item could be read.
  package enum Content: Sendable {
    /// Attributes and secret.
    case open(KeychainItem)
    /// The attributes alone. Why not the secret: `nil` if the dump simply has none for it.
    case attributesOnly(KeychainItem, DumpFault?)
    /// Neither; the class where something beside the item says it.
    case shut(DumpFault, protection: ProtectionClass?)
  }

  /// Creates an item of a dump.
  ///
  /// - Parameters:
  ///   - entry: Its position in the dump's own order, from 0.
  ///   - kind: The table that it is of.
  ///   - tableSource: How the table is known.
  ///   - content: What of it could be read.
  ///   - unusableAttributes: Attributes whose values had the wrong kind.
  ///   - isSecretRendered: Whether the secret is only a rendering as text.
  ///   - hasOtherDigest: Whether the digest that stands with it is not that of what opens.
  package init(
    entry: Int, kind: ItemKind, tableSource: TableSource = .stated, content: Content,
    unusableAttributes: [AttributeCode] = [], isSecretRendered: Bool = false, hasOtherDigest: Bool = false
  ) {
    self.hasOtherDigest = hasOtherDigest
    self.entry = entry
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
    case .shut: nil
    }
  }

  /// The reason why the attributes or the secret could not be read; `nil` if both were read, or the dump has no secret
  /// for the item.
  package var fault: DumpFault? {
    switch content {
    case .open: nil
    case .attributesOnly(_, let fault): fault
    case .shut(let fault, _): fault
    }
  }

  /// Whether the secret is there.
  package var hasSecret: Bool { if case .open = content { true } else { false } }

  /// The item's protection class. If the item could not be read, the class comes from the data stored with it. `nil` if
  /// no known class is named.
  package var protection: ProtectionClass? {
    switch content {
    case .open(let item), .attributesOnly(let item, _): item.protection
    case .shut(_, let protection): protection
    }
  }
}

/// Why a part of a dumped item does not open.
package struct DumpFault: Sendable, Hashable {
  /// As every report names it.
  package let reason: Reason
  /// The fact found. It quotes no value of the item.
  package let detail: String

  /// Creates a fault.
  package init(_ reason: Reason, _ detail: String) {
    self.reason = reason
    self.detail = detail
  }
}
