/// A page of an SQLite database.
///
/// Source: SQLite, "Database File Format", section 1.3.2.
package enum DatabasePage {
  /// Whether pages can have so many bytes.
  package static func isByteCount(_ count: Int) -> Bool { (512...65536).contains(count) && count & (count - 1) == 0 }
}
