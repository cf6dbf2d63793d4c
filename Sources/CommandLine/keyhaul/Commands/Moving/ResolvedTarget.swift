import KeyhaulKit
import Reports

/// The target of a restore: a device or a Simulator.
enum ResolvedTarget {
  case device(ResolvedDevice)
  case simulator(ResolvedSimulator)

  /// Runs a closure with the target. A device's file lock is held until the closure returns. A Simulator's keychain was
  /// already read, and its file is locked only during a change.
  func withTarget<Value>(_ access: DeviceAccess, _ body: (RestoreTarget) throws -> Value) throws -> Value {
    switch self {
    case .device(let device): try device.withSession(access) { try body(.device($0)) }
    case .simulator(let simulator): try body(.simulator(simulator.target))
    }
  }

  /// Carries out a plan.
  ///
  /// - Parameters:
  ///   - plan: The plan to carry out.
  ///   - openTarget: The target that `withTarget(_:_:)` passed.
  ///   - summary: The outcome of the restore, as later error messages state it.
  ///   - progress: Receives the number of finished imports and the total.
  func restore(
    _ plan: MigrationPlan, onto openTarget: RestoreTarget, _ summary: RestoreSummaryText, in session: Session,
    progress: (Int, Int) -> Void
  ) throws(CommandError) {
    if case .simulator(let simulator) = self {
      return try simulator.change(simulator.committedChange(summary.clause), in: session) {
        (keychain) throws(KeyhaulError) in
        try Restorer.restore(plan, onto: .simulator(simulator.target.restorable(to: keychain)), progress: progress)
      }
    }
    do throws(KeyhaulError) {
      guard !plan.changesNothing else { return try Restorer.restore(plan, onto: openTarget) }
      try session.committing(CommittedChange(summary.clause, of: openTarget.name)) { () throws(KeyhaulError) in
        try Restorer.restore(plan, onto: openTarget, progress: progress)
      }
    } catch {
      // The revision was raised before the change, so saved plans are stale even if the program crashes.
      if error.isCancelled {
        try Interruption.check("no item of \(openTarget.name) was changed; saved plans must be made again")
      }
      throw CommandError(error, failedAction: "nothing was restored to \(openTarget.name)")
    }
  }
}
