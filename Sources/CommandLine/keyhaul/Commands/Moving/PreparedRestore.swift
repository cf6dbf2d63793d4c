import KeyhaulKit
import Reports

/// A restore of which everything is known but the target: what was read and opened, and what was asked for. The device is
/// not held by it, and is planned for as often as it is held.
struct PreparedRestore {
  let named: NamedArchive
  let opened: ArchiveUnlocker.OpenedForDevice
  /// The identifier of the device whose hardware key opened the backup; `nil` if the target is a Simulator.
  let identifier: String?
  let policy: ExistingItemPolicy
  let selection: RestoreSelection?
  let saved: SavedPlan?

  var damage: BackupDamageNotice { BackupDamageNotice(opened: opened.archive, name: named.name) }

  /// Refuses a target that cannot be restored to now. Called before a password is asked for, and in each session with
  /// the target.
  static func check(_ target: RestoreTarget, _ named: NamedArchive, _ saved: SavedPlan?) throws(CommandFailure) {
    do throws(KeyhaulError) {
      try target.requireReadableRows()
    } catch {
      throw CommandFailure(error, using: target.name)
    }
    // No plan for a Simulator can be saved.
    if case .device(let device) = target { try saved?.check(named, device) }
  }

  /// Returns the plan for the target in its current state.
  ///
  /// - Parameters:
  ///   - shown: What a person agreed to, where one did; it has to be the same still.
  ///   - sourceDevice: What the device that made the backup has besides, where that shall be said.
  /// - Throws: `.stalePlan` where it is not, or not what a saved plan says.
  func report(
    onto target: RestoreTarget, since shown: PlanReport? = nil, sourceDeviceItems: SourceDeviceItems? = nil,
    in session: Session
  ) throws(CommandFailure) -> PlanReport {
    try Self.check(target, named, saved)
    guard target.identifier == identifier, shown.map({ $0.revision == target.revision }) ?? true else {
      throw changed(target, "its identifier or revision is different now")
    }
    var plan = try opened.plan(onto: target, policy: policy)
    if let saved { try saved.check(against: try report(plan, onto: target).document, target: target.name) }
    if let selection {
      try selection.check(against: plan, named, in: shown == nil ? session : nil)
      let part = try opened.plan(onto: target, policy: policy, only: selection.indexes)
      if let saved { try Self.require(part, toKeepWhat: plan, saved, selection, target) }
      plan = part
    }
    let report = try report(plan, onto: target, sourceDeviceItems: sourceDeviceItems)
    if let difference = shown?.document.difference(from: report.document) { throw changed(target, difference) }
    return report
  }

  /// Refuses to do a part of a saved plan that takes away what the whole of it brings back.
  private static func require(
    _ part: MigrationPlan, toKeepWhat whole: MigrationPlan, _ saved: SavedPlan, _ selection: RestoreSelection,
    _ target: RestoreTarget
  ) throws(CommandFailure) {
    let count = part.removed.count - whole.removed.count
    guard count > 0 else { return }
    throw .usage(
      "\(selection.path) leaves out items that \(saved.path) puts back",
      why: "\(HumanReadable.count(count, "item")) would be lost on \(target.name), although the plan says that "
        + "\(count == 1 ? "it stays" : "they stay")",
      try: "a plan with --existing merge, or the whole plan")
  }

  private func report(
    _ plan: MigrationPlan, onto target: RestoreTarget, sourceDeviceItems: SourceDeviceItems? = nil
  ) throws(CommandFailure) -> PlanReport {
    var source = ReportSource(named, namesFrom: opened)
    source.sourceDeviceItems = sourceDeviceItems
    return switch target {
    case .device(let device): try PlanReport(plan, of: source, onto: device)
    case .simulator(let simulator):
      PlanReport(plan, of: source, onto: simulator, made: DeviceEnvironment.interruptible.clock.now())
    }
  }

  private func changed(_ target: RestoreTarget, _ why: String) -> CommandFailure {
    CommandFailure(
      .stalePlan, "\(target.name) has changed since the question was asked", why: "\(why); nothing was done",
      try: "run it again")
  }

  func status(of report: PlanReport) -> CommandStatus {
    report.plan.summary.unreadable > 0 || !opened.archive.damage.isEmpty ? .partial : .ok
  }
}

/// The items that a restore is to bring, as `--only` names them: `{"indexes": [0, 3]}`, by their places in the archive.
struct RestoreSelection {
  let path: String
  let indexes: Set<Int>

  /// More than a list of all items of any backup takes, in bytes.
  static let maximumByteCount = 16 << 20

  init(_ path: String, in session: Session) throws(CommandFailure) {
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: "the list of items", in: session)
    let path = InputFile.name(path)
    self.path = path
    guard let indexes = Self.indexes(in: bytes) else {
      throw CommandFailure(
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

  /// Rejects item indexes that the archive does not have, and warns about selected items that will not be restored.
  ///
  /// - Parameter session: The session that shows the warning; `nil` if it was already shown.
  func check(against plan: MigrationPlan, _ named: NamedArchive, in session: Session?) throws(CommandFailure) {
    let known = Set(plan.decisions.map(\.index))
    if let unknownIndex = indexes.subtracting(known).min() {
      throw .usage(
        "\(path) names item \(unknownIndex)",
        why: "\(named.name) has \(HumanReadable.count(known.count, "item")), counted from 0",
        try: "plan --json shows the index of each item")
    }
    let staying = plan.decisions.filter { indexes.contains($0.index) && $0.outcome.change == nil }
    guard let first = staying.first, let reason = first.outcome.reason else { return }
    session?.warn(
      "\(HumanReadable.count(staying.count, "item")) of \(path) will not be restored",
      why: "the first is item \(first.index): \(reason.rawValue)", try: "keyhaul explain \(reason.rawValue)")
  }
}

/// A plan that was saved by `plan -o`.
struct SavedPlan {
  let path: String
  private let file: PlanFile
  var document: PlanDocument { file.document }

  /// The largest plan that is read, in bytes: more than one of 100,000 items takes.
  static let maximumByteCount = 128 << 20

  init(_ path: String, in session: Session) throws(CommandFailure) {
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: "the plan", in: session)
    let path = InputFile.name(path)
    self.path = path
    do throws(KeyhaulError) {
      file = try PlanFile(parsing: bytes)
    } catch {
      switch error.code {
      case .malformedPlan:
        throw CommandFailure(
          .refused, "\(path) is not a saved plan", why: error.reason, try: "keyhaul plan ARCHIVE --to DEVICE -o FILE")
      case .otherPlanFormat:
        throw CommandFailure(.refused, "\(path) has another format", why: error.reason, try: "plan again")
      case .stalePlan:
        throw CommandFailure(
          .stalePlan, "\(path) is no longer the plan that was saved", why: error.reason, try: "plan again")
      default:
        throw CommandFailure(error, doing: "cannot check \(path)")
      }
    }
  }

  /// Refuses what is not a plan to carry out: edited, redacted, or made of a device.
  private func checkWhole(for target: String) throws(CommandFailure) {
    if let obstacle = file.obstacle { throw stale(target, obstacle) }
  }

  /// Refuses at once where the archive or the device is another, before a password is asked for.
  func check(_ named: NamedArchive, _ device: DeviceSession) throws(CommandFailure) {
    try checkWhole(for: device.name)
    if document.source.digest != named.archive.digest {
      throw stale(device.name, "\(named.name) is not the planned backup, or has changed since")
    }
    if document.target.name != device.name {
      throw stale(device.name, "it was made for \(document.target.name)")
    }
    if document.target.revision != device.record.revision {
      throw stale(
        device.name,
        "it was made for revision \(document.target.revision); \(device.name) is at revision \(device.record.revision)")
    }
  }

  /// Refuses where anything is decided differently now.
  func check(against now: PlanDocument, target: String) throws(CommandFailure) {
    if let difference = document.difference(from: now) { throw stale(target, difference) }
  }

  private func stale(_ target: String, _ why: String) -> CommandFailure {
    CommandFailure(.stalePlan, "\(path) no longer matches \(target)", why: why, try: "plan again")
  }
}
