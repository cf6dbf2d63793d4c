package import KeychainFormats

/// The columns of the database table for each kind of item, derived from `AttributeTable`.
///
/// Source: Apple `SecItemSchema.c`.
package enum ColumnDefinitions {
  /// Returns the definitions of the attributes that have a column, in column order.
  package static func all(of kind: ItemKind) -> [AttributeDefinition] { columns(of: kind).all }

  /// Returns the columns whose values together must be unique in a table.
  package static func primaryKey(of kind: ItemKind) -> [AttributeDefinition] { columns(of: kind).primaryKey }

  private struct Columns {
    let all: [AttributeDefinition]
    let primaryKey: [AttributeDefinition]

    init(of kind: ItemKind) {
      all = AttributeTable.definitions(of: kind).filter { $0.flags.contains(.column) }
      primaryKey = all.filter { $0.flags.contains(.primaryKey) }
    }
  }

  private static let ofGenericPasswords = Columns(of: .genericPassword)
  private static let ofInternetPasswords = Columns(of: .internetPassword)
  private static let ofCertificates = Columns(of: .certificate)
  private static let ofKeys = Columns(of: .key)

  private static func columns(of kind: ItemKind) -> Columns {
    switch kind {
    case .genericPassword: ofGenericPasswords
    case .internetPassword: ofInternetPasswords
    case .certificate: ofCertificates
    case .key: ofKeys
    }
  }
}

extension AttributeDefinition {
  /// Whether the column stores the attribute's own bytes, not text, a number, a hash or the encrypted item.
  package var storesDataInColumn: Bool {
    guard !flags.contains(.hashedColumn) else { return false }
    return switch kind {
    case .blob, .data, .sha1, .uuid, .primaryKey, .accessControl: true
    case .rowID, .creationDate, .modificationDate, .date, .string, .access, .number, .sync, .tomb, .useTombstone,
      .encryptedData:
      false
    }
  }
}
