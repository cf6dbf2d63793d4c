import Basics
import GRDB
import KeychainCrypto
import KeychainFormats
import KeychainRules

/// The SQL statements of an item table, and the conversion of its rows.
struct KeychainTable {
  let kind: ItemKind
  /// The positions of the encrypted item among the written columns.
  let encryptedColumnIndexes: [Int]
  /// The positions of the primary key's columns among the written columns.
  let primaryKeyColumnIndexes: [Int]
  let insertSQL: String
  let overwriteSQL: String
  let deleteSQL: String
  let selectByPrimaryKeySQL: String
  /// `SELECT … FROM table`, without conditions.
  let selectSQL: String
  /// The positions of the primary key's columns among the selected columns.
  private let primaryKeyRange: Range<Int>
  private let primaryKeyCodes: [AttributeCode]

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
    let match = zip(1..., definitions).map(Self.equality).joined(separator: " AND ")
    self.kind = kind
    encryptedColumnIndexes = columns.indices.filter { columns[$0] == .encryptedData }
    primaryKeyColumnIndexes = primaryKey.compactMap { columns.firstIndex(of: $0) }
    primaryKeyCodes = primaryKey
    primaryKeyRange = Self.summaryCodes.count..<(Self.summaryCodes.count + primaryKey.count)
    selectSQL = "SELECT \(selected) FROM \(table)"
    selectByPrimaryKeySQL = "SELECT \(selected) FROM \(table) WHERE \(match)"
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

  /// Converts a row of one of the SELECT statements. A column with a value of the wrong type counts as empty.
  func read(_ row: Row) -> RawRow {
    let values = Dictionary(
      uniqueKeysWithValues: Self.summaryCodes.enumerated().map { ($1, row.columnValue($0)) })
    let keyValues = primaryKeyRange.map { row.columnValue($0) }
    let keys = Dictionary(uniqueKeysWithValues: zip(primaryKeyCodes, keyValues))
    let sharingGroup = keys[.sharingGroup]?.textValue ?? ""
    let summary = RowSummary(
      reference: RowReference(kind: kind, rowID: values[.rowID]?.integerValue ?? 0),
      primaryKey: PrimaryKey(kind: kind, columns: keyValues),
      accessGroup: keys[.accessGroup]?.textValue ?? "",
      protectionCode: values[.protection]?.textValue,
      isSynchronizable: keys[.synchronizable]?.integerValue == 1,
      isTombstone: (values[.tombstone]?.integerValue ?? 0) != 0,
      isAppClip: (values[.appClip]?.integerValue ?? 0) != 0,
      hasTokenID: !(keys[.tokenID]?.textValue ?? "").isEmpty,
      sharingGroup: sharingGroup.isEmpty ? nil : sharingGroup,
      multiUser: keys[.multiUser]?.blobValue ?? [],
      modificationDate: values[.modificationDate]?.realValue.map { KeychainDate(secondsSinceReferenceDate: $0) },
      digest: values[.digest]?.blobValue,
      uuid: values[.uuid]?.textValue,
      persistentReference: values[.persistentReference]?.blobValue ?? [],
      isRemovedByRestore: RestoreRemoval.removes(keys))
    return RawRow(summary: summary, encryptedItem: values[.encryptedData]?.blobValue)
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
  ///   a value that its attribute cannot have.
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

/// A WHERE clause with its arguments, the order and the limit. Column names come only from the attribute table.
struct RowCondition {
  private var terms: [String] = []
  private(set) var arguments: [ColumnValue] = []
  private var limit: Int?

  /// Creates a condition that every row matches.
  init() {}

  /// Creates the condition of a query.
  ///
  /// - Returns: `nil` if a query for all kinds has an attribute that this kind does not have.
  /// - Throws: `.noSuchAttribute` if the query names this kind, `.parameter` for a value that cannot be compared.
  init?(_ query: ItemQuery, kind: ItemKind, limit: Int? = nil) throws(KeyhaulError) {
    guard try requireAttributes(of: query, kind: kind) else { return nil }
    if let row = query.row {
      guard row.kind == kind else { return nil }
      require("rowid=?", .integer(row.rowID))
    }
    if let reference = query.persistentReference { require("persistref=?", .blob(reference)) }
    terms.append(EmptyData.condition("musr"))
    switch query.accessGroups {
    case .all: break
    case .only(let groups):
      terms.append("agrp IN (\(groups.map { _ in "?" }.joined(separator: ",")))")
      arguments += groups.map { .text($0) }
    }
    switch query.synchronization {
    case .any: break
    case .localOnly: terms.append("sync=0")
    case .synchronizedOnly: terms.append("sync=1")
    }
    switch query.tombstones {
    case .included: break
    case .excluded: terms.append("tomb=0")
    case .only: terms.append("tomb=1")
    }
    self.limit = limit
  }

  /// Requires that the columns equal the query's attributes.
  ///
  /// - Returns: `false` if a query for all kinds has an attribute that this kind does not have.
  private mutating func requireAttributes(of query: ItemQuery, kind: ItemKind) throws(KeyhaulError) -> Bool {
    for (code, value) in query.attributes.sorted(by: { $0.key < $1.key }) {
      guard let definition = AttributeTable.definition(of: code, in: kind), definition.flags.contains(.column),
        definition.kind != .encryptedData
      else {
        guard query.kind == nil else {
          throw KeyhaulError(.noSuchAttribute, "a \(kind.reportName) cannot be found by \(code.rawValue)")
        }
        return false
      }
      require(definition, equal: try translatingRuleErrors(try ItemColumns.value(value, for: definition)))
    }
    return true
  }

  /// Returns a condition for the rows of the single user.
  static func singleUser(includingTombstones: Bool) -> RowCondition {
    var condition = RowCondition()
    condition.terms.append(EmptyData.condition("musr"))
    if !includingTombstones { condition.terms.append("tomb=0") }
    return condition
  }

  private mutating func require(_ definition: AttributeDefinition, equal value: ColumnValue) {
    if definition.storesDataInColumn, value.isEmptyTextOrBlob {
      terms.append(EmptyData.condition(definition.code.rawValue))
    } else {
      require("\(definition.code.rawValue)=?", value)
    }
  }

  private mutating func require(_ term: String, _ argument: ColumnValue) {
    terms.append(term)
    arguments.append(argument)
  }

  /// The clause with a leading space. Rows are sorted by number.
  var clause: String {
    let condition = terms.isEmpty ? "" : " WHERE " + terms.joined(separator: " AND ")
    return condition + " ORDER BY rowid" + (limit.map { " LIMIT \(max(0, $0))" } ?? "")
  }
}
