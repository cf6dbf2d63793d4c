import ArchivedKeychain
import Migration

/// How many items a plan moves, leaves, loses and removes.
struct PlanCounts: Sendable {
  let total: Int
  private(set) var migrates = 0
  private(set) var staysBehind = 0
  private(set) var unreadable = 0
  let removed: Int
  private(set) var byReason: [Reason: Int] = [:]

  init(_ decisions: [MigrationPlan.Decision], removed: Int) {
    total = decisions.count
    self.removed = removed
    for decision in decisions {
      switch decision.outcome {
      case .migrates: migrates += 1
      case .staysBehind(let reason):
        staysBehind += 1
        byReason[reason, default: 0] += 1
      case .unreadable(let reason):
        unreadable += 1
        byReason[reason, default: 0] += 1
      }
    }
  }
}
