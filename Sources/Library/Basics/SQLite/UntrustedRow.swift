import CSQLite

/// A row of an untrusted database. A column may hold a value of any type.
@usableFromInline package struct UntrustedRow: ~Copyable {
  let statement: OpaquePointer

  /// Returns the text in a column; `nil` if the column has no text, or if it is not UTF-8.
  package func text(_ column: Int32) -> String? { textBytes(column).flatMap(String.init(utf8:)) }

  /// Calls a closure with the bytes of a text, which may not be UTF-8. Returns `nil` if the column has no text.
  @inlinable package func withText<Value>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
    textBytes(column).map(body)
  }

  /// Calls a closure with the bytes of two texts. Returns `nil` if a column has no text.
  @inlinable package func withTexts<Value, Failure: Error>(
    _ first: Int32, _ second: Int32,
    _ body: (_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value? {
    guard let first = textBytes(first), let second = textBytes(second) else { return nil }
    return try body(first, second)
  }

  /// Returns the bytes of a text, valid as long as the row.
  @usableFromInline package func textBytes(_ column: Int32) -> UnsafeRawBufferPointer? {
    guard sqlite3_column_type(statement, column) == SQLITE_TEXT else { return nil }
    let start = UnsafeRawPointer(sqlite3_column_text(statement, column))
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
  }

  /// Whether a column is NULL.
  package func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

  /// Returns the integer in a column; `nil` if the column has another type.
  package func integer(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : nil
  }

  /// Returns the bytes of a BLOB; `nil` if the column has another type.
  package func data(_ column: Int32) -> [UInt8]? {
    guard sqlite3_column_type(statement, column) == SQLITE_BLOB else { return nil }
    let start = sqlite3_column_blob(statement, column)
    return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
  }

  /// Returns the bytes of a BLOB or a text; `nil` if the column has another type.
  package func bytes(_ column: Int32) -> [UInt8]? { data(column) ?? textBytes(column).map(Array.init) }

  /// Returns the value of a column.
  package func value(_ column: Int32) -> ColumnValue {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, column))
    case SQLITE_FLOAT: .real(sqlite3_column_double(statement, column))
    case SQLITE_BLOB: .blob(data(column) ?? [])
    case SQLITE_TEXT: .text(textBytes(column).map(Array.init) ?? [])
    default: .null
    }
  }
}
