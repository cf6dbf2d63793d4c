/// What may stand in a manifest database.
enum ManifestSchema {
  /// As current devices create them (iOS 10.2 and later; `Properties` is empty since 10.1).
  static let statements = [
    "CREATE TABLE Files (fileID TEXT PRIMARY KEY, domain TEXT, relativePath TEXT, flags INTEGER, file BLOB)",
    "CREATE INDEX FilesDomainIdx ON Files(domain)",
    "CREATE INDEX FilesRelativePathIdx ON Files(relativePath)",
    "CREATE INDEX FilesFlagsIdx ON Files(flags)",
    "CREATE TABLE Properties (key TEXT PRIMARY KEY, value BLOB)",
  ]
  static let userVersion = 2
  private static let tables = ["Files", "Properties"]
  private static let columns = ["fileID", "domain", "relativePath", "flags", "file"]

  /// Compares the schema with what a device creates; reads nothing but the schema itself.
  static func check(_ connection: DefensiveConnection) throws(BackupArchiveError) {
    var hasFiles = false
    try connection.forEachRow("SELECT type, name, tbl_name, sql FROM sqlite_master") {
      (object) throws(BackupArchiveError) in
      guard let type = object.text(0), let name = object.text(1), let table = object.text(2) else {
        throw foreign("a nameless object")
      }
      let isKnownTable = tables.contains(table)
      switch (type, object.text(3)) {
      case ("table", let sql?) where isKnownTable && name == table && isPlain(sql, beginningWith: "CREATE TABLE"):
        hasFiles = hasFiles || name == "Files"
      case ("index", nil) where isKnownTable: break
      case ("index", let sql?) where isKnownTable && isPlain(sql, beginningWith: "CREATE INDEX"): break
      case ("index", let sql?) where isKnownTable && isPlain(sql, beginningWith: "CREATE UNIQUE INDEX"): break
      default: throw foreign("\(quoted(type)) \(quoted(name))")
      }
    }
    guard hasFiles else { throw BackupArchiveError(.damaged, "the manifest database has no table Files") }
    try checkColumns(connection)
  }

  /// One pair of parentheses holds the columns. Every way to make SQLite compute something (checks, generated columns,
  /// defaults and indexes of expressions, partial indexes) needs another pair or one of these words. A table without row
  /// numbers, which readers go by, needs one too.
  private static func isPlain(_ sql: String, beginningWith start: String) -> Bool {
    let bytes = sql.utf8
    let words = sql.uppercased().split { !$0.isLetter }
    return sql.uppercased().hasPrefix(start)
      && bytes.count(where: { $0 == UInt8(ascii: "(") }) == 1
      && bytes.count(where: { $0 == UInt8(ascii: ")") }) == 1
      && !["CHECK", "GENERATED", "WHERE", "SELECT", "USING", "COLLATE", "WITHOUT"].contains { words.contains($0) }
  }

  private static func checkColumns(_ connection: DefensiveConnection) throws(BackupArchiveError) {
    var names: [String?] = []
    // The second column is the name.
    try connection.forEachRow("PRAGMA table_xinfo(Files)") { names.append($0.text(1)) }
    guard names == columns else {
      throw BackupArchiveError(.damaged, "the table Files of the manifest database has other columns than expected")
    }
  }

  private static func foreign(_ what: String) -> BackupArchiveError {
    BackupArchiveError(.hostile, "the manifest database holds \(what), which no device creates")
  }
}
