package import KeyhaulKit

/// The items of a plan by app (`migration-by-app/1`).
package struct AppSummaryDocument {
  let summaries: [AppSummary]
  let move: MoveDocument

  package init(summaries: [AppSummary], move: MoveDocument) {
    self.summaries = summaries
    self.move = move
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "migration-by-app/1", "source": move.source.json, "target": move.target.json,
      "summary": move.summary.json,
      "apps": .array(
        summaries.map { summary in
          .object([
            ("name", summary.app.isKnown ? .string(summary.app.text) : .null),
            ("kind", .string(Self.identifier(of: summary.app.kind))), ("migrates", Self.indexes(summary.migrates)),
            ("stays_behind", Self.indexes(summary.staysBehind)), ("unreadable", Self.indexes(summary.unreadable)),
            ("losses", Self.indexes(summary.losses)),
          ])
        }),
    ]
    return document.adding(move.findingFields + move.blindSpotFields)
  }

  private static func indexes(_ decisions: [MigrationPlan.Decision]) -> JSONValue {
    .array(decisions.map { .count($0.index) })
  }

  private static func identifier(of kind: AppName.Kind) -> String {
    switch kind {
    case .app: "app"
    case .teamGroup: "identifier"
    case .group: "group"
    case .withoutGroup: "unnamed"
    case .encrypted: "unknown"
    }
  }
}
