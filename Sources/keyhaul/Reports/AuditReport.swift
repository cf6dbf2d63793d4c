import ArchivedKeychain
import KeychainFormats
import Migration

/// `plan --audit` (format `keychain-audit/1`): what a developer asks of the items that apps store.
struct AuditReport: Report {
  let audit: KeychainAudit
  let report: PlanReport

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = WordWrap.lines(
      of: style.adapted(HostileText.shown("Audit of \(report.source.name)")), columns: style.width)
    lines += [""]
    lines += group(
      "Deprecated classes", audit.deprecated,
      "Readable before anyone has unlocked the device. Use \"after first unlock\" where the app works in the background, "
        + "\"when unlocked\" elsewhere.", style, showsAll)
    lines += group(
      "Leave the device", audit.leaving,
      "A backup with a password takes these to any device, and so does whoever knows the password.", style, showsAll)
    lines += group(
      "Never leave the device", audit.staying,
      "Whoever gets a new device has to make up for these: offer to sign in again, or to export.", style, showsAll)
    let summary =
      "\(Amounts.count(audit.items.count, "item")): \(Amounts.grouped(audit.leaving.count)) leave the device, "
      + "\(Amounts.grouped(audit.staying.count)) never do, \(Amounts.grouped(audit.deprecated.count)) have a deprecated "
      + "class."
    return lines + WordWrap.lines(of: summary, columns: style.width)
  }

  private func group(
    _ title: String, _ items: [KeychainAudit.Item], _ advice: String, _ style: TextStyle,
    _ showsAll: Bool
  ) -> [String] {
    let head = "\(title) (\(Amounts.grouped(items.count)))"
    guard !items.isEmpty else { return [head, ""] }
    let rows = items.map { item in
      let identity = item.item.identity
      let app = AppText.name(report.source.apps.app(of: identity.accessGroup))
      let name = identity.isSealed ? "(sealed, item \(item.item.index))" : ItemText.name(identity)
      let remark = [item.reason?.rawValue, identity.isSealed ? nil : app].compactMap(\.self).joined(separator: ", ")
      return ItemLines.Row(
        symbol: item.leavesDevice ? "+" : "<", kind: identity.kind, name: name,
        protection: ItemText.protection(item.item.protection), remark: remark)
    }
    return [style.painted(head, .bold)] + ItemLines(rows: rows, showsAll: showsAll).lines(style: style)
      + WordWrap.labelled("    ", advice, columns: style.width) + [""]
  }

  var json: JSONValue {
    [
      "format": "keychain-audit/1", "source": report.document.source.json,
      "summary": [
        "total": .count(audit.items.count), "leaves_device": .count(audit.leaving.count),
        "never_leaves": .count(audit.staying.count), "deprecated": .count(audit.deprecated.count),
      ],
      "items": .array(
        audit.items.map { item in
          .object(
            [("index", .count(item.item.index))] + JSONValue.identity(item.item.identity) + [
              ("protection", .text(item.item.protection?.rawValue)), ("leaves_device", .boolean(item.leavesDevice)),
              ("deprecated", .boolean(item.isDeprecated)),
            ] + (item.reason.map { [("reason", .string($0.rawValue))] } ?? []))
        }),
    ]
  }
}
