import Basics
import KeychainFormats
import KeychainRules

extension KeychainDatabase {
  /// Reads the rows of all item tables, within the limits on their number and size.
  struct RowReader {
    private let database: KeychainConnection
    private let limit: Int
    private let maximumByteCount: Int
    private var byteCount = 0
    private(set) var rows: [Row] = []
    private(set) var missingTables: [ItemKind] = []

    init(_ database: KeychainConnection, limit: Int, maximumByteCount: Int) {
      self.database = database
      self.limit = limit
      self.maximumByteCount = maximumByteCount
    }

    /// Reads a table, or records that it is missing.
    mutating func readTable(of kind: ItemKind) throws(KeyhaulError) {
      guard let columns = try database.columns(of: kind.rawValue), columns.contains("data") else {
        missingTables.append(kind)
        return
      }
      let hasDigestColumn = columns.contains("sha1")
      let codes = ColumnDefinitions.all(of: kind).map(\.code).filter { code in
        columns.contains(code.rawValue) && !["rowid", "data", "sha1"].contains(code.rawValue)
      }
      let names = codes.map { ", \"\($0.rawValue)\"" }.joined()
      let digest = hasDigestColumn ? "sha1" : "NULL"
      let firstValueIndex = 3
      try database.forEachRow("SELECT rowid, data, \(digest)\(names) FROM main.\(kind.rawValue) ORDER BY rowid") {
        (row) throws(KeyhaulError) in
        var values: [AttributeCode: ColumnValue] = [:]
        for (index, code) in codes.enumerated() { values[code] = row.value(Int32(firstValueIndex + index)) }
        try append(
          Row(
            kind: kind, number: row.integer(0) ?? 0, encryptedItem: row.data(1) ?? [], digest: row.data(2),
            hasDigestColumn: hasDigestColumn, columns: values))
      }
    }

    private mutating func append(_ row: Row) throws(KeyhaulError) {
      guard rows.count < limit else {
        throw KeyhaulError(.databaseOverLimit, "it has more than \(limit) items")
      }
      byteCount +=
        row.encryptedItem.count + (row.digest?.count ?? 0) + row.columns.values.reduce(0) { $0 + $1.byteCount }
      // Rows that share their pages would take more memory than the file has bytes.
      guard byteCount <= maximumByteCount else {
        throw KeyhaulError(.databaseOverLimit, "its rows contain more bytes than the file")
      }
      rows.append(row)
    }
  }
}

extension ColumnValue {
  /// The number of bytes in a text or blob, and 0 for other values.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes.count
    case .null, .integer, .real: 0
    }
  }
}
