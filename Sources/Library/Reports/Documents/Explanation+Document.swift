package import KeyhaulKit

extension Explanation {
  /// The explanations of the outcomes for a single item.
  package static let outcomes = [ItemFate.migrates, .staysBehind, .absent, .unreadable].map(\.explanation)
  /// The explanation of the methods that move items to another device.
  package static let transferMethods = [TransferMethod.explanation]
  /// The explanations of all reasons, changes and other terms in reports.
  package static let terms = GlossaryTerm.allCases.map(\.explanation)

  /// The fields of an explanation (formats `explanation/1` and `explanations/1`).
  package var fields: [(String, JSONValue)] {
    var fields: [(String, JSONValue)] = [("id", .string(id))]
    if let code { fields.append(("code", .integer(Int64(code)))) }
    if let number { fields.append(("number", .integer(Int64(number)))) }
    fields += [
      ("title", .string(headline)), ("rule", .string(rule)), ("effect", .string(effect)), ("do", .string(action)),
    ]
    if let otherWays { fields.append(("other_ways", .string(otherWays))) }
    if let source { fields.append(("source", .string(source))) }
    return fields
  }
}
