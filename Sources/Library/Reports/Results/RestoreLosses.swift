package import KeyhaulKit

/// The losses of a restore, which are shown before the user confirms it.
package struct RestoreLosses {
  package let report: PlanReport
  package var lossText: RestoreLossText { RestoreLossText(report.plan, device: report.target.name) }

  package init(_ report: PlanReport) { self.report = report }

  /// Returns the short form of a plan: the heading, the newer items that are overwritten, the removed items and the
  /// other overwritten items by name, the unreadable items, and the counts.
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let text = report.text(showsAll: showsAll)
    func group(_ title: String, _ items: ReportItemTable, count: Int) -> [String] {
      guard count > 0 else { return [] }
      let heading = style.adapted(UntrustedText.escaped("\(title) (\(HumanReadable.grouped(count)))"))
      return [heading] + items.lines(style: style) + [""]
    }
    func overwritten(_ title: String, _ decisions: [MigrationPlan.Decision]) -> [String] {
      group(title, ReportItemTable(decisions, showsAll: showsAll, row: text.row), count: decisions.count)
    }
    let losses =
      overwritten(
        "Newer on \(report.target.name), but overwritten by \(report.source.name)",
        lossText.newer)
      + group(
        "Removed from \(report.target.name)",
        ReportItemTable(report.plan.removed, showsAll: showsAll, row: text.removedRow),
        count: report.plan.removed.count)
      + overwritten("Overwritten on \(report.target.name)", lossText.overwriting.filter { $0.overwrites != .newer })
    return report.heading(style: style) + [""] + losses + text.damageLines(style: style)
      + WordWrap.lines(of: style.adapted(UntrustedText.escaped(text.summaryLine)), columns: style.width)
  }
}
