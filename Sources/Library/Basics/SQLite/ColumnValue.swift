/// A value exactly as a column of the database stores it.
///
/// Text is kept as bytes because SQLite compares bytes, whereas `String` treats two spellings of "é" as equal. Text may
/// also contain a NUL, where GRDB's conversion to `String` stops.
package enum ColumnValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text([UInt8])
  case blob([UInt8])

  package static func text(_ string: String) -> ColumnValue { .text(Array(string.utf8)) }

  /// Returns data as a column stores it. Empty data is stored as empty text.
  package static func data(_ bytes: [UInt8]) -> ColumnValue { bytes.isEmpty ? .text([]) : .blob(bytes) }

  package var isEmptyTextOrBlob: Bool {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes.isEmpty
    case .null, .integer, .real: false
    }
  }

  package var blobValue: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
  package var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The text, with replacement characters for bytes that are not UTF-8, or `nil` if the value is not text.
  package var textValue: String? {
    if case .text(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
  }

  /// The number in a date column, which SQLite may have stored as an integer, or `nil` if the value is not a number.
  package var realValue: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .text, .blob: nil
    }
  }
}
