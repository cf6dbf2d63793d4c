package import Basics
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
    let definitions = ColumnDefinitions.primaryKey(of: kind)
    var encoding: [UInt8] = []
    encoding.reserveCapacity(columns.reduce(0) { $0 + 2 + $1.keyByteCount })
    for (definition, value) in zip(definitions, columns) {
      let isEmptyData = definition.holdsDataInColumn && value.isEmptyTextOrBlob
      switch isEmptyData ? .data([]) : value {
      case .null: Self.append(0, [], to: &encoding)
      case .integer(let value): Self.append(1, UInt64(bitPattern: value), to: &encoding)
      case .real(let value): Self.append(2, (value == 0 ? 0 : value).bitPattern, to: &encoding)
      case .text(let text): Self.append(3, text, to: &encoding)
      case .blob(let blob): Self.append(4, blob, to: &encoding)
      }
    }
    self.encoding = encoding
  }

  /// Lends the bytes of the columns, equal for no other key of the kind.
  package func withColumnBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try encoding.withRawBytes(body)
  }

  /// The bytes at once: an array feeds them one by one.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    encoding.withUnsafeBytes { hasher.combine(bytes: $0) }
  }

  public var description: String { "<primary key of a \(kind.reportName)>" }

  private static func append(_ type: UInt8, _ value: [UInt8], to bytes: inout [UInt8]) {
    bytes.append(type)
    // Of short ones in a byte: there are some of them for every item.
    bytes.append(UInt8(clamping: value.count))
    if value.count >= UInt8.max { append(UInt64(value.count), to: &bytes) }
    bytes.append(contentsOf: value)
  }

  private static func append(_ type: UInt8, _ value: UInt64, to bytes: inout [UInt8]) {
    bytes.append(type)
    append(value, to: &bytes)
  }

  private static func append(_ value: UInt64, to bytes: inout [UInt8]) {
    for place in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64(place)))) }
  }
}

extension ColumnValue {
  /// How many bytes a key has of it, beside its type and its length.
  fileprivate var keyByteCount: Int {
    switch self {
    case .null: 0
    case .integer, .real: 8
    case .text(let bytes), .blob(let bytes): bytes.count
    }
  }
}
