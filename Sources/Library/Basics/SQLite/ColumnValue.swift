/// A value as a column of the database holds it, byte for byte.
///
/// Text is bytes, not `String`: SQLite compares bytes, where Swift takes two spellings of "é" for equal, and a text may
/// hold a NUL, at which GRDB's own conversion of `String` ends.
package enum ColumnValue: Hashable, Sendable {
  case null
  case integer(Int64)
  case real(Double)
  case text([UInt8])
  case blob([UInt8])

  package static func text(_ string: String) -> ColumnValue { .text(Array(string.utf8)) }

  /// Data as a column holds it: of no bytes, as the empty text.
  package static func data(_ bytes: [UInt8]) -> ColumnValue { bytes.isEmpty ? .text([]) : .blob(bytes) }

  package var isEmptyTextOrBlob: Bool {
    switch self {
    case .text(let bytes), .blob(let bytes): bytes.isEmpty
    case .null, .integer, .real: false
    }
  }

  package var blobValue: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
  package var integerValue: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The text, with replacement characters where it is not UTF-8.
  package var textValue: String? {
    if case .text(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
  }

  /// The number of a date column, which SQLite may have stored as an integer.
  package var realValue: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .text, .blob: nil
    }
  }
}
