import ArchivedKeychain
import KeychainFormats
import Migration
import VirtualDevice

/// A plan as text for a terminal: what is removed first, then what moves, what stays and why, what is lost; the counts
/// last.
struct PlanText {
  let plan: MigrationPlan
  let archiveName: String
  let targetName: String
  /// Name of the device that made the archive, as it claims.
  let sourceDevice: String
  /// Shows every item, however many.
  let showsAll: Bool

  /// The most items that a group shows unless all are asked for.
  static let shortGroup = 10

  /// A line of a group: the symbol, the item, its class, a remark.
  private struct Row {
    let symbol: String
    let kind: ItemKind
    let name: String
    let protection: String
    let remark: String
  }

  func lines(style: TextStyle) -> [String] {
    var lines = removedLines(style)
    lines += migratingLines(style)
    for reason in Reason.allCases where !reason.isDamage { lines += stayingLines(reason, style) }
    if plan.decisions.contains(where: Self.isSealed) {
      lines += WordWrap.lines(
        of: "A sealed item's name is sealed too; its number is its place in the backup.", columns: style.width)
      lines.append("")
    }
    for reason in Reason.allCases where reason.isDamage { lines += unreadableLines(reason, style) }
    return lines + WordWrap.lines(of: summaryLine, columns: style.width)
  }

  /// What the symbols mean, as far as they occur.
  var legend: String {
    let summary = plan.summary
    let there = summary.byChange[.identical, default: 0] + summary.byChange[.keepsExisting, default: 0]
    let meanings = [
      ("- removed", summary.removed), ("+ new", summary.byChange[.new, default: 0]),
      ("~ replaces", summary.byChange[.replaces, default: 0]), ("= already there", there),
      ("< stays behind", summary.staysBehind), ("! cannot be read", summary.unreadable),
    ]
    return "  " + meanings.filter { $0.1 > 0 }.map(\.0).joined(separator: "    ")
  }

  private static func isSealed(_ decision: MigrationPlan.Decision) -> Bool {
    if case .staysBehind = decision.outcome {
      decision.identity == ItemIdentity(sealed: decision.identity.kind)
    } else {
      false
    }
  }

  /// "12 will migrate (10 new, 1 replaces, 1 already there), 3 stay behind, 1 cannot be read, 0 removed."
  var summaryLine: String {
    let summary = plan.summary
    let there = summary.byChange[.identical, default: 0] + summary.byChange[.keepsExisting, default: 0]
    let changes = [
      (summary.byChange[.new, default: 0], "new"), (summary.byChange[.replaces, default: 0], "replaces"),
      (there, "already there"),
    ].filter { $0.0 > 0 }.map { "\(Amounts.grouped($0.0)) \($0.1)" }
    let detail = changes.isEmpty ? "" : " (\(changes.joined(separator: ", ")))"
    let removed = summary.removed == 0 ? "0 removed" : "\(Amounts.grouped(summary.removed)) removed from \(targetName)"
    return "\(Amounts.grouped(summary.migrates)) will migrate\(detail), "
      + "\(Amounts.grouped(summary.staysBehind)) \(summary.staysBehind == 1 ? "stays" : "stay") behind, "
      + "\(Amounts.grouped(summary.unreadable)) cannot be read, \(removed)."
  }

  private func removedLines(_ style: TextStyle) -> [String] {
    guard !plan.removed.isEmpty else { return [] }
    let rows = plan.removed.map {
      Row(symbol: "-", kind: $0.kind, name: ItemText.name($0), protection: "", remark: "")
    }
    return group(
      "Will be removed from \(targetName) (\(Amounts.grouped(rows.count)))", rows, style, colour: .red,
      advice: "iOS removes what is on the device before it restores. Keep it with --existing merge.")
  }

  private func migratingLines(_ style: TextStyle) -> [String] {
    let rows = plan.decisions.compactMap { decision -> Row? in
      guard case .migrates(let change) = decision.outcome else { return nil }
      return row(decision, symbol: Self.symbol(of: change))
    }
    guard !rows.isEmpty else { return ["Will migrate (0)", ""] }
    return group("Will migrate (\(Amounts.grouped(rows.count)))", rows, style, colour: .green, advice: nil)
  }

  private func stayingLines(_ reason: Reason, _ style: TextStyle) -> [String] {
    let rows = plan.decisions.filter { $0.outcome == .staysBehind(reason) }.map { row($0, symbol: "<") }
    guard !rows.isEmpty else { return [] }
    let (fact, advice) = sentences(for: reason)
    return group(
      "Stays behind (\(Amounts.grouped(rows.count)))", because: "\(reason.rawValue): \(fact)", rows, style,
      colour: .yellow, advice: advice)
  }

  private func unreadableLines(_ reason: Reason, _ style: TextStyle) -> [String] {
    let rows = plan.decisions.filter { $0.outcome == .unreadable(reason) }.map { row($0, symbol: "!") }
    guard !rows.isEmpty else { return [] }
    return group(
      "Cannot be read (\(Amounts.grouped(rows.count)))", because: "\(reason.rawValue): \(reason.explanation.headline)",
      rows, style, colour: .red, advice: reason.explanation.action)
  }

  /// The fact behind a group and what to do about it, with the devices' names where they say more.
  private func sentences(for reason: Reason) -> (fact: String, advice: String) {
    switch reason {
    case .deviceBound:
      (
        "their keys also need the hardware of \(sourceDevice)",
        "These restore only to \(sourceDevice). Sign in again on \(targetName) to replace them."
      )
    case .backupNotEncrypted:
      (
        "the backup has no password, so its keys need \(sourceDevice)",
        "These move with a new backup of \(sourceDevice) that has a password."
      )
    default: (reason.explanation.headline, reason.explanation.action)
    }
  }

  private func row(_ decision: MigrationPlan.Decision, symbol: String) -> Row {
    var remark = ""
    if let detail = decision.detail {
      switch decision.outcome {
      case .migrates: remark = detail
      case .unreadable: remark = "item \(decision.index), \(detail)"
      case .staysBehind: remark = ""
      }
    }
    let name =
      if case .unreadable = decision.outcome {
        "(sealed)"
      } else if Self.isSealed(decision) {
        "(sealed, item \(decision.index))"
      } else {
        ItemText.name(decision.identity)
      }
    return Row(
      symbol: symbol, kind: decision.identity.kind, name: name,
      protection: ItemText.protection(decision.protection), remark: remark)
  }

  private static func symbol(of change: MigrationPlan.Change) -> String {
    switch change {
    case .new: "+"
    case .replaces: "~"
    case .keepsExisting, .identical: "="
    }
  }

  private func group(
    _ title: String, because reason: String? = nil, _ rows: [Row], _ style: TextStyle, colour: Colour, advice: String?
  ) -> [String] {
    let shown = showsAll ? rows[...] : rows.prefix(Self.shortGroup)
    let head = style.adapted(HostileText.shown(title))
    var lines = [head]
    if let reason {
      lines = WordWrap.labelled(head + "  ", style.adapted(HostileText.shown(reason)), columns: style.width)
    }
    if let first = lines.first { lines[0] = style.painted(first, colour) }
    let protectionWidth = shown.map { DisplayWidth.columns(of: $0.protection) }.max() ?? 0
    let fixed = 4 + 11 + 2 + 2 + protectionWidth
    let widest = shown.map { DisplayWidth.columns(of: HostileText.shown($0.name)) }.max() ?? 0
    let nameWidth = max(Table.narrowestColumn, min(widest, style.width - fixed))
    for row in shown {
      let name = DisplayWidth.cut(
        style.adapted(HostileText.shown(row.name)), columns: nameWidth, ellipsis: style.ellipsis)
      var line = "  \(row.symbol) " + DisplayWidth.padded(ItemText.kind(row.kind), columns: 11) + "  "
      line += DisplayWidth.padded(name, columns: nameWidth) + "  "
      line += DisplayWidth.padded(style.adapted(row.protection), columns: protectionWidth)
      let remark = style.adapted(HostileText.shown(row.remark))
      let fits = DisplayWidth.columns(of: line) + 2 + DisplayWidth.columns(of: remark) <= style.width
      if !remark.isEmpty, fits { line += "  " + remark }
      lines.append(Self.withoutTrailingSpace(line))
      if !remark.isEmpty, !fits { lines += WordWrap.labelled("      ", remark, columns: style.width) }
    }
    if shown.count < rows.count {
      lines.append("    \(style.ellipsis) \(Amounts.grouped(rows.count - shown.count)) more (-v shows all)")
    }
    if let advice {
      lines += WordWrap.labelled("    ", style.adapted(HostileText.shown(advice)), columns: style.width)
    }
    return lines + [""]
  }

  private static func withoutTrailingSpace(_ line: String) -> String {
    String(line.dropLast(line.reversed().prefix { $0 == " " }.count))
  }
}
