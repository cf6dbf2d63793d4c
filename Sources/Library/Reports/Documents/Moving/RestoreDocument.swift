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
  ///   - restoredCount: The number of items that were stored, excluding items that the target already had.
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
    if plan.removedOnlyCopyCount > 0 { fields.append(("removed_only_copies", .count(plan.removedOnlyCopyCount))) }
    if !plan.findings.isEmpty { fields.append(("findings", .array(plan.findings.map(\.json)))) }
    return .object(fields + [("revision", .string(revision))])
  }
}

/// The first and the last members that all documents about a move share.
package struct MoveDocument {
  package let source: PlanDocument.Source
  package let target: PlanDocument.Target
  package let summary: PlanDocument.Summary
  /// The field with the findings about the backup; empty if there are none.
  package let findingFields: [(String, JSONValue)]
  /// The last fields, about items that the source does not show. Empty for a device, because its plan names every item.
  package let blindSpotFields: [(String, JSONValue)]

  package init(_ plan: PlanDocument) {
    source = plan.source
    target = plan.target
    summary = plan.summary
    findingFields = plan.findingFields
    blindSpotFields = plan.blindSpotFields
  }
}

extension PlanDocument.Source {
  /// The last fields that depend only on the source. Empty for a device, because its plan names every item.
  package var blindSpotFields: [(String, JSONValue)] {
    switch kind {
    case .archive: [BackupBlindSpots.field]
    // A document about a dump has a separate member about missing items.
    case .device, .dump: []
    }
  }
}

extension PlanDocument {
  /// The field with the findings about the backup; empty if there are none.
  package var findingFields: [(String, JSONValue)] {
    findings.isEmpty ? [] : [("findings", .array(findings.map(\.json)))]
  }

  /// The last fields of every document about a move: the source's blind spots, the source device's other items, and
  /// the disclaimer about a dump.
  package var blindSpotFields: [(String, JSONValue)] {
    source.blindSpotFields + (notInBackup.map { [("not_in_backup", $0.json)] } ?? [])
      + (dump.map { [("dump", $0.json)] } ?? [])
  }
}
