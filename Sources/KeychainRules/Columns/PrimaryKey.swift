public import KeychainFormats

/// What two items may not have in common: the kind and the exact values of the primary-key columns.
///
/// The key of an item in clear equals the key of the row it would collide with, without any class key. It holds hashes
/// and access-group names and prints nothing of them.
public struct PrimaryKey: Hashable, Sendable, CustomStringConvertible {
  /// The kind, whose table decides which columns count.
  public let kind: ItemKind
  /// Type, length and bytes of every column, so that no two lists of values give the same bytes.
  private let encoding: [UInt8]

  /// The key that the item would have in the database.
  ///
  /// - Throws: `KeychainRuleError` with code `.parameter` where an attribute has a value that it cannot have.
  public init(of item: KeychainItem) throws(KeychainRuleError) {
    self.init(kind: item.kind, columns: try ItemColumns.primaryKeyValues(of: item))
  }

  /// - Parameter columns: As they are written or were read: empty data is one value in both of its forms.
  package init(kind: ItemKind, columns: [ColumnValue]) {
    self.kind = kind
    encoding = zip(ColumnDefinitions.primaryKey(of: kind), columns).reduce(into: []) { bytes, part in
      let isEmptyData = part.0.holdsDataInColumn && part.1.isEmptyTextOrBlob
      switch isEmptyData ? .data([]) : part.1 {
      case .null: Self.append(0, [], to: &bytes)
      case .integer(let value): Self.append(1, Self.bigEndian(UInt64(bitPattern: value)), to: &bytes)
      case .real(let value): Self.append(2, Self.bigEndian((value == 0 ? 0 : value).bitPattern), to: &bytes)
      case .text(let text): Self.append(3, text, to: &bytes)
      case .blob(let blob): Self.append(4, blob, to: &bytes)
      }
    }
  }

  public var description: String { "<primary key of a \(kind.reportName)>" }

  private static func append(_ type: UInt8, _ value: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(type)
    bytes.append(contentsOf: bigEndian(UInt64(value.count)))
    bytes.append(contentsOf: value)
  }

  private static func bigEndian(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) }
  }
}
