import KeyhaulKit
import Reports

/// The target of a restore: a device or a Simulator.
enum ResolvedTarget {
  case device(ResolvedDevice)
  case simulator(ResolvedSimulator)

  /// Runs a closure with the target. A device's file lock is held until the closure returns. A Simulator's keychain is
  /// passed as it was read, and its file is locked only during a change.
  func withTarget<Value>(_ access: DeviceAccess, _ body: (RestoreTarget) throws -> Value) throws -> Value {
    switch self {
    case .device(let device): try device.withSession(access) { try body(.device($0)) }
    case .simulator(let simulator): try body(.simulator(simulator.target))
    }
  }

  /// Carries out a plan.
  ///
  /// - Parameters:
  ///   - plan: The plan.
  ///   - lockedTarget: The target that `withTarget(_:_:)` passed.
  ///   - summary: The outcome of the restore, for messages.
  ///   - progress: Receives the number of finished imports and the total.
  func restore(
    _ plan: MigrationPlan, onto lockedTarget: RestoreTarget, _ summary: RestoreSummaryText, in session: Session,
    progress: (Int, Int) -> Void
  ) throws(CommandError) {
    if case .simulator(let simulator) = self {
      return try simulator.change(simulator.committedChange(summary.clause), in: session) {
        (keychain) throws(KeyhaulError) in
        try Restorer.restore(plan, onto: .simulator(simulator.target.locked(keychain)), progress: progress)
      }
    }
    do throws(KeyhaulError) {
      guard !plan.changesNothing else { return try Restorer.restore(plan, onto: lockedTarget) }
      try session.committing(CommittedChange(summary.clause, of: lockedTarget.name)) { () throws(KeyhaulError) in
        try Restorer.restore(plan, onto: lockedTarget, progress: progress)
      }
    } catch {
      // The revision was raised before the change, so saved plans are stale even if the program crashes.
      if error.isCancelled {
        try Interruption.check("no item of \(lockedTarget.name) was changed; saved plans must be made again")
      }
      throw CommandError(error, failedAction: "nothing was restored to \(lockedTarget.name)")
    }
  }
}
