package import KeyhaulKit

/// An item of a list, or what is left of one, wherever it is from.
package struct ItemRow {
  /// Its place: its table with its number there or, of a backup, with its position among all items.
  package let reference: RowReference
  /// The item in clear; `nil` where it cannot be read.
  package let item: KeychainItem?
  /// What a person knows it by. Hostile.
  package let identity: ItemIdentity
  package let protection: ProtectionClass?
  package let isSynchronizable: Bool
  package let modificationDate: KeychainDate?
  /// Why it cannot be read.
  package let reason: Reason?
  /// The same in words, where there are more.
  package let faultText: String?
  /// Whether a key that is not in memory now keeps it from being read.
  package let isLocked: Bool

  package var kind: ItemKind { reference.kind }

  package init(_ stored: StoredItem) {
    self.init(stored.item, stored.summary)
  }

  package init(_ row: KeychainRow) {
    switch row.content {
    case .item(let item): self.init(item, row.summary)
    case .fault(let fault):
      var text: String?
      if case .undecodable(let reason) = fault { text = reason }
      let summary = row.summary
      self.init(
        sealed: ItemIdentity(sealed: summary.kind, accessGroup: summary.accessGroup), at: summary.reference,
        summary.protection, reason: Self.reason(fault), faultText: text, isSynchronizable: summary.isSynchronizable,
        modificationDate: summary.modificationDate, isLocked: !fault.isPermanent)
    }
  }

  private init(_ item: KeychainItem, _ summary: RowSummary) {
    self.init(item, at: summary.reference, isSynchronizable: summary.isSynchronizable)
  }

  /// An item that can be read.
  package init(_ item: KeychainItem, at reference: RowReference, isSynchronizable: Bool? = nil) {
    self.reference = reference
    self.item = item
    identity = ItemIdentity(item)
    protection = item.protection
    self.isSynchronizable = isSynchronizable ?? item.isSynchronizable
    modificationDate = item.modificationDate
    reason = nil
    faultText = nil
    isLocked = false
  }

  /// An item that cannot be read here.
  package init(
    sealed identity: ItemIdentity, at reference: RowReference, _ protection: ProtectionClass?, reason: Reason?,
    faultText: String?, isSynchronizable: Bool = false, modificationDate: KeychainDate? = nil, isLocked: Bool = false
  ) {
    self.reference = reference
    item = nil
    self.identity = identity
    self.protection = protection
    self.isSynchronizable = isSynchronizable
    self.modificationDate = modificationDate
    self.reason = reason
    self.faultText = faultText
    self.isLocked = isLocked
  }

  /// In the order of the kinds, then of the rows: as a backup numbers them.
  package static func all(of found: FoundItems) -> [ItemRow] {
    let rows = found.items.map { ItemRow($0) } + found.undecodable.map { ItemRow($0) }
    return rows.sorted { (order($0.kind), $0.reference.rowID) < (order($1.kind), $1.reference.rowID) }
  }

  private static func order(_ kind: ItemKind) -> Int { ItemKind.allCases.firstIndex(of: kind) ?? 0 }

  /// A search reports rows that nothing will open; one whose key is locked ends it.
  private static func reason(_ fault: RowFault) -> Reason {
    switch fault {
    case .undecodable: .malformed
    case .locked, .keyUnavailable: .noClassKey
    }
  }
}
