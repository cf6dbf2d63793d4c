package import KeyhaulKit

extension JSONValue {
  /// The fields that name an item in every report.
  package static func identity(_ identity: ItemDescriptor) -> [(String, JSONValue)] {
    [
      ("kind", .string(identity.kind.reportName)), ("label", .text(identity.label)),
      ("account", .text(identity.account)), ("service", .text(identity.service)), ("server", .text(identity.server)),
      ("access_group", .text(identity.accessGroup)),
    ]
  }
}

extension BackupFinding {
  /// The fields of a finding: the fact, its position, whether something is lost, and whether a restore is possible.
  var json: JSONValue {
    [
      "id": .string(kind.rawValue), "place": .string(place), "detail": .string(fact), "lost": .boolean(isLoss),
      "restorable": .boolean(!blocks(.restoring)),
    ]
  }
}

extension BackupBlindSpots {
  /// The member of every document about what is in a backup.
  package static var field: (String, JSONValue) { ("cannot_show", PlanDocument.BackupLimitation.unseenItems.json) }
}
