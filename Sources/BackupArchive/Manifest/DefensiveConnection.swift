import CSQLite
import GRDB

/// How a database from outside is opened.
///
/// Source: SQLite, "Defense Against The Dark Arts" (untrusted database files).
enum DefensiveConnection {
  static var configuration: Configuration {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.label = "manifest"
    return configuration
  }

  /// Replaces the connection's empty database in memory by `image`, with every door of SQL shut before.
  static func open(_ image: DatabaseImage, in database: Database) throws {
    guard let connection = database.sqliteConnection else {
      throw BackupArchiveError(.unreadable, "SQLite gave no connection")
    }
    for (option, value) in switches {
      guard keyhaul_sqlite3_switch(connection, option, value) == SQLITE_OK else {
        throw BackupArchiveError(.unreadable, "this SQLite is too old to read a foreign database safely")
      }
    }
    for (limit, value) in limits { sqlite3_limit(connection, limit, value) }
    try database.execute(sql: "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA query_only = ON")
    guard image.attach(to: connection) == SQLITE_OK else {
      throw BackupArchiveError(.damaged, "the manifest database cannot be opened")
    }
  }

  private static let switches: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, 1),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
  ]

  /// A row's description is a few hundred bytes; 16 MiB leaves room for the largest extended attributes.
  static let longestValue: Int32 = 16 << 20
  /// Columns of any table. The expected ones have five and two.
  static let mostColumns: Int32 = 32

  private static let limits: [(Int32, Int32)] = [
    (SQLITE_LIMIT_LENGTH, longestValue),
    (SQLITE_LIMIT_COLUMN, mostColumns),
    (SQLITE_LIMIT_ATTACHED, 0),
    (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_EXPR_DEPTH, 100),
  ]
}
