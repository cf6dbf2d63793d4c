import KeyhaulKit
import Reports

/// The decrypted backup and the user's choices for a restore. The target is passed to each step.
///
/// Between two steps, the target's file lock is not held, so another program may change the target. Therefore, each
/// step plans again.
struct PreparedRestore {
  let loaded: LoadedBackup
  let opened: BackupUnlocker.BackupForDevice
  /// The identifier of the target for which the backup was decrypted; `nil` if the target is a Simulator.
  let targetIdentifier: String?
  let policy: ExistingItemPolicy
  let selection: RestoreSelection?
  let savedPlan: SavedPlan?

  var damageNotice: BackupDamageNotice { BackupDamageNotice(opened: opened.backup, name: loaded.name) }

  /// Rejects a target with unreadable rows, or a device that the saved plan was not made for. Called before asking for a
  /// password, and again for each plan.
  static func check(_ target: RestoreTarget, _ loaded: LoadedBackup, _ savedPlan: SavedPlan?) throws(CommandError) {
    do throws(KeyhaulError) {
      try target.requireReadableRows()
    } catch {
      throw CommandError(error, using: target.name)
    }
    // A plan for a Simulator cannot be saved.
    if case .device(let device) = target { try savedPlan?.check(loaded, device) }
  }

  /// Returns the plan for the target in its current state.
  ///
  /// - Parameters:
  ///   - target: The target of the restore.
  ///   - confirmedPlan: The plan that the user agreed to; `nil` if the user was not asked.
  ///   - sourceDeviceItems: The source device's items; `nil` if they are not reported.
  /// - Throws: `.stalePlan` if the plan differs from the confirmed plan or the saved plan.
  func report(
    onto target: RestoreTarget, since confirmedPlan: PlanReport? = nil,
    sourceDeviceItems: SourceDeviceItems? = nil, in session: Session
  ) throws(CommandError) -> PlanReport {
    try Self.check(target, loaded, savedPlan)
    let hasSameRevision = confirmedPlan.map { $0.revision == target.revision } ?? true
    guard target.identifier == targetIdentifier, hasSameRevision else {
      throw changeError(target, because: "its identifier or revision is different now")
    }
    var plan = try opened.plan(onto: target, policy: policy)
    if let savedPlan { try savedPlan.check(against: try makeReport(plan, onto: target).document, target: target.name) }
    if let selection {
      // If the user confirmed a plan, the warning was already shown with that plan.
      let warningSession = confirmedPlan == nil ? session : nil
      try selection.check(against: plan, loaded, in: warningSession)
      let partialPlan = try opened.plan(onto: target, policy: policy, only: selection.indexes)
      if let savedPlan {
        try Self.rejectAdditionalRemovals(in: partialPlan, comparedWith: plan, savedPlan, selection, target)
      }
      plan = partialPlan
    }
    let report = try makeReport(plan, onto: target, sourceDeviceItems: sourceDeviceItems)
    if let difference = confirmedPlan?.document.difference(from: report.document) {
      throw changeError(target, because: difference)
    }
    return report
  }

  /// Rejects a partial restore that would remove more existing items than the saved plan for all items would.
  private static func rejectAdditionalRemovals(
    in partialPlan: MigrationPlan, comparedWith completePlan: MigrationPlan, _ savedPlan: SavedPlan,
    _ selection: RestoreSelection, _ target: RestoreTarget
  ) throws(CommandError) {
    let count = partialPlan.removed.count - completePlan.removed.count
    guard count > 0 else { return }
    throw .usage(
      "\(selection.path) leaves out items that \(savedPlan.path) puts back",
      why: "\(HumanReadable.count(count, "item")) would be lost on \(target.name), although the plan says that "
        + "\(count == 1 ? "it stays" : "they stay")",
      try: "a plan with --existing merge, or the whole plan")
  }

  private func makeReport(
    _ plan: MigrationPlan, onto target: RestoreTarget, sourceDeviceItems: SourceDeviceItems? = nil
  ) throws(CommandError) -> PlanReport {
    var source = ReportSource(loaded, namesFrom: opened)
    source.sourceDeviceItems = sourceDeviceItems
    return switch target {
    case .device(let device): try PlanReport(plan, of: source, onto: device)
    case .simulator(let simulator):
      PlanReport(plan, of: source, onto: simulator, made: DeviceEnvironment.interruptible.clock.now())
    }
  }

  private func changeError(_ target: RestoreTarget, because why: String) -> CommandError {
    CommandError(
      .stalePlan, "\(target.name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  /// Returns the exit status of a restore that carries out a plan.
  func status(of report: PlanReport) -> CommandExitStatus {
    report.plan.summary.unreadable > 0 || !opened.backup.damage.isEmpty ? .partial : .ok
  }
}
