import Migration

extension Flow {
  /// The streams of a page's plan.
  init(_ page: PlanPage) { self.init(page.plan.decisions, removedCount: page.counts.removed) }
}

extension FlowFigure {
  /// The picture on a page.
  init(_ page: PlanPage) {
    self.init(Flow(page), source: page.sourceDevice, target: page.target.name, isReturn: page.isReturn)
  }
}
