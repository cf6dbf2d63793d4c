import KeyhaulKit

extension FlowViews {
  /// The picture on a page: by app where the items say theirs, else by kind; then by protection class.
  init(_ page: PlanPage) {
    let knowsApps = page.plan.decisions.contains { !page.app(of: $0.identity).isEmpty }
    figures = [knowsApps ? .app : .kind, .protection].map { (axis: $0, figure: FlowFigure(page, by: $0)) }
  }
}

extension FlowFigure {
  /// One view of the picture on a page.
  init(_ page: PlanPage, by axis: Flow.Axis) {
    self.init(
      Flow(page.plan.decisions, by: axis, apps: page.apps, removedCount: page.counts.removed),
      source: page.sourceDevice, target: page.target.name, isReturn: page.isReturn)
  }
}
