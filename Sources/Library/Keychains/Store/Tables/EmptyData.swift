import Basics
import KeychainFormats
import KeychainRules

/// Normalizes data without bytes, which a row must store as the empty text `''` and never as an empty blob.
///
/// SQLite treats `''` and `x''` as different values, and every query of Apple's daemon searches for `musr = ''`, so it
/// never finds a row with `x''`. Rows with `x''`, which earlier versions of Keyhaul wrote, can be read, and are
/// normalized before the first change.
///
/// Sources: `SecDbBindBlob` in Apple's `SecDb.c`, and 200 rows that Apple's daemon wrote.
enum EmptyData {
  /// Returns a condition for a column with empty data in either form.
  static func condition(_ column: String) -> String { "\(column) IN ('',x'')" }

  /// Returns the columns with raw data. Only these columns can contain empty data, as `''` or `x''`.
  static func columns(of kind: ItemKind) -> [AttributeDefinition] {
    ColumnDefinitions.all(of: kind).filter(\.storesDataInColumn)
  }

  /// Returns whether a row has an empty blob in an indexed column. Such columns are `musr`, which is empty in every row
  /// of the single user, the identifiers of certificates and keys, and the persistent reference.
  ///
  /// Only indexes are searched, not rows. The result is not cached, because another program may write such rows later.
  static func needsNormalization(in transaction: KeychainTransaction) throws(KeyhaulError) -> Bool {
    for kind in ItemKind.allCases {
      for probe in probeSQL(for: kind)
      where try transaction.database.columnValues(sql: probe) == [[.integer(1)]] {
        return true
      }
    }
    return false
  }

  /// Returns queries whose result is 1 if a row has an empty blob in an indexed column.
  static func probeSQL(for kind: ItemKind) -> [String] {
    let table = kind.rawValue
    // The recursion jumps from one access group to the next in the index on `agrp` and `musr`, and looks for an empty
    // `musr` in each, so it does not read all rows.
    let byGroup = """
      WITH RECURSIVE groups(agrp) AS (SELECT min(agrp) FROM \(table) UNION ALL \
      SELECT (SELECT min(agrp) FROM \(table) WHERE agrp>groups.agrp) FROM groups WHERE groups.agrp NOT NULL) \
      SELECT EXISTS(SELECT 1 FROM groups \
      WHERE EXISTS(SELECT 1 FROM \(table) WHERE \(table).agrp=groups.agrp AND musr=x''))
      """
    let indexed = columns(of: kind).filter { $0.flags.contains(.indexed) }.map(\.code.rawValue)
    return [byGroup] + indexed.map { "SELECT EXISTS(SELECT 1 FROM \(table) WHERE \($0)=x'')" }
  }

  /// Replaces empty blobs with empty text. If two rows then have the same primary key, the row that was modified last
  /// stays. If the dates are equal, the row with empty text stays, because Apple's daemon finds it.
  static func normalize(in transaction: KeychainTransaction) throws(KeyhaulError) {
    for kind in ItemKind.allCases {
      let table = kind.rawValue
      try transaction.database.run(duplicateRemovalSQL(for: kind))
      let columns = columns(of: kind).map(\.code.rawValue)
      let assignments = columns.map { "\($0)=iif(\($0)=x'','',\($0))" }.joined(separator: ",")
      let conditions = columns.map { "\($0)=x''" }.joined(separator: " OR ")
      try transaction.database.run("UPDATE \(table) SET \(assignments) WHERE \(conditions)")
    }
  }

  /// Returns a statement that deletes duplicates: it sorts the rows of each normalized primary key by preference, and
  /// deletes all but the first. Rows with a NULL in the primary key are never duplicates, because NULL differs from every
  /// value.
  private static func duplicateRemovalSQL(for kind: ItemKind) -> String {
    let table = kind.rawValue
    let keyColumns = ColumnDefinitions.primaryKey(of: kind)
    let normalizedKey = keyColumns.map { definition in
      let column = definition.code.rawValue
      return definition.storesDataInColumn ? "iif(\(column)=x'','',\(column))" : column
    }.joined(separator: ",")
    let keyHasNoNull = keyColumns.map { "\($0.code.rawValue) NOT NULL" }.joined(separator: " AND ")
    let modificationDate = "iif(typeof(mdat) IN ('real','integer'),mdat,NULL)"
    let emptyBlobCount =
      keyColumns.filter(\.storesDataInColumn).map { "(\($0.code.rawValue)=x'')" }.joined(separator: "+")
    let preference = "\(modificationDate) DESC,\(emptyBlobCount),rowid DESC"
    return """
      DELETE FROM \(table) WHERE rowid IN (SELECT number FROM (SELECT rowid AS number, row_number() OVER \
      (PARTITION BY \(normalizedKey) ORDER BY \(preference)) AS position FROM \(table) WHERE \(keyHasNoNull)) \
      WHERE position>1)
      """
  }
}
