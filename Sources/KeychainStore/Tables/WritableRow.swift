import DataProtection
import KeychainFormats
import KeychainRules

/// All columns of one row, ready to be bound: the item sealed, the searchable attributes beside it.
struct WritableRow {
  let kind: ItemKind
  /// In the order of `KeychainTable.writtenColumns`.
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
    item[.digest] = .data(try byRule(try item.storedDigest()))
    let values = try byRule(try ItemColumns.values(of: item))
    let sealed = try RowSealing.seal(item, keys: keys, random: random)
    kind = item.kind
    columns = KeychainTable.of(kind).writtenColumns.map { code in
      code == .encryptedData ? .blob(sealed) : values[code] ?? .null
    }
    primaryKey = ColumnDefinitions.primaryKey(of: kind).map { values[$0.code] ?? .null }
    self.item = item
  }
}
