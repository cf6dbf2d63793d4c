package import Migration

extension ItemStory {
  /// What to do about it; `nil` where nothing is to be done.
  package var action: String? {
    if case .targetOnly(let isRemoved) = place {
      return isRemoved ? ReportTerm.removed.explanation.action : nil
    }
    if case .missing(_, nil) = place { return "Make a new backup." }
    if let reason { return reason.explanation.action }
    return onTarget?.outcome.change.map(\.explanation.action)
  }
}
