import Basics
import KeychainFormats

/// The expected schema of a manifest database.
enum ManifestSchema {
  /// The statements with which devices create the database (iOS 10.2 and later; `Properties` is empty since 10.1).
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

  /// Compares the schema with the expected one. Reads only the schema.
  static func check(_ connection: ManifestConnection) throws(KeyhaulError) {
    var hasFiles = false
    try connection.forEachRow("SELECT type, name, tbl_name, sql FROM sqlite_master") {
      (object) throws(KeyhaulError) in
      guard let type = object.text(0), let name = object.text(1), let table = object.text(2) else {
        throw unexpectedSchema("a nameless object")
      }
      let isKnownTable = tables.contains(table)
      switch (type, object.text(3)) {
      case ("table", let sql?) where name == table && SystemTables.contains(name, statement: sql): break
      case ("table", let sql?) where isKnownTable && name == table && isPlain(sql, beginningWith: "CREATE TABLE"):
        hasFiles = hasFiles || name == "Files"
      case ("index", nil) where isKnownTable: break
      case ("index", let sql?) where isKnownTable && isIndexOfColumns(sql, of: table): break
      default: throw unexpectedSchema("\(quoted(type)) \(quoted(name))")
      }
    }
    guard hasFiles else { throw KeyhaulError(.damaged, "the manifest database has no Files table") }
    try checkColumns(connection)
  }

  /// Returns whether a statement has only column definitions. All computations in SQLite (checks, generated columns,
  /// defaults, expression indexes, partial indexes) require a second pair of parentheses or one of these words. Tables
  /// without row numbers, which Keyhaul cannot read, also require one of these words.
  private static func isPlain(_ sql: String, beginningWith start: String) -> Bool {
    let bytes = sql.utf8
    let words = sql.uppercased().split { !$0.isLetter }
    return sql.uppercased().hasPrefix(start)
      && bytes.count(where: { $0 == UInt8(ascii: "(") }) == 1
      && bytes.count(where: { $0 == UInt8(ascii: ")") }) == 1
      && !["CHECK", "GENERATED", "WHERE", "SELECT", "USING", "COLLATE", "WITHOUT"].contains { words.contains($0) }
  }

  /// Returns whether an index contains only columns. The statement must end with its only pair of parentheses. Each part
  /// in them must be a column name with an optional `ASC` or `DESC`. Anything else is an expression that SQLite would
  /// compute.
  ///
  /// Source: SQLite, "CREATE INDEX" and "Indexes On Expressions".
  private static func isIndexOfColumns(_ sql: String, of table: String) -> Bool {
    guard isPlain(sql, beginningWith: "CREATE INDEX") || isPlain(sql, beginningWith: "CREATE UNIQUE INDEX"),
      let start = sql.utf8.firstIndex(of: UInt8(ascii: "(")), sql.utf8.last == UInt8(ascii: ")")
    else { return false }
    let names = columns(of: table).map { $0.uppercased() }
    let parts = sql[sql.utf8.index(after: start)...].dropLast().split(separator: ",", omittingEmptySubsequences: false)
    return parts.allSatisfy { part in
      let words = part.uppercased().split { $0.isWhitespace }
      guard let name = words.first, names.contains(unquoted(name)) else { return false }
      return words.count == 1 || (words.count == 2 && ["ASC", "DESC"].contains(words[1]))
    }
  }

  /// Returns a name without SQL quotation marks. Single quotes are for strings.
  private static func unquoted(_ word: Substring) -> String {
    let quotationMarks = [("\"", "\""), ("`", "`"), ("[", "]")]
    for (opening, closing) in quotationMarks where word.hasPrefix(opening) && word.hasSuffix(closing) {
      return String(word.dropFirst().dropLast())
    }
    return String(word)
  }

  private static func columns(of table: String) -> [String] { table == "Files" ? columns : ["key", "value"] }

  private static func checkColumns(_ connection: ManifestConnection) throws(KeyhaulError) {
    var names: [String?] = []
    // The second column is the name.
    try connection.forEachRow("PRAGMA table_xinfo(Files)") { names.append($0.text(1)) }
    guard names == columns else {
      throw KeyhaulError(.damaged, "the Files table of the manifest database has unexpected columns")
    }
  }

  private static func unexpectedSchema(_ object: String) -> KeyhaulError {
    KeyhaulError(.hostile, "the manifest database holds \(object), which no device creates")
  }
}
