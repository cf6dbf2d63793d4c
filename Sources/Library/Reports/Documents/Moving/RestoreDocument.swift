package import KeyhaulKit

/// The result of a restore, with the fields of its plan (`restore-result/1`).
package struct RestoreDocument {
  let plan: PlanDocument
  let restoredCount: Int
  let overwrittenCount: Int
  let overwrittenNewerCount: Int
  let revision: String

  /// Creates the document of a restore.
  ///
  /// - Parameters:
  ///   - plan: The plan that was carried out.
  ///   - restoredCount: The number of items that were stored, without those that the target already had.
  ///   - overwrittenCount: The number of items that replaced a different item on the target.
  ///   - overwrittenNewerCount: The number of overwritten items that were newer on the target.
  ///   - revision: The revision of the target after the restore.
  package init(
    plan: PlanDocument, restoredCount: Int, overwrittenCount: Int, overwrittenNewerCount: Int, revision: String
  ) {
    self.plan = plan
    self.restoredCount = restoredCount
    self.overwrittenCount = overwrittenCount
    self.overwrittenNewerCount = overwrittenNewerCount
    self.revision = revision
  }

  package var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("format", "restore-result/1"), ("summary", plan.summary.json), ("restored", .count(restoredCount)),
      ("overwritten", .count(overwrittenCount)), ("overwritten_newer", .count(overwrittenNewerCount)),
      ("items", .each(plan.items) { $0.json }), ("removed", .each(plan.removed) { $0.json }),
    ]
    if plan.removedOnlyCopies > 0 { fields.append(("removed_only_copies", .count(plan.removedOnlyCopies))) }
    if !plan.findings.isEmpty { fields.append(("findings", .array(plan.findings.map(\.json)))) }
    return .object(fields + [("revision", .string(revision))])
  }
}
