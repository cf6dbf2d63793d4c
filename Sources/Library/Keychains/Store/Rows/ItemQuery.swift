import Basics
public import KeychainFormats

/// Which items a search, an update or a deletion means.
package struct ItemQuery: Sendable {
  /// The access groups whose items are meant.
  package enum AccessGroups: Sendable, Equatable {
    /// Items of every group, those without one among them.
    case all
    /// Items of these groups alone; none where the list is empty.
    case only([String])
  }

  /// Which items are meant by whether they synchronize.
  package enum Synchronization: Sendable, Equatable {
    /// Items with `sync` 0.
    case localOnly
    /// Items with `sync` 1, which iCloud Keychain carries.
    case synchronizedOnly
    /// Both.
    case any
  }

  /// Whether the marks of deleted items are meant.
  package enum Tombstones: Sendable, Equatable {
    /// Rows with `tomb` 0.
    case excluded
    /// All rows.
    case included
    /// Rows with `tomb` 1.
    case only
  }

  /// `nil` looks through all kinds in their order; those without one of the attributes are left out.
  package var kind: ItemKind?
  /// Attributes that must be equal. A value of another type with the same bytes matches too, as the columns hold hashes.
  package var attributes: AttributeMap<PropertyValue>
  /// The access groups, as the seal and not as the column has them.
  package var accessGroups: AccessGroups
  /// Whether synchronized items are meant.
  package var synchronization: Synchronization
  /// Whether tombstones are meant.
  package var tombstones: Tombstones
  /// One row alone.
  package var row: RowReference?
  /// The 16 bytes of a persistent reference.
  package var persistentReference: [UInt8]?
  /// At most so many rows for each search, counted before they are opened, as Apple's daemon counts. `nil`: all.
  package var limit: Int?
  /// Whether the found items carry their secrets.
  package var wantsSecret: Bool
  /// What an opened item must meet besides, such as a pattern that no column can be searched for. A row that cannot be
  /// opened meets nothing: an update or a deletion stops at one whose key is locked and passes over one that is damaged.
  package var condition: (@Sendable (KeychainItem) -> Bool)?

  /// Creates a query; without arguments it means every item but tombstones.
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
  /// The access group inside the seal decides; the column can be changed by anyone who can write the file.
  package func admits(_ item: KeychainItem) -> Bool {
    if let condition, !condition(item) { return false }
    return switch accessGroups {
    case .all: true
    case .only(let groups): item.accessGroup.map(groups.contains) ?? false
    }
  }
}

/// An item with what the database knows of it.
public struct StoredItem: Sendable {
  /// What the columns say.
  public let summary: RowSummary
  /// The item in clear; without its secrets where the query did not want them.
  public let item: KeychainItem

  /// Creates a stored item of the two.
  package init(summary: RowSummary, item: KeychainItem) {
    self.summary = summary
    self.item = item
  }

  /// The row's number in its table.
  package var rowID: Int64 { summary.reference.rowID }
  /// The 16 bytes that a lasting handle names.
  package var persistentReference: [UInt8] { summary.persistentReference }
  /// Operation to constraint of the access control that guards the item, `nil` if nothing does.
  package var accessControl: PropertyDictionary? { item[.accessControl]?.dictionaryValue }
}

/// What a search gave.
package struct FoundItems: Sendable {
  /// The items that match and open, by kind, and of each kind by row.
  package let items: [StoredItem]
  /// Rows that match by their columns and cannot be opened, now or ever.
  package let undecodable: [KeychainRow]
}
