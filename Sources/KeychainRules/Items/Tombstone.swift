package import KeychainFormats

/// Whether deleting or renaming a synchronized item leaves a mark that carries the deletion to other devices.
public enum TombstonePolicy: Sendable, Equatable {
  /// A mark stays, as on a device with iCloud Keychain.
  case leave
  /// Nothing stays.
  case forbid
}

/// What stays of a synchronized item that was deleted.
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
