import KeyhaulKit

extension PageTable {
  /// Every item of a plan with what happens to it.
  init(_ page: PlanPage) {
    let count = page.counts.total
    self.init(
      title: count == 1 ? "The item" : "All \(Amounts.grouped(count)) items", resultTitle: "What happens",
      rows: page.plan.decisions.map { Row($0, app: page.app(of: $0.identity)) },
      filters: [(.moves, "move"), (.stays, "stay"), (.lost, "unreadable")])
  }
}

extension PageTable.Row {
  fileprivate init(_ decision: MigrationPlan.Decision, app: String) {
    let arrivalDetail = decision.warning?.explanation.headline ?? decision.detail
    let (style, symbol, result, detail): (PageTable.Style, String, String, String?) =
      switch decision.outcome {
      case .migrates(.new): (.moves, "+", "new", arrivalDetail)
      case .migrates(.replaces): (.moves, "~", "replaces the existing item", arrivalDetail)
      case .migrates(.keepsExisting): (.moves, "^", "the existing item stays", arrivalDetail)
      case .migrates(.identical): (.moves, "=", "already there", arrivalDetail)
      case .staysBehind(let reason): (.stays, "<", "stays behind", reason.rawValue)
      case .unreadable(let reason):
        (
          .lost, "!", "cannot be read",
          [reason.rawValue, decision.detail].compactMap(\.self).joined(separator: ": ")
        )
      }
    self.init(
      style: style, symbol: symbol, item: ItemWords(decision), kind: decision.identity.kind, app: app,
      protection: decision.protection, result: result, detail: detail)
  }
}
