package import Basics
public import KeychainFormats
package import KeychainRules

/// A row's table, and the row's number in the table.
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

/// The column values of a row, which can be read without a key. Columns are not authenticated: use the attributes of
/// the decrypted item if there is one.
public struct RowSummary: Sendable {
  /// The row's table and number.
  package let reference: RowReference
  /// The primary key, equal to `PrimaryKey(of:)` of a decrypted item that would conflict with this row.
  package let primaryKey: PrimaryKey
  /// The access group in the column; empty for an item without one.
  package let accessGroup: String
  /// The code of the protection class in the column.
  package let protectionCode: String?
  /// Whether the item is synchronized (`sync` 1).
  package let isSynchronizable: Bool
  /// Whether the row is a tombstone (`tomb` is not 0).
  package let isTombstone: Bool
  /// Whether an App Clip made the item (`clip` is not 0).
  package let isAppClip: Bool
  /// Whether a token, such as the Secure Enclave, stores the secret.
  package let hasTokenID: Bool
  /// The sharing group of a shared copy; `nil` if the row is not a shared copy.
  package let sharingGroup: String?
  /// The user of the row; empty for the single user.
  package let multiUser: [UInt8]
  /// The modification date; `nil` if the column does not contain a number.
  package let modificationDate: KeychainDate?
  /// The stored SHA-1 digest of the item; `nil` if the column does not contain a blob.
  package let digest: [UInt8]?
  /// The item's UUID as text, or `nil` if it has none.
  package let uuid: String?
  /// The persistent reference: 16 bytes in a valid row.
  package let persistentReference: [UInt8]

  /// Whether `RestoreTransaction.deleteNonSynced` removes the row.
  package let isRemovedByRestore: Bool

  /// Creates the summary of a row. A column with a value of the wrong type counts as empty.
  init(
    reference: RowReference, primaryKey: PrimaryKey, digest: [UInt8]?, columns: [AttributeCode: ColumnValue]
  ) {
    self.reference = reference
    self.primaryKey = primaryKey
    self.digest = digest
    accessGroup = columns[.accessGroup]?.textValue ?? ""
    protectionCode = columns[.protection]?.textValue
    isSynchronizable = columns[.synchronizable]?.integerValue == 1
    isTombstone = (columns[.tombstone]?.integerValue ?? 0) != 0
    isAppClip = (columns[.appClip]?.integerValue ?? 0) != 0
    hasTokenID = !(columns[.tokenID]?.textValue ?? "").isEmpty
    let sharingGroup = columns[.sharingGroup]?.textValue ?? ""
    self.sharingGroup = sharingGroup.isEmpty ? nil : sharingGroup
    multiUser = columns[.multiUser]?.blobValue ?? []
    modificationDate = columns[.modificationDate]?.realValue.map { KeychainDate(secondsSinceReferenceDate: $0) }
    uuid = columns[.uuid]?.textValue
    persistentReference = columns[.persistentReference]?.blobValue ?? []
    isRemovedByRestore = RestoreRemoval.removes(columns)
  }

  /// The kind of items in the table.
  package var kind: ItemKind { reference.kind }
  /// The protection class in the column; `nil` if the code is unknown.
  public var protection: ProtectionClass? { protectionCode.flatMap(ProtectionClass.init(rawValue:)) }
}

/// A row's column values and its decrypted content.
package struct KeychainRow: Sendable {
  /// The result of decrypting a row.
  package enum Content: Sendable {
    /// The decrypted item. Its access control, if any, is the attribute `accc`.
    case item(KeychainItem)
    /// The reason why the row cannot be decrypted.
    case fault(RowFault)
  }

  /// The column values.
  package let summary: RowSummary
  /// The decrypted item, or the reason why the row cannot be decrypted.
  package let content: Content

  /// Creates a row.
  package init(summary: RowSummary, content: Content) {
    self.summary = summary
    self.content = content
  }

  /// The decrypted item, or `nil` if the row has a fault.
  package var item: KeychainItem? { if case .item(let item) = content { item } else { nil } }
  /// The reason why the row cannot be decrypted; `nil` if it was decrypted.
  package var fault: RowFault? { if case .fault(let fault) = content { fault } else { nil } }
}

/// A row before decryption.
struct RawRow {
  let summary: RowSummary
  /// The content of `data`; `nil` if it is not a blob.
  let encryptedItem: [UInt8]?
}

extension ExistingRow {
  /// Creates the description of a row for resolving a conflict with an imported item.
  ///
  /// - Throws: `.notAvailable` if a digest cannot be computed.
  package init(_ row: KeychainRow) throws(KeyhaulError) {
    switch row.content {
    case .fault(let fault): self.init(state: fault.isPermanent ? .corrupt : .unreadable(fault))
    case .item(let item):
      // A valid item has a group and a class, and its digest equals the stored one.
      guard item.accessGroup != nil, item.protection != nil, let digest = try? item.storedDigest(),
        digest == row.summary.digest
      else {
        self.init(state: .corrupt)
        return
      }
      self = try translatingRuleErrors(try ExistingRow(storing: item))
    }
  }
}
