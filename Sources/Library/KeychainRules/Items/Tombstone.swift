package import Basics
package import KeychainFormats

/// The rule for leaving a tombstone when an item is deleted or its primary key changes.
///
/// Source: Apple `SecItemDb.c` (`s3dl_should_make_tombstone`).
package enum TombstonePolicy: Sendable, Equatable {
  /// A synchronized item leaves a tombstone, as on a device with iCloud Keychain.
  case leave
  /// Every item leaves a tombstone, including local items and tombstones.
  case always
  /// No item leaves a tombstone.
  case forbid

  package func leavesTombstone(of item: KeychainItem) -> Bool {
    switch self {
    case .leave: item.isSynchronizable && !item.isTombstone
    case .always: true
    case .forbid: false
    }
  }
}

/// Creates the record that remains of a deleted item.
///
/// Source: Apple `SecDbItem.c` (`SecDbItemCopyWithUpdates`, `SecDbItemMakeTombstone`), `SecItemDb.c`
/// (`s3dl_query_delete`).
package enum Tombstone {
  /// Returns the tombstone of an item: its primary key, creation date, protection class, UUID and persistent reference,
  /// without the secret.
  ///
  /// - Parameters:
  ///   - item: The deleted item.
  ///   - now: The current date; the tombstone is always dated after the item.
  package static func make(for item: KeychainItem, at now: KeychainDate) -> KeychainItem {
    var tombstone = KeychainItem(kind: item.kind)
    for definition in ColumnDefinitions.primaryKey(of: item.kind) {
      tombstone[definition.code] = item[definition.code]
    }
    for code in [AttributeCode.creationDate, .protection, .uuid, .persistentReference] {
      tombstone[code] = item[code]
    }
    tombstone[.tombstone] = .integer(1)
    tombstone[.modificationDate] = .date(now.later(than: item.modificationDate))
    return tombstone
  }
}
