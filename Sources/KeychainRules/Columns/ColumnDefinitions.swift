package import KeychainFormats

/// The columns of each kind's table, derived from the attribute table.
///
/// Source: Apple `SecItemSchema.c`.
package enum ColumnDefinitions {
  /// The definitions with a column of their own, in column order.
  package static func all(of kind: ItemKind) -> [AttributeDefinition] { byKind[kind] ?? [] }

  /// The columns that together may occur only once in a table.
  package static func primaryKey(of kind: ItemKind) -> [AttributeDefinition] { primaryKeyByKind[kind] ?? [] }

  private static let byKind = definitions(flagged: .column)
  private static let primaryKeyByKind = definitions(flagged: [.column, .primaryKey])

  private static func definitions(flagged flags: AttributeFlags) -> [ItemKind: [AttributeDefinition]] {
    Dictionary(
      uniqueKeysWithValues: ItemKind.allCases.map { kind in
        (kind, AttributeTable.definitions(of: kind).filter { $0.flags.isSuperset(of: flags) })
      })
  }
}

extension AttributeDefinition {
  /// Whether the column holds the attribute's own bytes: not text, not a number, not a hash, not the sealed item.
  package var holdsDataInColumn: Bool {
    guard !flags.contains(.hashedColumn) else { return false }
    return switch kind {
    case .blob, .data, .sha1, .uuid, .primaryKey, .accessControl: true
    case .rowID, .creationDate, .modificationDate, .date, .string, .access, .number, .sync, .tomb, .useTombstone,
      .encryptedData:
      false
    }
  }
}
