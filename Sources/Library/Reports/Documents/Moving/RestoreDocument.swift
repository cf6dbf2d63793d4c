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

/// The common first and last members of the documents of a move.
package struct MoveDocument {
  package let source: PlanDocument.Source
  package let target: PlanDocument.Target
  package let summary: PlanDocument.Summary
  /// The fields about anomalies of the backup; none if there are no anomalies.
  package let findingFields: [(String, JSONValue)]
  /// The last fields: none for a device, because its plan names every item; for a backup, its limits and the other
  /// items of the source device.
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
  /// The last fields that only depend on the source: none for a device, because its plan names every item.
  package var blindSpotFields: [(String, JSONValue)] {
    switch kind {
    case .archive: [BackupBlindSpots.field]
    // A plan of a device names every item; what a dump does not tell its own member says.
    case .device, .dump: []
    }
  }
}

extension PlanDocument {
  /// The field about what of the backup is not as a device leaves it, where something is.
  package var findingFields: [(String, JSONValue)] {
    findings.isEmpty ? [] : [("findings", .array(findings.map(\.json)))]
  }

  /// The fields about what is in no backup, as every document of a move ends with them.
  package var blindSpotFields: [(String, JSONValue)] {
    source.blindSpotFields + (notInBackup.map { [("not_in_backup", $0.json)] } ?? [])
      + (dump.map { [("dump", $0.json)] } ?? [])
  }
}
