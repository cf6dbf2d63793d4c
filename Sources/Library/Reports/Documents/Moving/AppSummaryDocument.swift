package import KeyhaulKit

/// The items of a plan by app (`migration-by-app/1`).
package struct AppSummaryDocument {
  let shares: [AppSummary]
  let move: MoveDocument

  package init(shares: [AppSummary], move: MoveDocument) {
    self.shares = shares
    self.move = move
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "migration-by-app/1", "source": move.source.json, "target": move.target.json,
      "summary": move.summary.json,
      "apps": .array(
        shares.map { share in
          .object([
            ("name", share.app.isKnown ? .string(share.app.text) : .null),
            ("kind", .string(Self.word(share.app.kind))), ("migrates", Self.indexes(share.migrates)),
            ("stays_behind", Self.indexes(share.staysBehind)), ("unreadable", Self.indexes(share.unreadable)),
            ("losses", Self.indexes(share.losses)),
          ])
        }),
    ]
    return document.adding(move.findingFields + move.blindSpotFields)
  }

  private static func indexes(_ decisions: [MigrationPlan.Decision]) -> JSONValue {
    .array(decisions.map { .count($0.index) })
  }

  private static func word(_ kind: AppName.Kind) -> String {
    switch kind {
    case .app: "app"
    case .identifier: "identifier"
    case .group: "group"
    case .unnamed: "unnamed"
    case .unknown: "unknown"
    }
  }
}
