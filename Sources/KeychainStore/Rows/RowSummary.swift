public import KeychainFormats
public import KeychainRules

/// Where a row is: its table and its number in it.
public struct RowReference: Hashable, Sendable {
  public let kind: ItemKind
  public let rowID: Int64

  public init(kind: ItemKind, rowID: Int64) {
    self.kind = kind
    self.rowID = rowID
  }
}

/// What the columns of one row say, readable without any key. Columns are not authenticated: an opened item's own
/// attributes count, these serve rows that cannot be opened.
public struct RowSummary: Sendable {
  public let reference: RowReference
  /// Equal to `PrimaryKey(of:)` of the item in clear that would collide with this row.
  public let primaryKey: PrimaryKey
  public let accessGroup: String
  /// The code of the protection class, as the column has it.
  public let protectionCode: String?
  public let isSynchronizable: Bool
  public let isTombstone: Bool
  public let isAppClip: Bool
  /// Whether a token, such as the Secure Enclave, holds the secret.
  public let hasTokenID: Bool
  /// The shared group the row is a copy for; `nil` where there is none.
  public let sharingGroup: String?
  /// Empty for the single user.
  public let multiUser: [UInt8]
  public let modificationDate: KeychainDate?
  /// The stored digest of the item (SHA-1), `nil` where the column holds no bytes.
  public let digest: [UInt8]?
  public let uuid: String?
  /// 16 bytes in a sound row.
  public let persistentReference: [UInt8]

  /// Whether `RestoreTransaction.deleteNonSynced` removes the row.
  public let isRemovedByRestore: Bool

  public var kind: ItemKind { reference.kind }
  public var protection: ProtectionClass? { protectionCode.flatMap(ProtectionClass.init(rawValue:)) }
}

/// One row: what its columns say and what it opens to.
public struct KeychainRow: Sendable {
  public enum Content: Sendable {
    /// An access control that guards the item is its attribute `accc`.
    case item(KeychainItem)
    case fault(RowFault)
  }

  public let summary: RowSummary
  public let content: Content

  public init(summary: RowSummary, content: Content) {
    self.summary = summary
    self.content = content
  }

  /// The opened item, `nil` where the row has a fault.
  public var item: KeychainItem? { if case .item(let item) = content { item } else { nil } }
  public var fault: RowFault? { if case .fault(let fault) = content { fault } else { nil } }
}
