package import KeyhaulKit

/// The items that a restore brings to a new device, and to the same device after an erase (`migration-futures/1`).
///
/// This is not a plan: there is no existing target, and each item has two outcomes.
package struct OutlookDocument {
  let facts: OutlookSummary

  package init(_ facts: OutlookSummary) { self.facts = facts }

  package var json: JSONValue {
    let restoreOutlook = facts.restoreOutlook
    var fields: [(String, JSONValue)] = [
      ("format", "migration-futures/1"), ("made", .string(facts.made)), ("source", facts.source.json),
      ("verdict", .string(facts.verdict)), ("details", .string(facts.details)), ("basis", .string(facts.basis)),
      ("tried_hardware", .boolean(restoreOutlook.triedDeviceKey)), ("futures", .array(scenarios.map(json))),
      ("items", .each(restoreOutlook.comparison.items, json)),
    ]
    if !facts.findings.isEmpty { fields.append(("findings", .array(facts.findings.map(\.json)))) }
    if let sourceDeviceItems = facts.sourceDeviceItems {
      fields.append(("not_in_backup", PlanDocument.NotInBackup(sourceDeviceItems).json))
    }
    let groups = facts.checklist(showsAll: true).groups.filter { !$0.entries.isEmpty }
    fields.append(("before_wiping", .array(groups.map(Self.json))))
    if !facts.apps.installed.isEmpty { fields.append(("apps", .array(facts.apps.installed.map(Self.json)))) }
    if let codes = facts.codes, !codes.isEmpty {
      fields.append(("one_time_passwords", codes.value(isRedacted: facts.isRedacted)))
    }
    if facts.isOfBackup { fields.append(BackupBlindSpots.field) }
    if facts.isRedacted { fields.append(("redacted", .boolean(true))) }
    return .object(fields)
  }

  /// The restores in the document. A backup has a password or not. For a device, both cases are included, the planned one
  /// first.
  private var scenarios: [RestoreScenario] {
    let given = facts.restoreOutlook.hasPassword
    return (facts.isOfBackup ? [given] : [given, !given]).flatMap { hasPassword in
      [false, true].map { RestoreScenario(hasPassword: hasPassword, onSameDevice: $0) }
    }
  }

  private func json(_ scenario: RestoreScenario) -> JSONValue {
    let counts = facts.restoreOutlook.counts(scenario)
    let name = scenario.onSameDevice ? "same-device-erased" : "new-device"
    return .object(
      [("future", .string(name))] + ComparisonDocument.fields(scenario) + [
        ("arrives", .count(counts.arrives)), ("expected", .count(counts.expected)),
        ("stays_behind", .count(counts.staysBehind)), ("unreadable", .count(counts.unreadable)),
        ("never_in_backup", counts.never.map { .count($0) } ?? .null),
        ("not_in_this_backup", counts.since.map { .count($0) } ?? .null), ("total", .count(counts.total)),
      ] + ComparisonDocument.warningFields(counts.byWarning))
  }

  private func json(_ item: MigrationComparison.Item) -> JSONValue {
    .object(
      [("index", .count(item.index))] + JSONValue.identity(item.identity) + [
        ("protection", .text(item.protection?.rawValue)),
        (
          "outcomes",
          .array(
            scenarios.map { scenario in
              let isExpected = scenario.onSameDevice && facts.restoreOutlook.expected.contains(item.index)
              let outcome = ComparisonDocument.outcome(of: item, in: scenario)
              return isExpected ? outcome.adding([("expected", .boolean(true))]) : outcome
            })
        ),
      ])
  }

  private static func json(_ app: InstalledApp) -> JSONValue {
    ["identifier": .string(app.identifier), "name": .string(app.name), "kind": .text(app.kind?.rawValue)]
  }

  private static func json(_ group: Checklist.Group) -> JSONValue {
    [
      "title": .string(group.title),
      "entries": .array(
        group.entries.map { entry in
          [
            "about": .text(entry.name.isEmpty ? nil : entry.name), "do": .string(entry.words),
            "items": .count(entry.items.count + entry.unnamedCount),
            "details": .array(entry.details.map { .string($0) }),
            "commands": .array(entry.commands.map { .string($0) }),
          ]
        }),
    ]
  }
}
