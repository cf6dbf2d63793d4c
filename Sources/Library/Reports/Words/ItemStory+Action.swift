package import KeyhaulKit

extension ItemStory {
  /// What to do about it; `nil` where nothing is to be done.
  package var action: String? {
    if case .targetOnly(let isRemoved) = place {
      return isRemoved ? ReportTerm.removed.explanation.action : nil
    }
    if case .missing(_, nil) = place { return "Make a new backup." }
    if let reason { return reason.explanation.action }
    if let warning = onTarget?.warning { return warning.explanation.action }
    if onTarget == nil, holdsEnclaveKey == true { return ArrivalWarning.migratesButUnusable.explanation.action }
    return onTarget?.outcome.change.map(\.explanation.action)
  }
}
