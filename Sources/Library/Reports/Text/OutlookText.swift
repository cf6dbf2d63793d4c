package import KeyhaulKit

/// The outlook of a keychain as text: the verdict, its meaning, the state of the backup and what to do.
///
/// With `-v`, the text also has the counts for a new device and for the erased source device, and every item.
package struct OutlookText {
  private let summary: OutlookSummary
  /// Whether to list every item.
  private let showsAll: Bool

  package init(_ summary: OutlookSummary, showsAll: Bool) {
    self.summary = summary
    self.showsAll = showsAll
  }

  package func lines(style: TextStyle) -> [String] {
    var lines = wrapped(summary.verdict, style).map { style.painted($0, .bold) } + [""]
    lines += wrapped([summary.verdictExplanation, summary.sourceSentences].joined(separator: " "), style) + [""]
    lines += summary.checklist(showsAll: showsAll).lines(style: style, isShort: !showsAll)
    if showsAll { lines += details(style) }
    if summary.sourceIsBackup { lines += BackupBlindSpots.lines(style: style) }
    return lines
      + wrapped(
        showsAll
          ? "To see one restore in detail: \(SuggestedCommands.plan(summary.placeholders.source, onto: "DEVICE"))"
          : "All items, their classes and how they were checked: add -v", style)
  }

  /// Returns the counts on both devices, how they were determined, and every item with its reason.
  private func details(_ style: TextStyle) -> [String] {
    var lines = wrapped(summary.details, style) + [""]
    if let hypothesis = summary.hypothesis { lines += wrapped(hypothesis, style) }
    lines += table.lines(style: style) + [""] + wrapped(summary.basis, style)
    if let sourceDeviceItems = summary.sourceDeviceItems { lines += wrapped(sourceDeviceItems.statement, style) }
    lines.append("")
    for group in summary.losses + summary.warningGroups
      + (summary.arrivingGroup.items.isEmpty ? [] : [summary.arrivingGroup])
    {
      lines += self.lines(of: group, style)
    }
    if summary.restoreOutlook.items.contains(where: {
      $0.identity.isEncrypted && $0.index != nil && $0.reason?.isDamage != true
    }) {
      lines +=
        wrapped("An encrypted item's name is encrypted too; its number is its position in the backup.", style) + [""]
    }
    return lines
  }

  private func wrapped(_ text: String, _ style: TextStyle) -> [String] {
    WordWrap.lines(of: style.adapted(UntrustedText.escaped(text)), columns: style.width)
  }

  /// The table of counts on both devices. An unknown count is "not known" instead of 0.
  private var table: Table {
    let countsByDevice = [summary.counts(onSameDevice: false), summary.counts(onSameDevice: true)]
    func cells(_ count: (RestoreOutlook.Counts) -> Int?) -> [String] {
      countsByDevice.map { count($0).map { HumanReadable.grouped($0) } ?? "not known" }
    }
    // A phrase such as "the iPhone that made this backup" is too long for a heading.
    let name = summary.sourcePhoneName.map { UntrustedText.escaped($0.uppercased(), columns: 24, ellipsis: "...") }
    let deviceTitle = name ?? "THE SAME"
    var table = Table([
      .init("ITEMS"), .init(summary.newPhone.uppercased(), rightAligned: true),
      .init(deviceTitle + ", ERASED", rightAligned: true),
    ])
    table.add(["+ move or are restored"] + cells(\.arrives))
    if countsByDevice.contains(where: { $0.expected > 0 }) {
      table.add(["+ expected by class, unchecked"] + cells(\.expected))
    }
    for warning in ArrivalWarning.allCases where countsByDevice.contains(where: { $0.byWarning[warning] != nil }) {
      table.add(["  of them \(warning.countSuffix)"] + cells { $0.byWarning[warning, default: 0] })
    }
    table.add([(summary.sourceIsBackup ? "< in the backup, but stay behind" : "< stay behind")] + cells(\.staysBehind))
    table.add(["! cannot be read"] + cells(\.unreadable))
    table.add(["x never in a backup"] + cells(\.never))
    if countsByDevice.contains(where: { ($0.since ?? 0) > 0 }) { table.add(["x not in this backup"] + cells(\.since)) }
    table.add([summary.sourceIsBackup && summary.sourceDeviceItems == nil ? "in the backup" : "total"] + cells(\.total))
    return table
  }

  private func lines(of group: OutlookSummary.Group, _ style: TextStyle) -> [String] {
    let heading = style.adapted(UntrustedText.escaped("\(group.title) (\(HumanReadable.grouped(group.items.count)))"))
    var lines = WordWrap.lines(of: heading, columns: style.width)
    for index in lines.indices { lines[index] = style.painted(lines[index], Self.color(of: group.style)) }
    let explanation = group.reason.map { "\($0.rawValue): \($0.explanation.headline)" } ?? group.explanation
    if let explanation {
      lines += WordWrap.labeled("    ", style.adapted(UntrustedText.escaped(explanation)), columns: style.width)
    }
    let items = ReportItemTable(
      group.items, showsAll: showsAll,
      group: { $0.identity.isEncrypted ? .init(kind: $0.identity.kind, protection: $0.protection) : nil },
      row: { row(of: $0, symbol: group.symbol) })
    lines += items.lines(style: style)
    if let advice = group.reason?.explanation.action ?? group.advice, advice != "Nothing." {
      lines += WordWrap.labeled("    ", style.adapted(advice), columns: style.width)
    }
    return lines + [""]
  }

  private func row(of item: RestoreOutlook.Item, symbol: String) -> ReportItemTable.Row {
    let encryptedName = item.index.map { "(encrypted, item \($0))" } ?? ItemText.name(item.identity)
    return ReportItemTable.Row(
      symbol: symbol, kind: item.identity.kind,
      name: item.identity.isEncrypted ? encryptedName : ItemText.name(item.identity),
      protection: ItemText.protection(item.protection), remark: item.isExpected ? "expected by its class" : "",
      accessGroup: item.identity.accessGroup, index: item.index)
  }

  private static func color(of style: Tiles.Style) -> Color? {
    switch style {
    case .moves: .green
    case .stays: .yellow
    case .lost, .gone: .red
    case .plain: nil
    }
  }
}
