import Basics
import GRDB
import GRDBSQLite
import KeychainRules

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension ColumnValue: StatementColumnConvertible {
  init?(sqliteStatement: SQLiteStatement, index: CInt) {
    switch sqlite3_column_type(sqliteStatement, index) {
    case SQLITE_INTEGER: self = .integer(sqlite3_column_int64(sqliteStatement, index))
    case SQLITE_FLOAT: self = .real(sqlite3_column_double(sqliteStatement, index))
    case SQLITE_TEXT:
      // The pointer first, the count after it, as SQLite asks: the text is converted by the first call.
      let start = UnsafeRawPointer(sqlite3_column_text(sqliteStatement, index))
      self = .text(Self.bytes(at: start, count: sqlite3_column_bytes(sqliteStatement, index)))
    case SQLITE_BLOB:
      let start = sqlite3_column_blob(sqliteStatement, index)
      self = .blob(Self.bytes(at: start, count: sqlite3_column_bytes(sqliteStatement, index)))
    default: self = .null
    }
  }

  private static func bytes(at start: UnsafeRawPointer?, count: CInt) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(count)))
  }
}

extension ColumnValue: DatabaseValueConvertible {
  /// GRDB's own form, for what GRDB prints; values are bound by `bind`, because this one ends at a NUL when bound.
  var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .integer(let value): value.databaseValue
    case .real(let value): value.databaseValue
    case .text(let bytes): String(decoding: bytes, as: UTF8.self).databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }

  static func fromDatabaseValue(_ value: DatabaseValue) -> ColumnValue? {
    switch value.storage {
    case .null: .null
    case .int64(let value): .integer(value)
    case .double(let value): .real(value)
    case .string(let value): .text(value)
    case .blob(let value): .blob(Array(value))
    }
  }

  /// Binds with explicit lengths. An empty blob becomes the empty text, as in Apple's binding: no statement writes one
  /// (a null pointer would bind NULL).
  func bind(to sqliteStatement: SQLiteStatement, at index: CInt) -> CInt {
    let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    switch self {
    case .null: return sqlite3_bind_null(sqliteStatement, index)
    case .integer(let value): return sqlite3_bind_int64(sqliteStatement, index, value)
    case .real(let value): return sqlite3_bind_double(sqliteStatement, index, value)
    case .text(let bytes):
      guard !bytes.isEmpty else { return sqlite3_bind_text(sqliteStatement, index, "", 0, copied) }
      return bytes.withUnsafeBytes { raw in
        sqlite3_bind_text64(
          sqliteStatement, index, raw.bindMemory(to: CChar.self).baseAddress, UInt64(raw.count), copied,
          UInt8(SQLITE_UTF8))
      }
    case .blob(let bytes):
      guard !bytes.isEmpty else { return ColumnValue.text([]).bind(to: sqliteStatement, at: index) }
      return bytes.withUnsafeBytes { raw in
        sqlite3_bind_blob64(sqliteStatement, index, raw.baseAddress, UInt64(raw.count), copied)
      }
    }
  }
}
