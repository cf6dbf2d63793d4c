package import KeyhaulKit

/// The document of `restore-result/1`: what came of a restore, with the fields of its plan.
package struct RestoreDocument {
  let plan: PlanDocument
  let restored: Int
  let overwritten: Int
  let newer: Int
  let revision: String

  /// - Parameters:
  ///   - plan: The plan that was carried out.
  ///   - restored: How many items were stored that were not there already.
  ///   - overwritten: How many took the place of another one that was not the same.
  ///   - newer: How many of those were newer on the target.
  ///   - revision: Of the target, afterwards.
  package init(plan: PlanDocument, restored: Int, overwritten: Int, newer: Int, revision: String) {
    self.plan = plan
    self.restored = restored
    self.overwritten = overwritten
    self.newer = newer
    self.revision = revision
  }

  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("format", "restore-result/1"), ("summary", plan.summary.json), ("restored", .count(restored)),
      ("overwritten", .count(overwritten)), ("overwritten_newer", .count(newer)),
      ("items", .each(plan.items) { $0.json }), ("removed", .each(plan.removed) { $0.json }),
    ]
    if plan.removedOnlyCopies > 0 { fields.append(("removed_only_copies", .count(plan.removedOnlyCopies))) }
    if !plan.findings.isEmpty { fields.append(("findings", .array(plan.findings.map(\.json)))) }
    return .object(fields + [("revision", .string(revision))])
  }
}
