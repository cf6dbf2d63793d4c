import Basics
import KeychainFormats
import KeychainRules

/// A WHERE clause with its arguments, the order and the limit. Column names come only from the attribute table.
struct RowCondition {
  private var terms: [String] = []
  private(set) var arguments: [ColumnValue] = []
  private var limit: Int?

  /// Creates a condition that every row matches.
  init() {}

  /// Creates the condition of a query.
  ///
  /// - Returns: `nil` if no row of this kind can match. The query is for all kinds and has an attribute that this kind
  ///   does not have, or it requires a row of another kind.
  /// - Throws: `.noSuchAttribute` if a query for only this kind has an attribute that the kind does not have,
  ///   `.parameter` for a value that cannot be compared.
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
