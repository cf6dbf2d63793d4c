package import Basics
public import KeychainFormats
package import KeychainRules

/// Where a row is: its table and its number in it.
package struct RowReference: Hashable, Sendable {
  /// The table.
  package let kind: ItemKind
  /// The row's number in the table.
  package let rowID: Int64

  /// Creates a reference to a row.
  package init(kind: ItemKind, rowID: Int64) {
    self.kind = kind
    self.rowID = rowID
  }
}

/// What the columns of one row say, readable without any key. Columns are not authenticated: an opened item's own
/// attributes count, these serve rows that cannot be opened.
public struct RowSummary: Sendable {
  /// Where the row is.
  package let reference: RowReference
  /// Equal to `PrimaryKey(of:)` of the item in clear that would collide with this row.
  package let primaryKey: PrimaryKey
  /// The access group of the column; empty for an item without one.
  package let accessGroup: String
  /// The code of the protection class, as the column has it.
  package let protectionCode: String?
  /// True for `sync` 1.
  package let isSynchronizable: Bool
  /// True for any `tomb` but 0: no search finds such a row.
  package let isTombstone: Bool
  /// True for `clip` 1: an App Clip made the item.
  package let isAppClip: Bool
  /// Whether a token, such as the Secure Enclave, holds the secret.
  package let hasTokenID: Bool
  /// The shared group that the row is a copy for; `nil` if the row is not such a copy.
  package let sharingGroup: String?
  /// Empty for the single user.
  package let multiUser: [UInt8]
  /// `mdat`; `nil` if the column holds no number.
  package let modificationDate: KeychainDate?
  /// The stored digest of the item (SHA-1), `nil` if the column holds no bytes.
  package let digest: [UInt8]?
  /// The item's own UUID in text, where it has one.
  package let uuid: String?
  /// 16 bytes in a sound row.
  package let persistentReference: [UInt8]

  /// Whether `RestoreTransaction.deleteNonSynced` removes the row.
  package let isRemovedByRestore: Bool

  /// The table's kind.
  package var kind: ItemKind { reference.kind }
  /// The protection class of the column; `nil` for a code that is none.
  public var protection: ProtectionClass? { protectionCode.flatMap(ProtectionClass.init(rawValue:)) }
}

/// One row: what its columns say and what it opens to.
package struct KeychainRow: Sendable {
  /// What a row opens to.
  package enum Content: Sendable {
    /// An access control that guards the item is its attribute `accc`.
    case item(KeychainItem)
    /// Why it does not open, now or ever.
    case fault(RowFault)
  }

  /// What the columns say.
  package let summary: RowSummary
  /// What the row opens to, or why it does not.
  package let content: Content

  /// Creates a row of the two.
  package init(summary: RowSummary, content: Content) {
    self.summary = summary
    self.content = content
  }

  /// The opened item, `nil` if the row has a fault.
  package var item: KeychainItem? { if case .item(let item) = content { item } else { nil } }
  /// Why the row does not open; `nil` if it does.
  package var fault: RowFault? { if case .fault(let fault) = content { fault } else { nil } }
}

/// A row as it was read: its columns' facts and the sealed item.
struct RawRow {
  let summary: RowSummary
  /// The content of `data`, `nil` if it is not a blob.
  let sealedItem: [UInt8]?
}

extension ExistingRow {
  /// What an opened row is to an item that collides with it.
  ///
  /// - Throws: `.notAvailable` where a digest cannot be computed.
  package init(_ row: KeychainRow) throws(KeyhaulError) {
    switch row.content {
    case .fault(let fault): self.init(state: fault.isPermanent ? .corrupt : .unreadable(fault))
    case .item(let item):
      // Sound is what names its group and class and is what its stored digest says.
      guard item.accessGroup != nil, item.protection != nil, let digest = try? item.storedDigest(),
        digest == row.summary.digest
      else {
        self.init(state: .corrupt)
        return
      }
      self = try byRule(try ExistingRow(storing: item))
    }
  }
}
