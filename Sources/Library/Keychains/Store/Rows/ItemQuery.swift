import Basics
public import KeychainFormats

/// The criteria of a search, an update or a deletion.
package struct ItemQuery: Sendable {
  /// The access groups of matching items.
  package enum AccessGroups: Sendable, Equatable {
    /// Every group, including items without one.
    case all
    /// Only these groups. If the list is empty, nothing matches.
    case only([String])
  }

  /// The synchronization state of matching items.
  package enum Synchronization: Sendable, Equatable {
    /// Items with `sync` 0.
    case localOnly
    /// Items with `sync` 1, which iCloud Keychain synchronizes.
    case synchronizedOnly
    /// All items.
    case any
  }

  /// The treatment of tombstones, the records of deleted items.
  package enum Tombstones: Sendable, Equatable {
    /// Rows with `tomb` 0.
    case excluded
    /// All rows.
    case included
    /// Rows with `tomb` 1.
    case only
  }

  /// The kind of the items. If it is `nil`, all kinds that have the attributes match.
  package var kind: ItemKind?
  /// Attributes that must be equal. A value of a different type with the same bytes also matches, because the columns
  /// contain hashes.
  package var attributes: AttributeMap<PropertyValue>
  /// The access groups. Both the column and the encrypted item must name one of them.
  package var accessGroups: AccessGroups
  /// The synchronization state.
  package var synchronization: Synchronization
  /// The treatment of tombstones.
  package var tombstones: Tombstones
  /// The only row that may match, or `nil` if any row may.
  package var row: RowReference?
  /// The 16 bytes of the matching item's persistent reference, or `nil` if any item may match.
  package var persistentReference: [UInt8]?
  /// The largest number of rows for each search, counted before decryption, as in Apple's daemon; `nil` if unlimited.
  package var limit: Int?
  /// Whether the result includes the secrets.
  package var wantsSecret: Bool
  /// A condition on the decrypted item, such as a pattern that no column can be searched for. A row that cannot be
  /// decrypted does not match. An update or a deletion skips a damaged row, and stops with an error at a row whose class
  /// key is missing.
  package var condition: (@Sendable (KeychainItem) -> Bool)?

  /// Creates a query. Without arguments, it matches every item except tombstones.
  package init(
    kind: ItemKind? = nil, attributes: AttributeMap<PropertyValue> = [:], accessGroups: AccessGroups = .all,
    synchronization: Synchronization = .any, tombstones: Tombstones = .excluded, row: RowReference? = nil,
    persistentReference: [UInt8]? = nil, limit: Int? = nil, wantsSecret: Bool = false,
    condition: (@Sendable (KeychainItem) -> Bool)? = nil
  ) {
    self.kind = kind
    self.attributes = attributes
    self.accessGroups = accessGroups
    self.synchronization = synchronization
    self.tombstones = tombstones
    self.row = row
    self.persistentReference = persistentReference
    self.limit = limit
    self.wantsSecret = wantsSecret
    self.condition = condition
  }
}

extension ItemQuery {
  /// Returns whether a decrypted item matches the condition and the access groups. A matching column is not sufficient,
  /// because anyone who can write the file can change the column.
  package func matches(_ item: KeychainItem) -> Bool {
    if let condition, !condition(item) { return false }
    return switch accessGroups {
    case .all: true
    case .only(let groups): item.accessGroup.map(groups.contains) ?? false
    }
  }
}

/// An item and its column values.
public struct StoredItem: Sendable {
  /// The column values.
  public let summary: RowSummary
  /// The decrypted item, without its secrets if the query did not request them.
  public let item: KeychainItem

  /// Creates a stored item.
  package init(summary: RowSummary, item: KeychainItem) {
    self.summary = summary
    self.item = item
  }

  /// The row's number in its table.
  package var rowID: Int64 { summary.reference.rowID }
  /// The 16 bytes of the item's persistent reference.
  package var persistentReference: [UInt8] { summary.persistentReference }
  /// The constraints of the item's access control by operation; `nil` if the item has no access control.
  package var accessControl: PropertyDictionary? { item[.accessControl]?.dictionaryValue }
}

/// The result of a search.
package struct QueryResult: Sendable {
  /// The matching items that could be decrypted, by kind and row number.
  package let items: [StoredItem]
  /// Rows that match by their columns but can never be decrypted.
  package let undecodableRows: [KeychainRow]
}
