import Basics
import KeychainFormats
import KeychainRules

/// A WHERE clause with its arguments, and what follows it. Column names come from the attribute table alone.
struct RowCondition {
  private var terms: [String] = []
  private(set) var arguments: [ColumnValue] = []
  private var limit: Int?

  /// Every row.
  init() {}

  /// The rows that a query means.
  ///
  /// - Returns: `nil` where a query for all kinds asks for an attribute that this kind doesn't have.
  /// - Throws: `.noSuchAttribute` where the query names its kind, `.parameter` for a value that cannot be compared.
  init?(_ query: ItemQuery, kind: ItemKind, limit: Int? = nil) throws(KeychainStoreError) {
    for (code, value) in query.attributes.sorted(by: { $0.key < $1.key }) {
      guard let definition = AttributeTable.definition(of: code, in: kind), definition.flags.contains(.column),
        definition.kind != .encryptedData
      else {
        guard query.kind == nil else {
          throw KeychainStoreError(.noSuchAttribute, "a \(kind.reportName) cannot be found by \(code.rawValue)")
        }
        return nil
      }
      require(definition, equal: try byRule(try ItemColumns.value(value, for: definition)))
    }
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

  /// Rows of the single user's view.
  static func singleUser(includingTombstones: Bool) -> RowCondition {
    var condition = RowCondition()
    condition.terms.append(EmptyData.condition("musr"))
    if !includingTombstones { condition.terms.append("tomb=0") }
    return condition
  }

  private mutating func require(_ definition: AttributeDefinition, equal value: ColumnValue) {
    if definition.holdsDataInColumn, value.isEmptyTextOrBlob {
      terms.append(EmptyData.condition(definition.code.rawValue))
    } else {
      require("\(definition.code.rawValue)=?", value)
    }
  }

  private mutating func require(_ term: String, _ argument: ColumnValue) {
    terms.append(term)
    arguments.append(argument)
  }

  /// Begins with a blank; rows come in the order of their numbers.
  var clause: String {
    let condition = terms.isEmpty ? "" : " WHERE " + terms.joined(separator: " AND ")
    return condition + " ORDER BY rowid" + (limit.map { " LIMIT \(max(0, $0))" } ?? "")
  }
}
