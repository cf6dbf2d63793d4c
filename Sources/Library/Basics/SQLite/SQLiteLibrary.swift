import CSQLite

/// The version of SQLite that this process uses.
package enum SQLiteLibrary {
  /// The version number, such as "3.40.1".
  package static var version: String { String(cString: sqlite3_libversion()) }
}
