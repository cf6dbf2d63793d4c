package import KeyhaulKit

/// An audit of the items that apps store, for developers (`keychain-audit/1`).
package struct AuditDocument {
  let audit: KeychainAudit
  let move: MoveDocument

  package init(audit: KeychainAudit, move: MoveDocument) {
    self.audit = audit
    self.move = move
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "keychain-audit/1", "source": move.source.json,
      "summary": [
        "total": .count(audit.items.count), "leaves_device": .count(audit.leaving.count),
        "never_leaves": .count(audit.staying.count), "unreadable": .count(audit.unreadable.count),
        "deprecated": .count(audit.deprecated.count),
      ],
      "items": .each(audit.items) { item in
        .object(
          [("index", .count(item.index))] + JSONValue.identity(item.identity) + [
            ("protection", .text(item.protection?.rawValue)),
            ("leaves_device", item.movesToOtherDevice.map(JSONValue.boolean) ?? .null),
            ("deprecated", .boolean(item.isDeprecated)),
          ] + (item.reasonToStay.map { [("reason", .string($0.rawValue))] } ?? []))
      },
    ]
    return document.adding(move.findingFields + move.blindSpotFields)
  }
}
