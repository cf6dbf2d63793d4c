package import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules

extension KeychainDatabase {
  /// Returns the keys that decrypt the items. A Simulator's keys are in the database itself.
  ///
  /// - Parameter classKeys: The 32-byte keys of a device's own keybag, not of a backup's, for each class.
  /// - Throws: `.malformed` if a key has a different length.
  package func keys(
    classKeys: [KeyClass: SensitiveBytes] = [:]
  ) throws(DataProtectionError) -> DatabaseKeys {
    try DatabaseKeys(wrappedMetadataKeys: wrappedMetadataKeys, classKeys: classKeys)
  }

  /// Decrypts every row in the order of `rows`. Rows that can be decrypted only partly or not at all are included.
  ///
  /// - Throws: An error that is not the fault of a single item.
  package func decrypted(with keys: DatabaseKeys) throws(DataProtectionError) -> [DecryptedRow] {
    var decryptedRows: [DecryptedRow] = []
    for row in rows {
      decryptedRows.append(try DecryptedRow(row, result: keys.open(row: row.encryptedItem, kind: row.kind)))
    }
    return decryptedRows
  }

  /// Returns whether the item cannot be decrypted because the database itself has no key for its class.
  package func lacksKey(of item: DecryptedDatabaseItem) -> Bool {
    guard item.fault?.step == .metadataClassKey, let keyClass = item.keyClass else { return false }
    return wrappedMetadataKeys[keyClass.withoutGeneration]?.isEmpty ?? true
  }

  /// A row and the result of decrypting it.
  package struct DecryptedRow: Sendable {
    /// The row.
    package let row: Row
    /// The decrypted parts of the item, and the fault that prevents decrypting the rest.
    package let result: DecryptedDatabaseItem
    /// Whether the column `sha1` is the digest of the content; `nil` if the secret was not decrypted or there is no
    /// such column.
    package let hasMatchingDigest: Bool?
    /// The columns whose values differ from the attributes that they are computed from; empty if the attributes were
    /// not decrypted.
    package let differingColumns: [AttributeCode]

    init(_ row: Row, result: DecryptedDatabaseItem) {
      self.row = row
      self.result = result
      hasMatchingDigest =
        result.isOpen && row.hasDigestColumn ? result.item.flatMap { try? $0.digest() }.map { row.digest == $0 } : nil
      differingColumns = result.item.map { Self.differences(of: row, from: $0) } ?? []
    }

    /// Columns whose values cannot be compared, because they are not computed from an attribute of the same name.
    private static let incomparableColumns: Set<AttributeCode> = [.appClip, .accessControl]

    private static func differences(of row: Row, from item: KeychainItem) -> [AttributeCode] {
      ColumnDefinitions.all(of: row.kind).compactMap { definition in
        guard let stored = row.columns[definition.code], !incomparableColumns.contains(definition.code) else {
          return nil
        }
        // For an absent attribute, some releases write the default of its kind and others NULL.
        if stored == .null, item[definition.code] == nil { return nil }
        // A value that cannot be stored in a column is a fault of the item, not a difference.
        guard let expected = try? ItemColumns.value(item[definition.code], for: definition) else { return nil }
        if stored.isSame(as: expected) || !row.hasDigestColumn && containsValue(stored, of: item, definition) {
          return nil
        }
        return definition.code
      }
    }

    /// Returns whether a column that newer schemas hash contains the unhashed value, as in some databases of schema 5
    /// (`kcls` of iOS 6.1).
    private static func containsValue(
      _ stored: ColumnValue, of item: KeychainItem, _ definition: AttributeDefinition
    ) -> Bool {
      guard definition.flags.contains(.hashedColumn) else { return false }
      let value = try? ItemColumns.value(item[definition.code], for: definition, isHashed: false)
      return value.map { stored.isSame(as: $0) } ?? false
    }
  }
}

extension ColumnValue {
  /// Returns whether the daemon treats both values as equal. An empty text equals an empty blob, and a date may be
  /// stored as an integer.
  fileprivate func isSame(as other: ColumnValue) -> Bool {
    if self == other || isEmptyTextOrBlob && other.isEmptyTextOrBlob { return true }
    if case .real(let seconds) = other { return realValue == seconds }
    return false
  }
}
