package import Basics
package import KeychainFormats

/// Whether deleting an item, or changing its primary key, leaves a tombstone.
///
/// Source: Apple `SecItemDb.c` (`s3dl_should_make_tombstone`).
public enum TombstonePolicy: Sendable, Equatable {
  /// A synchronized item leaves one, as on a device with iCloud Keychain.
  case leave
  /// Every item leaves one, a local item and a tombstone too.
  case always
  /// No item leaves one.
  case forbid

  package func leavesTombstone(of item: KeychainItem) -> Bool {
    switch self {
    case .leave: item.isSynchronizable && !item.isTombstone
    case .always: true
    case .forbid: false
    }
  }
}

/// What stays of an item that was deleted.
///
/// Source: Apple `SecDbItem.c` (`SecDbItemCopyWithUpdates`, `SecDbItemMakeTombstone`), `SecItemDb.c` (`s3dl_query_delete`).
package enum Tombstone {
  /// The primary key, creation date, protection class, UUID and persistent reference of an item, without its secret,
  /// dated now and in any case after the item.
  package static func of(_ item: KeychainItem, now: KeychainDate) -> KeychainItem {
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
