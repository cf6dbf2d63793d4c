import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// All columns of one row, ready to be bound: the item sealed, the searchable attributes beside it.
struct WritableRow {
  let kind: ItemKind
  /// In the order of `ItemColumns.values`, as the table's statements name them.
  let columns: [ColumnValue]
  let primaryKey: [ColumnValue]
  /// The item as it was sealed, with its digest.
  let item: KeychainItem

  /// Recomputes the item's digest, seals it and lays out its columns.
  ///
  /// - Throws: `.interactionNotAllowed`, `.authFailed` or `.notAvailable` where the class key is missing, `.parameter`
  ///   for a value that its attribute cannot have.
  init(
    sealing item: KeychainItem, keys: borrowing ClassKeys, random: any RandomSource
  ) throws(KeychainStoreError) {
    var item = item
    item.unpack()
    item[.digest] = .data(try byRule(try item.storedDigest()))
    var columns = try byRule(try ItemColumns.values(of: item))
    let table = KeychainTable.of(item.kind)
    let sealed = try RowSealing.seal(item, keys: keys, random: random)
    for place in table.sealedPlaces { columns[place] = .blob(sealed) }
    kind = item.kind
    primaryKey = table.primaryKeyPlaces.map { columns[$0] }
    self.columns = columns
    self.item = item
  }
}
