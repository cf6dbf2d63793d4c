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
    let shown = showsAll ? items[...] : items.prefix(ItemLines.shortGroup)
    // Where none of them stays, there is room for longer names.
    let reasons: [Table.Column] = shown.contains { $0.reason != nil } ? [.init("WHY IT STAYS")] : []
    var table = Table(
      [.init("KIND"), .init("NAME", flexible: true), .init("CLASS"), .init("APP", flexible: true)] + reasons)
    for item in shown {
      let identity = item.item.identity
      let name = identity.isSealed ? "(sealed, item \(item.item.index))" : ItemText.name(identity)
      table.add([
        ItemText.kind(identity.kind), name, item.item.protection?.rawValue ?? "–",
        report.source.apps.app(of: identity.accessGroup).words, item.reason?.rawValue ?? "–",
      ])
    }
    var lines = [style.painted(head, .bold)]
    lines += table.lines(style: style.narrowed(by: 2)).map { "  " + $0 }
    if !showsAll, items.count > ItemLines.shortGroup {
      lines.append("  \(style.ellipsis) \(Amounts.grouped(items.count - ItemLines.shortGroup)) more (-v shows all)")
    }
    return lines + WordWrap.labelled("    ", advice, columns: style.width) + [""]
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
