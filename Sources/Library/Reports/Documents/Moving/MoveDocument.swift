package import KeyhaulKit

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
  /// The last fields that depend only on the source: none for a device, because its plan names every item.
  package var blindSpotFields: [(String, JSONValue)] {
    switch kind {
    case .archive: [BackupBlindSpots.field]
    // A document about a dump has a separate member about missing items.
    case .device, .dump: []
    }
  }
}

extension PlanDocument {
  /// The field about anomalies of the backup; none if there are no anomalies.
  package var findingFields: [(String, JSONValue)] {
    findings.isEmpty ? [] : [("findings", .array(findings.map(\.json)))]
  }

  /// The last fields of every document about a move, about items that are not in the backup.
  package var blindSpotFields: [(String, JSONValue)] {
    source.blindSpotFields + (notInBackup.map { [("not_in_backup", $0.json)] } ?? [])
      + (dump.map { [("dump", $0.json)] } ?? [])
  }
}
