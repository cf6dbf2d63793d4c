package import KeyhaulKit

/// The comparison of four restores as text.
package struct ComparisonText {
  let comparison: MigrationComparison
  let source: ReportSource
  let targetName: String
  let showsAll: Bool

  package init(_ comparison: MigrationComparison, of source: ReportSource, onto targetName: String, showsAll: Bool) {
    self.comparison = comparison
    self.source = source
    self.targetName = targetName
    self.showsAll = showsAll
  }

  /// The order of the rows: with a password, then without.
  private static let passwordChoices = [true, false]
  /// The order of the columns: to the same device, then to another.
  private static let sameDeviceChoices = [true, false]

  package func lines(style: TextStyle) -> [String] {
    let advice = comparison.advice.sentence(for: comparison.current)
    var lines = WordWrap.lines(
      of: style.adapted(UntrustedText.escaped("What if: \(source.name) → \(targetName)")),
      columns: style.width)
    if let obstacle = source.obstacle {
      lines += WordWrap.labeled("  ", style.adapted(UntrustedText.escaped(obstacle)), columns: style.width)
    }
    if !source.isDevice {
      let items = comparison.items.count == 1 ? "item" : "\(HumanReadable.grouped(comparison.items.count)) items"
      lines.append("  of the \(items) in the backup:")
    }
    lines += [""] + countLines(style) + ["", "  * what is planned here", ""]
    lines += warnedLines(style)
    lines += TransferMethodText(comparison: comparison).lines(style: style, showsAll: showsAll) + [""]
    if showsAll { lines += itemLines(style) + [""] }
    let sentence = advice.prefix(1).uppercased() + advice.dropFirst() + "."
    lines += WordWrap.lines(of: sentence, columns: style.width) + reasonLines(style)
    return lines + source.blindSpotLines(style: style, showsAll: showsAll)
  }

  /// Returns lines with the reasons for the items that no backup moves to the planned device; no lines if there are no
  /// such items.
  private func reasonLines(_ style: TextStyle) -> [String] {
    let restoresToDevice = RestoreScenario.allCases.filter { $0.onSameDevice == comparison.current.onSameDevice }
    let lostItems = comparison.items.filter { item in restoresToDevice.allSatisfy { item[$0] != .arrives } }
    guard !lostItems.isEmpty else { return [] }
    let reasons = Reason.allCases.compactMap { reason -> String? in
      let count = lostItems.count { $0[comparison.current].reason == reason }
      return count == 0 ? nil : "\(HumanReadable.grouped(count)) \(reason.rawValue)"
    }
    return WordWrap.labeled("  why: ", reasons.joined(separator: ", "), columns: style.width)
  }

  /// Returns the lines about items that arrive in one of the restores but may be unusable there.
  private func warnedLines(_ style: TextStyle) -> [String] {
    let lines = ArrivalWarning.allCases.flatMap { warning -> [String] in
      let items = comparison.items.filter { item in
        RestoreScenario.allCases.contains { item.warning(in: $0) == warning }
      }
      guard !items.isEmpty else { return [] }
      let names = items.prefix(Self.maximumNameCount).map { ItemText.name($0.identity) }
      let more = items.count > names.count ? ", and \(HumanReadable.grouped(items.count - names.count)) more" : ""
      return WordWrap.labeled(
        "  \(warning.rawValue) (\(HumanReadable.grouped(items.count))): ",
        style.adapted("\(warning.explanation.headline): \(names.joined(separator: ", "))\(more)"), columns: style.width)
    }
    return lines.isEmpty ? [] : lines + [""]
  }

  private static let maximumNameCount = 3

  /// Returns the counts of the four restores as a table. If it is too wide, the columns are printed as two
  /// lists, one below the other.
  private func countLines(_ style: TextStyle) -> [String] {
    let rows = Self.passwordChoices.map { hasPassword in
      let label = hasPassword ? "  backup with a password" : "  backup without a password"
      let cells = Self.sameDeviceChoices.map { onSameDevice in
        let scenario = RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice)
        return (comparison.current == scenario ? "* " : "  ") + text(comparison[scenario])
      }
      return (label: DisplayWidth.padded(label, columns: Self.labelWidth), cells: cells)
    }
    let titles = Self.sameDeviceChoices.map { onSameDevice in
      onSameDevice ? "to the same device" : "to another device"
    }
    let maximumCellWidth = rows.map { DisplayWidth.columns(of: $0.cells[0]) }.max() ?? 0
    let cellWidth = max(Self.minimumCellWidth, maximumCellWidth + 2)
    func joined(_ cells: [String]) -> String { DisplayWidth.padded(cells[0], columns: cellWidth) + cells[1] }
    let wideLines = rows.map { $0.label + joined($0.cells) }
    if wideLines.allSatisfy({ DisplayWidth.columns(of: $0) <= style.width }) {
      let heading = String(repeating: " ", count: Self.labelWidth) + joined(titles.map { "  \($0)" })
      return [style.painted(heading, .bold)] + wideLines
    }
    return titles.enumerated().flatMap { column, title in
      [style.painted("  \(title)", .bold)] + rows.map { "  " + $0.label + $0.cells[column] }
    }
  }

  private static let labelWidth = 26
  private static let minimumCellWidth = 27

  /// Returns the counts of a restore: "14 restored, 4 stay behind". "0 stay behind" is written only for a device, because
  /// a backup does not contain all items that stay behind.
  private func text(_ counts: MigrationComparison.Counts) -> String {
    var text = "\(HumanReadable.grouped(counts.arrives)) restored"
    if counts.staysBehind > 0 || source.isDevice {
      text += ", \(HumanReadable.grouped(counts.staysBehind)) stay behind"
    }
    if counts.unreadable > 0 { text += ", \(HumanReadable.grouped(counts.unreadable)) damaged" }
    return text
  }

  /// Returns the table of items with their four outcomes. A narrow table omits the class, because the reason implies it.
  private func itemLines(_ style: TextStyle) -> [String] {
    let meaning = "Each pair: to the same device, to another.  + restored  < stays behind  ! cannot be read"
    return WordWrap.lines(of: meaning, columns: style.width)
      + itemTable(showsClass: true).lines(style: style) { itemTable(showsClass: false) }
  }

  private func itemTable(showsClass: Bool) -> Table {
    var table = Table(
      [.init("ITEM", rightAligned: true), .init("NAME", flexible: true)] + (showsClass ? [.init("CLASS")] : [])
        + [.init("PASSWORD"), .init("WITHOUT"), .init("REASON")])
    for item in comparison.items {
      let name = item.identity.isEncrypted ? "(encrypted)" : ItemText.name(item.identity)
      let cells = Self.passwordChoices.map { hasPassword in
        Self.sameDeviceChoices.map { onSameDevice in
          let scenario = RestoreScenario(hasPassword: hasPassword, onSameDevice: onSameDevice)
          return Self.symbol(of: item[scenario])
        }.joined(separator: " ")
      }
      let reasons = Reason.allCases.filter { reason in
        RestoreScenario.allCases.contains { item[$0].reason == reason }
      }
      let warnings = ArrivalWarning.allCases.filter { warning in
        RestoreScenario.allCases.contains { item.warning(in: $0) == warning }
      }
      table.add(
        [String(item.index), name] + (showsClass ? [ItemText.protection(item.protection, isShort: true)] : []) + cells
          + [(reasons.map(\.rawValue) + warnings.map(\.rawValue)).joined(separator: ", ")])
    }
    return table
  }

  private static func symbol(of restoreOutcome: RestoreOutcome) -> String {
    switch restoreOutcome {
    case .arrives: "+"
    case .staysBehind: "<"
    case .unreadable: "!"
    }
  }
}
