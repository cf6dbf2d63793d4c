package import KeyhaulKit

extension Explanation {
  /// What becomes of an item.
  package static let fates = [ItemFate.migrates, .staysBehind, .absent, .unreadable].map(\.explanation)
  /// What is not the fate of one item: the ways to another device.
  package static let ways = [TransferMethod.explanation]
  /// Why an item stays behind, cannot be read, or changes on the target: every word that a report can show.
  package static let terms = GlossaryTerm.allCases.map(\.explanation)

  /// What a document says of the page (formats `explanation/1` and `explanations/1`).
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
