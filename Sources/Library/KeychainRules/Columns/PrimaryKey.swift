package import Basics
package import KeychainFormats

/// The kind and the exact values of the primary-key columns, which no two items may share.
///
/// The key of a decrypted item equals the key of the row that it conflicts with, so no class key is needed to find the
/// row. A key contains hashes and access-group names; its description shows none of them.
package struct PrimaryKey: Hashable, Sendable, CustomStringConvertible {
  /// The kind, whose table determines the columns.
  package let kind: ItemKind
  /// The encoded columns. Different lists of values have different encodings. Each column is a type byte, followed by:
  ///
  /// - a length of 0, if it is NULL
  /// - eight bytes, big-endian, if it is a number
  /// - a length and that many bytes, if it is text or a blob. A length below 255 is one byte. Any other length is the byte
  ///   255, then eight bytes, big-endian.
  private let encoding: [UInt8]

  /// The type byte of a column.
  private enum ColumnType: UInt8 {
    case null, integer, real, text, blob
  }

  /// Creates the key that an item would have in the database.
  ///
  /// - Throws: `KeychainRuleError` with code `.parameter` if an attribute cannot have its value.
  package init(of item: KeychainItem) throws(KeychainRuleError) {
    self.init(kind: item.kind, columns: try ItemColumns.primaryKeyValues(of: item))
  }

  /// Creates a key from column values.
  ///
  /// - Parameter columns: The values of the primary-key columns, to be written or as read. In a column that stores data,
  ///   an empty text and an empty blob give the same key.
  package init(kind: ItemKind, columns: [ColumnValue]) {
    self.kind = kind
    let definitions = ColumnDefinitions.primaryKey(of: kind)
    var encoding: [UInt8] = []
    // The type and the length of most columns take two bytes.
    encoding.reserveCapacity(columns.reduce(0) { $0 + 2 + $1.keyByteCount })
    for (definition, value) in zip(definitions, columns) {
      let isEmptyData = definition.storesDataInColumn && value.isEmptyTextOrBlob
      switch isEmptyData ? .data([]) : value {
      case .null: Self.append(.null, [], to: &encoding)
      case .integer(let value): Self.append(.integer, UInt64(bitPattern: value), to: &encoding)
      // A negative zero equals zero.
      case .real(let value): Self.append(.real, (value == 0 ? 0 : value).bitPattern, to: &encoding)
      case .text(let text): Self.append(.text, text, to: &encoding)
      case .blob(let blob): Self.append(.blob, blob, to: &encoding)
      }
    }
    self.encoding = encoding
  }

  /// Calls a closure with the bytes of the columns, which differ between any two keys of one kind.
  package func withColumnBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try encoding.withRawBytes(body)
  }

  /// Hashes all bytes in one call, because an array would hash them one at a time.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    encoding.withUnsafeBytes { hasher.combine(bytes: $0) }
  }

  package var description: String { "<primary key of a \(kind.reportName)>" }

  private static func append(_ type: ColumnType, _ value: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(type.rawValue)
    // Short lengths take one byte, because every key contains several.
    bytes.append(UInt8(clamping: value.count))
    if value.count >= UInt8.max { append(UInt64(value.count), to: &bytes) }
    bytes.append(contentsOf: value)
  }

  private static func append(_ type: ColumnType, _ value: UInt64, to bytes: inout [UInt8]) {
    bytes.append(type.rawValue)
    append(value, to: &bytes)
  }

  private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: bigEndianBytes(value))
  }
}

extension ColumnValue {
  /// The number of bytes of the value in a key, without its type and length.
  fileprivate var keyByteCount: Int {
    switch self {
    case .null: 0
    case .integer, .real: 8
    case .text(let bytes), .blob(let bytes): bytes.count
    }
  }
}
