package import KeyhaulKit

/// The losses of a restore, which are shown before the user confirms it.
package struct RestoreLosses {
  package let report: PlanReport
  package var lossText: RestoreLossText { RestoreLossText(report.plan, device: report.target.name) }

  package init(_ report: PlanReport) { self.report = report }

  /// Returns the short form of a plan: the heading, the names of the items that are lost, and the counts.
  ///
  /// Items that are newer on the target than in the backup come first. Removed items, other overwritten items and
  /// unreadable items follow.
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let planText = report.text(showsAll: showsAll)
    func group<Item>(_ title: String, _ items: [Item], row: (Item) -> ReportItemTable.Row) -> [String] {
      guard !items.isEmpty else { return [] }
      let heading = style.adapted(UntrustedText.escaped("\(title) (\(HumanReadable.grouped(items.count)))"))
      return [heading] + ReportItemTable(items, showsAll: showsAll, row: row).lines(style: style) + [""]
    }
    let (source, target) = (report.source.name, report.target.name)
    let otherOverwriting = lossText.overwriting.filter { $0.overwrites != .newer }
    let losses =
      group("Newer on \(target), but overwritten by \(source)", lossText.overwritingNewer, row: planText.row)
      + group("Removed from \(target)", report.plan.removed, row: planText.removedRow)
      + group("Overwritten on \(target)", otherOverwriting, row: planText.row)
    return report.heading(style: style) + [""] + losses + planText.damageLines(style: style)
      + WordWrap.lines(of: style.adapted(UntrustedText.escaped(planText.summaryLine)), columns: style.width)
  }
}
