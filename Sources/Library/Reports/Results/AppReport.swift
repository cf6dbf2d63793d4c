package import KeyhaulKit

/// The report of `plan --by-app` (format `migration-by-app/1`): the plan's items by app.
package struct AppReport: Report {
  package let report: PlanReport

  package init(report: PlanReport) {
    self.report = report
  }

  private var summaries: [AppSummary] { report.plan.byApp(report.source.apps) }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let planText = report.text(showsAll: showsAll)
    let summaries = summaries
    var lines = report.heading(style: style) + [""] + planText.legend(style: style)
    for summary in summaries { lines += Self.lines(of: summary, planText, style: style, showsAll: showsAll) }
    lines += SignInText(summaries: summaries, targetName: report.target.name, showsAll: showsAll).lines(style: style)
    return lines + report.source.blindSpotLines(style: style)
      + WordWrap.lines(of: planText.summaryLine, columns: style.width)
  }

  /// Returns the name of an app with its counts, and its items.
  private static func lines(
    of summary: AppSummary, _ planText: PlanText, style: TextStyle, showsAll: Bool
  ) -> [String] {
    let minimumNameColumns = 20
    let reservedCountColumns = 34
    let name = UntrustedText.escaped(
      summary.app.displayName, columns: max(minimumNameColumns, style.width - reservedCountColumns))
    let heading = WordWrap.labeled(style.adapted(name) + "  ", countText(of: summary), columns: style.width)
    // Losses come first, because they require an action.
    let decisions = summary.unreadable + summary.staysBehind + summary.migrates
    let items = ReportItemTable(decisions, showsAll: showsAll) { decision in
      var row = planText.row(decision)
      if let reason = decision.outcome.reason { row.protection = reason.rawValue }
      if decision.identity.isEncrypted { row.name = PlanText.encryptedItemName(decision) }
      row.remark = ""
      return row
    }
    return heading.map { style.painted($0, .bold) } + items.lines(style: style) + [""]
  }

  /// Returns the counts of an app's items: "3 move, 1 stays".
  private static func countText(of summary: AppSummary) -> String {
    let counts: [(count: Int, singular: String, plural: String)] = [
      (summary.migrates.count, "moves", "move"), (summary.staysBehind.count, "stays", "stay"),
      (summary.unreadable.count, "cannot be read", "cannot be read"),
    ]
    return counts.filter { $0.count > 0 }.map { clause in
      HumanReadable.count(clause.count, clause.singular, plural: clause.plural)
    }.joined(separator: ", ")
  }

  package var json: JSONValue { AppSummaryDocument(summaries: summaries, move: MoveDocument(report.document)).json }
}
