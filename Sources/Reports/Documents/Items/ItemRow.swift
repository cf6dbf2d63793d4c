package import ArchivedKeychain
package import KeychainFormats
import KeychainRules
package import KeychainStore
import Migration

/// A row of a search's result: an item, or what is left of one.
package enum ItemRow {
  case item(StoredItem)
  case unreadable(KeychainRow)

  package init(_ row: KeychainRow) {
    switch row.content {
    case .item(let item): self = .item(StoredItem(summary: row.summary, item: item))
    case .fault: self = .unreadable(row)
    }
  }

  /// In the order of the kinds, then of the rows: as a backup numbers them.
  package static func all(of found: FoundItems) -> [ItemRow] {
    let rows = found.items.map(ItemRow.item) + found.undecodable.map(ItemRow.unreadable)
    return rows.sorted { left, right in
      let (left, right) = (left.summary.reference, right.summary.reference)
      return (order(left.kind), left.rowID) < (order(right.kind), right.rowID)
    }
  }

  private static func order(_ kind: ItemKind) -> Int { ItemKind.allCases.firstIndex(of: kind) ?? 0 }

  package var summary: RowSummary {
    switch self {
    case .item(let stored): stored.summary
    case .unreadable(let row): row.summary
    }
  }

  package var stored: StoredItem? { if case .item(let stored) = self { stored } else { nil } }

  /// Whether a key that is not in memory now keeps it from being read.
  package var isLocked: Bool {
    guard case .unreadable(let row) = self, let fault = row.fault else { return false }
    return !fault.isPermanent
  }

  /// What a person knows it by. Hostile.
  package var identity: ItemIdentity {
    switch self {
    case .item(let stored): ItemIdentity(stored.item)
    case .unreadable(let row): ItemIdentity(sealed: row.summary.kind, accessGroup: row.summary.accessGroup)
    }
  }

  package var protection: ProtectionClass? {
    switch self {
    case .item(let stored): stored.item.protection
    case .unreadable(let row): row.summary.protection
    }
  }

  package var modificationDate: KeychainDate? {
    switch self {
    case .item(let stored): stored.item.modificationDate
    case .unreadable(let row): row.summary.modificationDate
    }
  }

  /// Why it cannot be read, in words.
  package var faultText: String? {
    guard case .unreadable(let row) = self, case .undecodable(let reason)? = row.fault else { return nil }
    return reason
  }
}
