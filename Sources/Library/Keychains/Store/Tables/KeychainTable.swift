import Basics
import GRDB
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// The SQL statements of an item table, and the conversion of its rows.
struct KeychainTable {
  let kind: ItemKind
  /// The indexes of the columns for the encrypted item among the written columns.
  let encryptedColumnIndexes: [Int]
  /// The indexes of the primary key's columns among the written columns.
  let primaryKeyColumnIndexes: [Int]
  let insertSQL: String
  let overwriteSQL: String
  let deleteSQL: String
  let selectByPrimaryKeySQL: String
  /// `SELECT … FROM table`, without conditions.
  let selectSQL: String
  /// The indexes of the primary key's columns among the selected columns.
  private let primaryKeyRange: Range<Int>
  private let primaryKeyCodes: [AttributeCode]

  /// The columns that a row's summary needs, in addition to those of the primary key.
  private static let summaryCodes: [AttributeCode] = [
    .rowID, .encryptedData, .protection, .tombstone, .appClip, .modificationDate, .digest, .uuid, .persistentReference,
  ]

  static func table(of kind: ItemKind) -> KeychainTable {
    switch kind {
    case .genericPassword: genericPassword
    case .internetPassword: internetPassword
    case .certificate: certificate
    case .key: key
    }
  }

  private static let genericPassword = KeychainTable(.genericPassword)
  private static let internetPassword = KeychainTable(.internetPassword)
  private static let certificate = KeychainTable(.certificate)
  private static let key = KeychainTable(.key)

  private init(_ kind: ItemKind) {
    let table = kind.rawValue
    let columns = ColumnDefinitions.all(of: kind).map(\.code).filter { $0 != .rowID }
    let names = columns.map(\.rawValue)
    let definitions = ColumnDefinitions.primaryKey(of: kind)
    let primaryKey = definitions.map(\.code)
    let selected = (Self.summaryCodes + primaryKey).map(\.rawValue).joined(separator: ",")
    let condition = zip(1..., definitions).map(Self.equality).joined(separator: " AND ")
    self.kind = kind
    encryptedColumnIndexes = columns.indices.filter { columns[$0] == .encryptedData }
    primaryKeyColumnIndexes = primaryKey.compactMap { columns.firstIndex(of: $0) }
    primaryKeyCodes = primaryKey
    primaryKeyRange = Self.summaryCodes.count..<(Self.summaryCodes.count + primaryKey.count)
    selectSQL = "SELECT \(selected) FROM \(table)"
    selectByPrimaryKeySQL = "SELECT \(selected) FROM \(table) WHERE \(condition)"
    let placeholders = names.map { _ in "?" }.joined(separator: ",")
    insertSQL = "INSERT INTO \(table)(\(names.joined(separator: ","))) VALUES (\(placeholders))"
    overwriteSQL = "UPDATE \(table) SET \(names.map { "\($0)=?" }.joined(separator: ",")) WHERE rowid=?"
    deleteSQL = "DELETE FROM \(table) WHERE rowid=?"
  }

  /// Returns a comparison in which both forms of empty data are equal (`EmptyData`).
  private static func equality(to parameter: Int, of definition: AttributeDefinition) -> String {
    let column = definition.code.rawValue
    guard definition.storesDataInColumn else { return "\(column)=?\(parameter)" }
    return "\(column) IN (?\(parameter),iif(?\(parameter)='',x'',?\(parameter)))"
  }

  /// Converts a row of one of the SELECT statements.
  func read(_ row: Row) -> RawRow {
    let primaryKeyValues = primaryKeyRange.map { row.columnValue($0) }
    var columns = Dictionary(uniqueKeysWithValues: zip(primaryKeyCodes, primaryKeyValues))
    for (index, code) in Self.summaryCodes.enumerated() { columns[code] = row.columnValue(index) }
    let summary = RowSummary(
      reference: RowReference(kind: kind, rowID: columns[.rowID]?.integerValue ?? 0),
      primaryKey: PrimaryKey(kind: kind, columns: primaryKeyValues),
      digest: columns[.digest]?.blobValue,
      columns: columns)
    return RawRow(summary: summary, encryptedItem: columns[.encryptedData]?.blobValue)
  }
}

/// The column values of a row to write: the encrypted item and its searchable attributes.
struct WritableRow {
  let kind: ItemKind
  /// The values in the order of `ItemColumns.values`, as in the table's statements.
  let columns: [ColumnValue]
  let primaryKey: [ColumnValue]
  /// The item with its digest, before encryption.
  let item: KeychainItem

  /// Computes the item's digest, encrypts it and arranges the columns.
  ///
  /// - Throws: `.interactionNotAllowed`, `.authFailed` or `.notAvailable` if the class key is missing, `.parameter` for
  ///   a value that an attribute cannot have.
  init(
    encrypting item: KeychainItem, keys: ClassKeys, random: any RandomSource
  ) throws(KeyhaulError) {
    var item = item
    item.unpack()
    item[.digest] = .data(try translatingRuleErrors(try item.storedDigest()))
    var columns = try translatingRuleErrors(try ItemColumns.values(of: item))
    let table = KeychainTable.table(of: item.kind)
    let encrypted = try RowEncryption.encrypt(item, keys: keys, random: random)
    for index in table.encryptedColumnIndexes { columns[index] = .blob(encrypted) }
    kind = item.kind
    primaryKey = table.primaryKeyColumnIndexes.map { columns[$0] }
    self.columns = columns
    self.item = item
  }
}
