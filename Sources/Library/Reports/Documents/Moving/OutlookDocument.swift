package import KeyhaulKit

/// The items that a restore brings to a new device, and to the erased source device (`migration-futures/1`).
///
/// This is not a plan: there is no existing target, and each item has two outcomes.
package struct OutlookDocument {
  let summary: OutlookSummary

  package init(_ summary: OutlookSummary) { self.summary = summary }

  package var json: JSONValue {
    let restoreOutlook = summary.restoreOutlook
    var fields: [(String, JSONValue)] = [
      ("format", "migration-futures/1"), ("made", .string(summary.reportTime)), ("source", summary.source.json),
      ("verdict", .string(summary.verdict)), ("details", .string(summary.details)), ("basis", .string(summary.basis)),
      ("tried_hardware", .boolean(restoreOutlook.triedDeviceKey)), ("futures", .array(scenarios.map(json))),
      ("items", .each(restoreOutlook.comparison.items, json)),
    ]
    if !summary.findings.isEmpty { fields.append(("findings", .array(summary.findings.map(\.json)))) }
    if let sourceDeviceItems = summary.sourceDeviceItems {
      fields.append(("not_in_backup", PlanDocument.NotInBackup(sourceDeviceItems).json))
    }
    let groups = summary.checklist(showsAll: true).groups.filter { !$0.entries.isEmpty }
    fields.append(("before_wiping", .array(groups.map(Self.json))))
    if !summary.apps.installed.isEmpty { fields.append(("apps", .array(summary.apps.installed.map(Self.json)))) }
    if let codes = summary.codes, !codes.isEmpty {
      fields.append(("one_time_passwords", codes.json(isRedacted: summary.isRedacted)))
    }
    if summary.sourceIsBackup { fields.append(BackupBlindSpots.field) }
    if summary.isRedacted { fields.append(("redacted", .boolean(true))) }
    return .object(fields)
  }

  /// The restores in the document. A backup either has a password or has none. For a device, both cases are included, the
  /// planned one first.
  private var scenarios: [RestoreScenario] {
    let planned = summary.restoreOutlook.hasPassword
    return (summary.sourceIsBackup ? [planned] : [planned, !planned]).flatMap { hasPassword in
      [false, true].map { RestoreScenario(hasPassword: hasPassword, onSameDevice: $0) }
    }
  }

  private func json(_ scenario: RestoreScenario) -> JSONValue {
    let counts = summary.restoreOutlook.counts(scenario)
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
              let isExpected = scenario.onSameDevice && summary.restoreOutlook.expected.contains(item.index)
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
            "about": .text(entry.name.isEmpty ? nil : entry.name), "do": .string(entry.text),
            "items": .count(entry.items.count + entry.unnamedCount),
            "details": .array(entry.details.map { .string($0) }),
            "commands": .array(entry.commands.map { .string($0) }),
          ]
        }),
    ]
  }
}
