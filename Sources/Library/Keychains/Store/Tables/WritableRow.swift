import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// The column values of a row to write: the encrypted item and its searchable attributes.
struct WritableRow {
  let kind: ItemKind
  /// The values in the order of `ItemColumns.values`, as in the table's statements.
  let columns: [ColumnValue]
  let primaryKey: [ColumnValue]
  /// The item with its digest, before encryption.
  let item: KeychainItem

  /// Computes the item's digest, encrypts it and arranges the columns.
  ///
  /// - Throws: `.interactionNotAllowed`, `.authFailed` or `.notAvailable` if the class key is missing, `.parameter` for
  ///   a value that its attribute cannot have.
  init(
    encrypting item: KeychainItem, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) {
    var item = item
    item.unpack()
    item[.digest] = .data(try translatingRuleErrors(try item.storedDigest()))
    var columns = try translatingRuleErrors(try ItemColumns.values(of: item))
    let table = KeychainTable.table(of: item.kind)
    let encrypted = try RowEncryption.encrypt(item, keys: keys, random: random)
    for index in table.encryptedColumnIndexes { columns[index] = .blob(encrypted) }
    kind = item.kind
    primaryKey = table.primaryKeyColumnIndexes.map { columns[$0] }
    self.columns = columns
    self.item = item
  }
}
