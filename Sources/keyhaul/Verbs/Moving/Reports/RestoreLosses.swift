import CommandSession
import KeychainFormats
import Migration

/// What a restore takes away from the target, to be agreed to: items that are gone afterwards, and items in whose place
/// another comes that is not the same.
struct RestoreLosses {
  private let report: PlanReport
  private let overwriting: [MigrationPlan.Decision]

  init(_ report: PlanReport) {
    self.report = report
    overwriting = report.plan.overwriting
  }

  private var removedCount: Int { report.plan.removed.count }
  private var newerCount: Int { overwriting.count { $0.overwrites == .newer } }
  private var device: String { report.target.name }

  var isEmpty: Bool { removedCount == 0 && overwriting.isEmpty }

  /// "Remove 2 items from new-phone, overwrite 3 there (1 is newer than the backup's) and add 12?"
  var question: String {
    let new = report.plan.summary.byChange[.new, default: 0]
    let addition = new == 0 ? "add none" : "add \(Amounts.grouped(new))"
    var steps: [String] = []
    if removedCount > 0 { steps.append("remove \(Amounts.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let newer = newerCount == 0 ? "" : " (\(newerText))"
      steps.append("overwrite \(overwrittenText)\(newer)")
    }
    let text = steps.joined(separator: ", ") + " and \(addition)?"
    return text.prefix(1).uppercased() + text.dropFirst()
  }

  /// "removing 2 items from new-phone and overwriting 3 there, of which 1 is newer than the backup's,"
  var refusal: String {
    var steps: [String] = []
    if removedCount > 0 { steps.append("removing \(Amounts.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let newer = newerCount == 0 ? "" : ", of which \(newerText),"
      steps.append("overwriting \(overwrittenText)\(newer)")
    }
    return steps.joined(separator: " and ")
  }

  private var overwrittenText: String {
    removedCount > 0
      ? "\(Amounts.grouped(overwriting.count)) there" : "\(Amounts.count(overwriting.count, "item")) on \(device)"
  }

  private var newerText: String {
    "\(Amounts.grouped(newerCount)) \(newerCount == 1 ? "is" : "are") newer than the backup's"
  }

  /// What goes, by name, with the dates that a decision knows: the newer ones first.
  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let text = report.text(showsAll: showsAll)
    func group(_ title: String, _ items: ReportItemTable, count: Int) -> [String] {
      guard count > 0 else { return [] }
      let head = style.adapted(HostileText.shown("\(title) (\(Amounts.grouped(count)))"))
      return [head] + items.lines(style: style) + [""]
    }
    func overwritten(_ title: String, _ decisions: [MigrationPlan.Decision]) -> [String] {
      group(title, ReportItemTable(decisions, showsAll: showsAll, row: text.row), count: decisions.count)
    }
    return overwritten(
      "Newer on \(device), and overwritten by what is in \(report.source.name)",
      overwriting.filter { $0.overwrites == .newer })
      + group(
        "Removed from \(device)", ReportItemTable(report.plan.removed, showsAll: showsAll, row: text.removedRow),
        count: removedCount)
      + overwritten("Overwritten on \(device)", overwriting.filter { $0.overwrites != .newer })
  }
}
