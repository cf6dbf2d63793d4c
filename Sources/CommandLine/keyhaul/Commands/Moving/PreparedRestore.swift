import KeyhaulKit
import Reports

/// A restore of which everything is known but the target: what was read and opened, and what was asked for. The device is
/// not held by it, and is planned for as often as it is held.
struct PreparedRestore {
  let named: NamedArchive
  let opened: ArchiveUnlocker.OpenedForDevice
  /// That of the device whose hardware key opened it.
  let identifier: String
  let policy: ExistingItemPolicy
  let selection: RestoreSelection?
  let saved: SavedPlan?

  var damage: BackupDamageNotice { BackupDamageNotice(opened: opened.archive, name: named.name) }

  /// Refuses a device on which nothing can be restored now, before a password is asked for and whenever it is held.
  static func check(_ device: DeviceSession, _ named: NamedArchive, _ saved: SavedPlan?) throws(CommandFailure) {
    do throws(MigrationError) {
      try Restorer.checkReadable(device)
    } catch {
      throw CommandFailure(error, device: device.name)
    }
    try saved?.check(named, device)
  }

  /// What the restore would do to the device as it is now.
  ///
  /// - Parameters:
  ///   - shown: What a person agreed to, where one did; it has to be the same still.
  ///   - maker: What the device that made the backup has besides, where that shall be said.
  /// - Throws: `.stalePlan` where it is not, or not what a saved plan says.
  func report(
    onto device: DeviceSession, since shown: PlanReport? = nil, maker: MakerItems? = nil, in session: Session
  ) throws(CommandFailure) -> PlanReport {
    try Self.check(device, named, saved)
    guard device.record.udid == identifier, shown.map({ $0.revision == device.record.revision }) ?? true else {
      throw changed(device, "it has changed since then")
    }
    var plan = try opened.plan(onto: device, policy: policy)
    if let saved { try saved.check(against: try report(plan, onto: device).document, target: device.name) }
    if let selection {
      try selection.check(against: plan, named, in: shown == nil ? session : nil)
      let part = try opened.plan(onto: device, policy: policy, only: selection.indexes)
      if let saved { try Self.require(part, toKeepWhat: plan, saved, selection, device) }
      plan = part
    }
    let report = try report(plan, onto: device, maker: maker)
    if let difference = shown?.document.difference(from: report.document) { throw changed(device, difference) }
    return report
  }

  /// Refuses to do a part of a saved plan that takes away what the whole of it brings back.
  private static func require(
    _ part: MigrationPlan, toKeepWhat whole: MigrationPlan, _ saved: SavedPlan, _ selection: RestoreSelection,
    _ device: DeviceSession
  ) throws(CommandFailure) {
    let count = part.removed.count - whole.removed.count
    guard count > 0 else { return }
    throw .usage(
      "\(selection.path) leaves out items that \(saved.path) brings back",
      why: "\(Amounts.count(count, "item")) would be lost on \(device.name), although the plan says that "
        + "\(count == 1 ? "it stays" : "they stay")",
      try: "a plan with --existing merge, or the whole plan")
  }

  private func report(
    _ plan: MigrationPlan, onto device: DeviceSession, maker: MakerItems? = nil
  ) throws(CommandFailure) -> PlanReport {
    var source = MoveSource(named, namesFrom: opened)
    source.maker = maker
    return try PlanReport(plan, of: source, onto: device, made: device.environment.clock.now())
  }

  private func changed(_ device: DeviceSession, _ why: String) -> CommandFailure {
    CommandFailure(
      .stalePlan, "\(device.name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  func status(of report: PlanReport) -> CommandStatus {
    report.plan.summary.unreadable > 0 || !opened.archive.damage.isEmpty ? .partial : .ok
  }
}
