package import KeyhaulKit

/// The comparison of four restores (`migration-comparison/1`).
package struct ComparisonDocument {
  let comparison: MigrationComparison
  let move: MoveDocument

  package init(comparison: MigrationComparison, move: MoveDocument) {
    self.comparison = comparison
    self.move = move
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "migration-comparison/1", "source": move.source.json,
      "target": move.target.json, "current": Self.json(comparison.current),
      "settings": .array(RestoreScenario.allCases.map { outcomeCounts(in: $0) }),
      "ways": .array(TransferMethod.allCases.map { transferCounts(of: $0) }),
      "items": .each(comparison.items) { Self.json($0) },
      "advice": adviceJSON,
    ]
    return document.adding(move.findingFields + move.blindSpotFields)
  }

  /// Returns the numbers of items with each outcome in one of the four restores.
  private func outcomeCounts(in scenario: RestoreScenario) -> JSONValue {
    let counts = comparison[scenario]
    let reasons = counts.byReason.sorted { $0.key.rawValue < $1.key.rawValue }
    return .object(
      Self.fields(scenario) + [
        ("arrives", .count(counts.arrives)), ("stays_behind", .count(counts.staysBehind)),
        ("unreadable", .count(counts.unreadable)),
        ("by_reason", .object(reasons.map { ($0.key.rawValue, .count($0.value)) })),
      ] + Self.warningFields(counts.byWarning))
  }

  /// Returns the numbers of items that a transfer method moves, does not move, or may move.
  private func transferCounts(of method: TransferMethod) -> JSONValue {
    let counts = comparison[method]
    return [
      "way": .string(method.rawValue), "yes": .count(counts[.yes, default: 0]),
      "no": .count(counts[.no, default: 0]), "not_known": .count(counts[.notKnown, default: 0]),
    ]
  }

  private var adviceJSON: JSONValue {
    let advice = comparison.advice
    return [
      "sentence": .string(advice.sentence(for: comparison.current)),
      "gained_by_password": .count(advice.gainedByPassword),
      "brought_by_password": .count(advice.lostWithoutPassword), "never_here": .count(advice.neverToTarget),
      "same_device_only": .count(advice.sameDeviceOnly), "damaged": .count(advice.damaged),
    ]
  }

  private static func json(_ item: MigrationComparison.Item) -> JSONValue {
    .object(
      [("index", .count(item.index))] + JSONValue.identity(item.identity) + [
        ("protection", .text(item.protection?.rawValue)),
        ("outcomes", .array(RestoreScenario.allCases.map { outcome(of: item, in: $0) })),
        ("ways", item.transfers.json),
      ])
  }

  private static func json(_ scenario: RestoreScenario) -> JSONValue { .object(fields(scenario)) }

  /// Returns the fields that identify one of the four restores.
  static func fields(_ scenario: RestoreScenario) -> [(String, JSONValue)] {
    [("password", .boolean(scenario.hasPassword)), ("same_device", .boolean(scenario.onSameDevice))]
  }

  /// Returns the outcome for an item in one of the four restores, with its warning.
  static func outcome(of item: MigrationComparison.Item, in scenario: RestoreScenario) -> JSONValue {
    let warning = item.warning(in: scenario).map { [("warning", JSONValue.string($0.rawValue))] } ?? []
    return .object(fields(scenario) + fields(item[scenario]) + warning)
  }

  /// Returns the field with the number of items that arrive but may be unusable; empty if there are no such items.
  static func warningFields(_ counts: [ArrivalWarning: Int]) -> [(String, JSONValue)] {
    guard !counts.isEmpty else { return [] }
    let sorted = counts.sorted { $0.key.rawValue < $1.key.rawValue }
    return [("by_warning", .object(sorted.map { ($0.key.rawValue, .count($0.value)) }))]
  }

  /// Returns the fields of an outcome, which are the same in every report.
  static func fields(_ restoreOutcome: RestoreOutcome) -> [(String, JSONValue)] {
    switch restoreOutcome {
    case .arrives: [("outcome", .string(ItemFate.migrates.rawValue))]
    case .staysBehind(let reason):
      [("outcome", .string(ItemFate.staysBehind.rawValue)), ("reason", .string(reason.rawValue))]
    case .unreadable(let reason):
      [("outcome", .string(ItemFate.unreadable.rawValue)), ("reason", .string(reason.rawValue))]
    }
  }
}
