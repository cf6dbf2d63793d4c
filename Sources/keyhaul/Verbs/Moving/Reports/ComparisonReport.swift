import ArchivedKeychain
import CommandSession
import KeychainFormats
import KeychainRules
import Migration
import Reports

/// `plan --compare` (format `migration-comparison/1`): what a backup with and one without a password bring back, to the
/// device that made it and to another.
struct ComparisonReport: Report {
  let comparison: MigrationComparison
  let report: PlanReport

  private static let passwords = [true, false]
  private static let devices = [true, false]

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let advice = comparison.advice.sentence(for: comparison.current)
    var lines = WordWrap.lines(
      of: style.adapted(HostileText.shown("What if: \(report.source.name) → \(report.target.name)")),
      columns: style.width)
    if !report.source.isDevice {
      lines.append("  of the \(Amounts.count(comparison.items.count, "item")) in the backup:")
    }
    lines += [""] + countLines(style) + ["", "  * what is planned here", ""]
    if showsAll {
      lines += itemLines(style)
      lines.append("")
    }
    let sentence = advice.prefix(1).uppercased() + advice.dropFirst() + "."
    lines += WordWrap.lines(of: sentence, columns: style.width)
    let forever = comparison.items.filter { item in
      RestoreSetting.allCases.allSatisfy { $0.onSameDevice != comparison.current.onSameDevice || item[$0] != .arrives }
    }
    if !forever.isEmpty {
      let kinds = Reason.allCases.compactMap { reason -> String? in
        let count = forever.count { $0[comparison.current].reason == reason }
        return count == 0 ? nil : "\(Amounts.grouped(count)) \(reason.rawValue)"
      }
      lines += WordWrap.labeled("  why: ", kinds.joined(separator: ", "), columns: style.width)
    }
    return lines + report.source.unseenLines(style: style)
  }

  /// The four counts in a table; where that is too wide, one device below the other.
  private func countLines(_ style: TextStyle) -> [String] {
    let rows = Self.passwords.map { hasPassword in
      [hasPassword ? "  backup with a password" : "  backup without one"]
        + Self.devices.map { onSameDevice in
          let setting = RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice)
          return (comparison.current == setting ? "* " : "  ") + text(comparison[setting])
        }
    }
    let titles = Self.devices.map { $0 ? "to the same device" : "to another device" }
    let cellWidth = max(Self.narrowestCell, (rows.map { DisplayWidth.columns(of: $0[1]) }.max() ?? 0) + 2)
    func line(_ cells: [String]) -> String {
      DisplayWidth.padded(cells[0], columns: Self.labelWidth) + DisplayWidth.padded(cells[1], columns: cellWidth)
        + cells[2]
    }
    let table = rows.map(line)
    if table.allSatisfy({ DisplayWidth.columns(of: $0) <= style.width }) {
      return [style.painted(line([""] + titles.map { "  \($0)" }), .bold)] + table
    }
    return titles.enumerated().flatMap { device, title in
      [style.painted("  \(title)", .bold)]
        + rows.map { "  " + DisplayWidth.padded($0[0], columns: Self.labelWidth) + $0[device + 1] }
    }
  }

  private static let labelWidth = 26
  private static let narrowestCell = 27

  /// "14 arrive, 4 stay". That none stays is said of a device alone: a backup does not show all that stays.
  private func text(_ counts: MigrationComparison.Counts) -> String {
    var text = "\(Amounts.grouped(counts.arrives)) arrive"
    if counts.staysBehind > 0 || report.source.isDevice { text += ", \(Amounts.grouped(counts.staysBehind)) stay" }
    if counts.unreadable > 0 { text += ", \(Amounts.grouped(counts.unreadable)) damaged" }
    return text
  }

  /// Each item with its four outcomes.
  private func itemLines(_ style: TextStyle) -> [String] {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("NAME", flexible: true), .init("CLASS"), .init("PASSWORD"),
      .init("WITHOUT"), .init("REASON"),
    ])
    for item in comparison.items {
      let name = item.identity.isSealed ? "(sealed)" : ItemText.name(item.identity)
      let cells = Self.passwords.map { hasPassword in
        Self.devices.map { onSameDevice in
          let setting = RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice)
          return Self.symbol(of: item[setting])
        }.joined(separator: " ")
      }
      let reasons = Reason.allCases.filter { reason in
        RestoreSetting.allCases.contains { item[$0].reason == reason }
      }
      table.add(
        [String(item.index), name, item.protection?.rawValue ?? "–"] + cells
          + [reasons.map(\.rawValue).joined(separator: ", ")])
    }
    let meaning = "Each pair: to the same device, to another. + arrives  < stays behind  ! cannot be read"
    return WordWrap.lines(of: meaning, columns: style.width) + table.lines(style: style)
  }

  private static func symbol(of prospect: Prospect) -> String {
    switch prospect {
    case .arrives: "+"
    case .staysBehind: "<"
    case .unreadable: "!"
    }
  }

  var json: JSONValue { ComparisonDocument(comparison: comparison, move: MoveDocument(report.document)).json }
}
