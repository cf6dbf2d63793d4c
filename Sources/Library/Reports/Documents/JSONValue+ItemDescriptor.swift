package import KeyhaulKit

extension JSONValue {
  /// Returns the fields that identify an item in every report.
  package static func identity(_ identity: ItemDescriptor) -> [(String, JSONValue)] {
    [
      ("kind", .string(identity.kind.reportName)), ("label", .text(identity.label)),
      ("account", .text(identity.account)), ("service", .text(identity.service)), ("server", .text(identity.server)),
      ("access_group", .text(identity.accessGroup)),
    ]
  }
}

extension BackupFinding {
  /// The finding with its location, whether something is lost, and whether a restore is possible.
  var json: JSONValue {
    [
      "id": .string(kind.rawValue), "place": .string(file), "detail": .string(fact), "lost": .boolean(isLoss),
      "restorable": .boolean(!blocks(.restoring)),
    ]
  }
}

extension BackupBlindSpots {
  /// The field about the items that a backup cannot show, for every document about a backup.
  package static var field: (String, JSONValue) { ("cannot_show", PlanDocument.BackupLimitation.unseenItems.json) }
}
