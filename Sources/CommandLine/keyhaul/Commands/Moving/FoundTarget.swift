import KeyhaulKit
import Reports

/// The target of a restore, as it was found.
enum FoundTarget {
  case device(FoundDevice)
  case simulator(FoundSimulator)

  /// Lends the target. A device is held meanwhile; a Simulator's keychain is as it was read, and is held alone only while
  /// it is changed.
  func hold<Value>(_ access: DeviceAccess, _ body: (RestoreTarget) throws -> Value) throws -> Value {
    switch self {
    case .device(let device): try device.hold(access) { try body(.device($0)) }
    case .simulator(let simulator): try body(.simulator(simulator.target()))
    }
  }

  /// Carries out a plan.
  ///
  /// - Parameters:
  ///   - held: The target as it was lent.
  ///   - end: What is said of the restore afterwards.
  ///   - progress: Called now and then with the number of imports that are done, and of all.
  func restore(
    _ plan: MigrationPlan, onto held: RestoreTarget, _ end: RestoreEnd, in session: Session,
    progress: (Int, Int) -> Void
  ) throws(CommandFailure) {
    if case .simulator(let simulator) = self {
      let look = "keyhaul inspect \(ShellWord.quoted(simulator.name)) --list"
      return try simulator.change(DoneChange(end.clause, look: look), in: session) {
        (keychain) throws(MigrationError) in
        try Restorer.restore(plan, onto: .simulator(simulator.target(in: keychain)), progress: progress)
      }
    }
    do throws(MigrationError) {
      guard !plan.changesNothing else { return try Restorer.restore(plan, onto: held) }
      try session.changing(DoneChange(end.clause, of: held.name)) { () throws(MigrationError) in
        try Restorer.restore(plan, onto: held, progress: progress)
      }
    } catch {
      // The counter that tells a saved plan from a stale one was raised before, so that it tells of a crash too.
      if error.isCancelled {
        try Interruption.check("no item of \(held.name) was changed; saved plans must be made again")
      }
      throw CommandFailure(error, doing: "nothing was restored to \(held.name)")
    }
  }
}
