import KeyhaulKit
import Reports

/// `plan --by-app` (format `migration-by-app/1`): the plan's items by the app they belong to.
struct AppReport: Report {
  let report: PlanReport

  private var shares: [AppShare] { report.plan.byApp(report.source.apps) }

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = report.heading(style: style) + [""]
    let text = report.text(showsAll: showsAll)
    let shares = shares
    lines += text.legend(style: style)
    for share in shares {
      let counts = [
        (share.migrates.count, "moves", "move"), (share.staysBehind.count, "stays", "stay"),
        (share.unreadable.count, "cannot be read", "cannot be read"),
      ].filter { $0.0 > 0 }.map { "\(Amounts.grouped($0.0)) \($0.0 == 1 ? $0.1 : $0.2)" }
      let name = HostileText.shown(share.app.words, columns: max(20, style.width - 34))
      let heads = WordWrap.labeled(
        style.adapted(name) + "  ", counts.joined(separator: ", "), columns: style.width)
      lines += heads.map { style.painted($0, .bold) }
      // What asks for something first.
      let decisions = share.unreadable + share.staysBehind + share.migrates
      let items = ReportItemTable(decisions, showsAll: showsAll) { decision in
        var row = text.row(decision)
        if let reason = decision.outcome.reason { row.protection = reason.rawValue }
        if decision.identity.isSealed { row.name = PlanText.sealedName(decision) }
        row.remark = ""
        return row
      }
      lines += items.lines(style: style) + [""]
    }
    lines += SignInAgain(shares: shares, targetName: report.target.name, showsAll: showsAll).lines(style: style)
    return lines + report.source.unseenLines(style: style)
      + WordWrap.lines(of: text.summaryLine, columns: style.width)
  }

  var json: JSONValue { ShareDocument(shares: shares, move: MoveDocument(report.document)).json }
}
