import Basics
import KeychainFormats
import KeychainRules

/// How a row holds data that has no bytes: as the empty text `''`, never as a blob of no bytes.
///
/// SQLite holds `''` and `x''` for different values, and every query of Apple's daemon looks for `musr = ''`: a row with
/// `x''` there is one that it never sees. Rows that say `x''`, as this program once wrote, are read like the others, and
/// put right before anything is written. Source: Apple `SecDb.c` (`SecDbBindBlob` of no bytes), 200 rows of its daemon.
enum EmptyData {
  /// A condition that a column holds data of no bytes, in either form.
  static func condition(_ column: String) -> String { "\(column) IN ('',x'')" }

  /// The columns that hold data as it is. Empty data in them is what there are two forms of.
  static func columns(of kind: ItemKind) -> [AttributeDefinition] {
    ColumnDefinitions.all(of: kind).filter(\.storesDataInColumn)
  }

  /// Whether a row has the old form in a column that an index leads to: `musr`, which every row of the single user has
  /// empty, the identifiers of certificates and keys, and the persistent reference. The indexes are gone through, not
  /// the rows; nothing is kept of the answer, so that rows which another program writes later are found too.
  static func needsSettling(in transaction: KeychainTransaction) throws(KeyhaulError) -> Bool {
    for kind in ItemKind.allCases {
      for question in questions(about: kind)
      where try transaction.database.columnValues(sql: question) == [[.integer(1)]] {
        return true
      }
    }
    return false
  }

  /// Each answers 1 where there is such a row.
  static func questions(about kind: ItemKind) -> [String] {
    let table = kind.rawValue
    // From each access group to the next by the index on agrp and musr.
    let byGroup =
      "WITH RECURSIVE groups(agrp) AS (SELECT min(agrp) FROM \(table) UNION ALL "
      + "SELECT (SELECT min(agrp) FROM \(table) WHERE agrp>groups.agrp) FROM groups WHERE groups.agrp NOT NULL) "
      + "SELECT EXISTS(SELECT 1 FROM groups "
      + "WHERE EXISTS(SELECT 1 FROM \(table) WHERE \(table).agrp=groups.agrp AND musr=x''))"
    let indexed = columns(of: kind).filter { $0.flags.contains(.indexed) }.map(\.code.rawValue)
    return [byGroup] + indexed.map { "SELECT EXISTS(SELECT 1 FROM \(table) WHERE \($0)=x'')" }
  }

  /// Gives every row the one form. Of two rows that are one item then, the one modified last stays; of two modified at
  /// the same moment the one that had the right form, which is the one that Apple's daemon sees.
  static func settle(in transaction: KeychainTransaction) throws(KeyhaulError) {
    for kind in ItemKind.allCases {
      let table = kind.rawValue
      try transaction.database.run(deletionOfDoubles(of: kind))
      let columns = columns(of: kind).map(\.code.rawValue)
      let settings = columns.map { "\($0)=iif(\($0)=x'','',\($0))" }.joined(separator: ",")
      let conditions = columns.map { "\($0)=x''" }.joined(separator: " OR ")
      try transaction.database.run("UPDATE \(table) SET \(settings) WHERE \(conditions)")
    }
  }

  /// A NULL in a primary key is equal to nothing, so that such rows are double of none.
  private static func deletionOfDoubles(of kind: ItemKind) -> String {
    let key = ColumnDefinitions.primaryKey(of: kind)
    let settled = key.map { definition in
      let column = definition.code.rawValue
      return definition.storesDataInColumn ? "iif(\(column)=x'','',\(column))" : column
    }
    let oldForms = key.filter(\.storesDataInColumn).map { "(\($0.code.rawValue)=x'')" }.joined(separator: "+")
    let present = key.map { "\($0.code.rawValue) NOT NULL" }.joined(separator: " AND ")
    return "DELETE FROM \(kind.rawValue) WHERE rowid IN (SELECT number FROM (SELECT rowid AS number, row_number() OVER "
      + "(PARTITION BY \(settled.joined(separator: ",")) ORDER BY iif(typeof(mdat) IN ('real','integer'),mdat,NULL) DESC,"
      + "\(oldForms),rowid DESC) AS place FROM \(kind.rawValue) WHERE \(present)) WHERE place>1)"
  }
}
