import KeyhaulKit
import Reports

/// The target of a restore: a device or a Simulator.
enum FoundTarget {
  case device(FoundDevice)
  case simulator(FoundSimulator)

  /// Runs `body` with the target. A device's file lock is kept until `body` returns. A Simulator's keychain is passed
  /// as it was read, and its file is locked only during a change.
  func hold<Value>(_ access: DeviceAccess, _ body: (RestoreTarget) throws -> Value) throws -> Value {
    switch self {
    case .device(let device): try device.hold(access) { try body(.device($0)) }
    case .simulator(let simulator): try body(.simulator(simulator.target))
    }
  }

  /// Carries out a plan.
  ///
  /// - Parameters:
  ///   - held: The target that `hold(_:_:)` passed.
  ///   - end: The outcome of the restore, for messages.
  ///   - progress: Called now and then with the number of finished imports and the total number.
  func restore(
    _ plan: MigrationPlan, onto held: RestoreTarget, _ end: RestoreSummaryText, in session: Session,
    progress: (Int, Int) -> Void
  ) throws(CommandFailure) {
    if case .simulator(let simulator) = self {
      let look = "keyhaul inspect \(ShellQuoting.quote(simulator.name)) --list"
      return try simulator.change(DoneChange(end.clause, look: look), in: session) {
        (keychain) throws(KeyhaulError) in
        try Restorer.restore(plan, onto: .simulator(simulator.target.locked(keychain)), progress: progress)
      }
    }
    do throws(KeyhaulError) {
      guard !plan.changesNothing else { return try Restorer.restore(plan, onto: held) }
      try session.changing(DoneChange(end.clause, of: held.name)) { () throws(KeyhaulError) in
        try Restorer.restore(plan, onto: held, progress: progress)
      }
    } catch {
      // The revision that marks a saved plan as stale was raised before the change, so a crash also makes the plan
      // stale.
      if error.isCancelled {
        try Interruption.check("no item of \(held.name) was changed; saved plans must be made again")
      }
      throw CommandFailure(error, doing: "nothing was restored to \(held.name)")
    }
  }
}
