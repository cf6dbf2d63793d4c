import Basics
import GRDB
import KeychainFormats
import KeychainRules

/// The SQL of one table and the reading of its rows.
struct KeychainTable {
  let kind: ItemKind
  /// Of the sealed item among the columns that are written.
  let sealedPlaces: [Int]
  /// Of the primary key's columns among those that are written, in its order.
  let primaryKeyPlaces: [Int]
  let insertSQL: String
  let overwriteSQL: String
  let deleteSQL: String
  let selectByPrimaryKeySQL: String
  /// `SELECT … FROM table`, without conditions.
  let selectSQL: String
  /// The definitions of the primary key, in the order of `primaryKeyIndexes`.
  private let primaryKeyRange: Range<Int>
  private let primaryKeyCodes: [AttributeCode]

  private static let factCodes: [AttributeCode] = [
    .rowID, .encryptedData, .protection, .tombstone, .appClip, .modificationDate, .digest, .uuid, .persistentReference,
  ]

  static func of(_ kind: ItemKind) -> KeychainTable {
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
    let selected = (Self.factCodes + primaryKey).map(\.rawValue).joined(separator: ",")
    let match = zip(1..., definitions).map(Self.equality).joined(separator: " AND ")
    self.kind = kind
    sealedPlaces = columns.indices.filter { columns[$0] == .encryptedData }
    primaryKeyPlaces = primaryKey.compactMap { columns.firstIndex(of: $0) }
    primaryKeyCodes = primaryKey
    primaryKeyRange = Self.factCodes.count..<(Self.factCodes.count + primaryKey.count)
    selectSQL = "SELECT \(selected) FROM \(table)"
    selectByPrimaryKeySQL = "SELECT \(selected) FROM \(table) WHERE \(match)"
    let places = names.map { _ in "?" }.joined(separator: ",")
    insertSQL = "INSERT INTO \(table)(\(names.joined(separator: ","))) VALUES (\(places))"
    overwriteSQL = "UPDATE \(table) SET \(names.map { "\($0)=?" }.joined(separator: ",")) WHERE rowid=?"
    deleteSQL = "DELETE FROM \(table) WHERE rowid=?"
  }

  /// Empty data is equal in both of its forms (`EmptyData`).
  private static func equality(to parameter: Int, of definition: AttributeDefinition) -> String {
    let column = definition.code.rawValue
    guard definition.holdsDataInColumn else { return "\(column)=?\(parameter)" }
    return "\(column) IN (?\(parameter),iif(?\(parameter)='',x'',?\(parameter)))"
  }

  /// Reads a row that one of the SELECT statements gave. Columns of a wrong type count as absent.
  func read(_ row: Row) -> RawRow {
    let facts = Dictionary(
      uniqueKeysWithValues: Self.factCodes.enumerated().map { ($1, row.columnValue($0)) })
    let keyValues = primaryKeyRange.map { row.columnValue($0) }
    let keys = Dictionary(uniqueKeysWithValues: zip(primaryKeyCodes, keyValues))
    let sharingGroup = keys[.sharingGroup]?.textValue ?? ""
    let summary = RowSummary(
      reference: RowReference(kind: kind, rowID: facts[.rowID]?.integerValue ?? 0),
      primaryKey: PrimaryKey(kind: kind, columns: keyValues),
      accessGroup: keys[.accessGroup]?.textValue ?? "",
      protectionCode: facts[.protection]?.textValue,
      isSynchronizable: keys[.synchronizable]?.integerValue == 1,
      isTombstone: (facts[.tombstone]?.integerValue ?? 0) != 0,
      isAppClip: (facts[.appClip]?.integerValue ?? 0) != 0,
      hasTokenID: !(keys[.tokenID]?.textValue ?? "").isEmpty,
      sharingGroup: sharingGroup.isEmpty ? nil : sharingGroup,
      multiUser: keys[.multiUser]?.blobValue ?? [],
      modificationDate: facts[.modificationDate]?.realValue.map { KeychainDate(secondsSinceReferenceDate: $0) },
      digest: facts[.digest]?.blobValue,
      uuid: facts[.uuid]?.textValue,
      persistentReference: facts[.persistentReference]?.blobValue ?? [],
      isRemovedByRestore: RestoreRemoval.removes(keys))
    return RawRow(summary: summary, sealedItem: facts[.encryptedData]?.blobValue)
  }
}
