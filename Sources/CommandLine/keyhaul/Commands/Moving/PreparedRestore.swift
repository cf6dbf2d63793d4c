import KeyhaulKit
import Reports

/// A restore that is ready except for its target: the decrypted backup, and the user's choices.
///
/// The file lock on the target is not held between the steps of a restore, so another program may change the target.
/// Therefore, each step plans again.
struct PreparedRestore {
  let loaded: LoadedBackup
  let opened: BackupUnlocker.BackupForDevice
  /// The identifier of the device whose hardware key decrypted the backup; `nil` if the target is a Simulator.
  let identifier: String?
  let policy: ExistingItemPolicy
  let selection: RestoreSelection?
  let saved: SavedPlan?

  var damage: BackupDamageNotice { BackupDamageNotice(opened: opened.backup, name: loaded.name) }

  /// Rejects a target that cannot be restored to now. Called before asking for a password, and in each session with the
  /// target.
  static func check(_ target: RestoreTarget, _ loaded: LoadedBackup, _ saved: SavedPlan?) throws(CommandError) {
    do throws(KeyhaulError) {
      try target.requireReadableRows()
    } catch {
      throw CommandError(error, using: target.name)
    }
    // A plan for a Simulator cannot be saved.
    if case .device(let device) = target { try saved?.check(loaded, device) }
  }

  /// Returns the plan for the target in its current state.
  ///
  /// - Parameters:
  ///   - target: The target of the restore.
  ///   - confirmedPlan: The plan that the user agreed to, which must still be the same; `nil` if there is none.
  ///   - sourceDeviceItems: The source device's items; `nil` if they are not reported.
  /// - Throws: `.stalePlan` if the plan differs from the confirmed or the saved one.
  func report(
    onto target: RestoreTarget, since confirmedPlan: PlanReport? = nil,
    sourceDeviceItems: SourceDeviceItems? = nil, in session: Session
  ) throws(CommandError) -> PlanReport {
    try Self.check(target, loaded, saved)
    guard target.identifier == identifier, confirmedPlan.map({ $0.revision == target.revision }) ?? true else {
      throw changed(target, because: "its identifier or revision is different now")
    }
    var plan = try opened.plan(onto: target, policy: policy)
    if let saved { try saved.check(against: try makeReport(plan, onto: target).document, target: target.name) }
    if let selection {
      // A confirmed plan was shown together with the warning.
      let warningSession = confirmedPlan == nil ? session : nil
      try selection.check(against: plan, loaded, in: warningSession)
      let part = try opened.plan(onto: target, policy: policy, only: selection.indexes)
      if let saved { try Self.requireNoAdditionalRemovals(in: part, comparedWith: plan, saved, selection, target) }
      plan = part
    }
    let report = try makeReport(plan, onto: target, sourceDeviceItems: sourceDeviceItems)
    if let difference = confirmedPlan?.document.difference(from: report.document) {
      throw changed(target, because: difference)
    }
    return report
  }

  /// Rejects a partial restore that would delete existing items which the complete saved plan keeps.
  private static func requireNoAdditionalRemovals(
    in part: MigrationPlan, comparedWith completePlan: MigrationPlan, _ saved: SavedPlan, _ selection: RestoreSelection,
    _ target: RestoreTarget
  ) throws(CommandError) {
    let count = part.removed.count - completePlan.removed.count
    guard count > 0 else { return }
    throw .usage(
      "\(selection.path) leaves out items that \(saved.path) puts back",
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

  private func changed(_ target: RestoreTarget, because why: String) -> CommandError {
    CommandError(
      .stalePlan, "\(target.name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  func status(of report: PlanReport) -> CommandExitStatus {
    report.plan.summary.unreadable > 0 || !opened.backup.damage.isEmpty ? .partial : .ok
  }
}

/// The items to restore, as `--only` lists them by their positions in the backup: `{"indexes": [0, 3]}`.
struct RestoreSelection {
  let path: String
  let indexes: Set<Int>

  /// The maximum size in bytes: more than a list of all items of any backup needs.
  static let maximumByteCount = 16 << 20

  init(_ path: String, in session: Session) throws(CommandError) {
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: "the list of items", in: session)
    let path = InputFile.name(path)
    self.path = path
    guard let indexes = Self.indexes(in: bytes) else {
      throw CommandError(
        .refused, "\(path) is not a list of items", why: "it must be an object with the single member \"indexes\"",
        try: #"{"indexes": [0, 3]} with item indexes from plan --json"#)
    }
    self.indexes = Set(indexes)
  }

  private static func indexes(in bytes: [UInt8]) -> [Int]? {
    guard let list = try? JSONValue(parsing: bytes), list.fields?.map(\.0) == ["indexes"],
      let elements = list["indexes"]?.arrayValue
    else { return nil }
    let indexes = elements.compactMap { $0.integerValue.flatMap { Int(exactly: $0) } }
    return indexes.count == elements.count ? indexes : nil
  }

  /// Rejects indexes that the backup does not have, and warns about selected items that will not be restored.
  ///
  /// - Parameters:
  ///   - plan: The plan for all items.
  ///   - loaded: The backup.
  ///   - session: The session that shows the warning; `nil` if it was already shown.
  func check(against plan: MigrationPlan, _ loaded: LoadedBackup, in session: Session?) throws(CommandError) {
    let plannedIndexes = Set(plan.decisions.map(\.index))
    if let unknownIndex = indexes.subtracting(plannedIndexes).min() {
      throw .usage(
        "\(path) names item \(unknownIndex)",
        why: "\(loaded.name) has \(HumanReadable.count(plannedIndexes.count, "item")), counted from 0",
        try: "plan --json shows the index of each item")
    }
    let notRestored = plan.decisions.filter { indexes.contains($0.index) && $0.outcome.change == nil }
    guard let first = notRestored.first, let reason = first.outcome.reason else { return }
    session?.warn(
      "\(HumanReadable.count(notRestored.count, "item")) of \(path) will not be restored",
      why: "the first is item \(first.index): \(reason.rawValue)", try: "keyhaul explain \(reason.rawValue)")
  }
}

/// A plan that `plan -o` has saved.
struct SavedPlan {
  let path: String
  private let file: PlanFile
  var document: PlanDocument { file.document }

  /// The maximum size in bytes: more than a plan for 100,000 items needs.
  static let maximumByteCount = 128 << 20

  init(_ path: String, in session: Session) throws(CommandError) {
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: "the plan", in: session)
    let path = InputFile.name(path)
    self.path = path
    do throws(KeyhaulError) {
      file = try PlanFile(parsing: bytes)
    } catch {
      switch error.code {
      case .malformedPlan:
        throw CommandError(
          .refused, "\(path) is not a saved plan", why: error.reason, try: "keyhaul plan ARCHIVE --to DEVICE -o FILE")
      case .otherPlanFormat:
        throw CommandError(.refused, "\(path) has another format", why: error.reason, try: "plan again")
      case .stalePlan:
        throw CommandError(
          .stalePlan, "\(path) is no longer the plan that was saved", why: error.reason, try: "plan again")
      default:
        throw CommandError(error, doing: "cannot check \(path)")
      }
    }
  }

  /// Rejects a plan that cannot be carried out: edited, redacted, or made from a device.
  private func checkUsable(for target: String) throws(CommandError) {
    if let obstacle = file.obstacle { throw stale(target, because: obstacle) }
  }

  /// Rejects a plan for another backup or device, before asking for a password.
  func check(_ loaded: LoadedBackup, _ device: DeviceSession) throws(CommandError) {
    try checkUsable(for: device.name)
    if document.source.digest != loaded.archive.digest {
      throw stale(device.name, because: "\(loaded.name) is not the planned backup, or has changed since")
    }
    if document.target.name != device.name {
      throw stale(device.name, because: "it was made for \(document.target.name)")
    }
    if document.target.revision != device.record.revision {
      throw stale(
        device.name,
        because:
          "it was made for revision \(document.target.revision); \(device.name) is at revision \(device.record.revision)"
      )
    }
  }

  /// Rejects a plan if any decision would now be different.
  func check(against now: PlanDocument, target: String) throws(CommandError) {
    if let difference = document.difference(from: now) { throw stale(target, because: difference) }
  }

  private func stale(_ target: String, because why: String) -> CommandError {
    CommandError(.stalePlan, "\(path) no longer matches \(target)", why: why, try: "plan again")
  }
}
