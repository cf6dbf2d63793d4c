import KeyhaulKit

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
    do throws(MigrationError) {
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
      case .underlying, .deviceLocked, .unsupportedSystem, .noSuchItem, .malformedExpectations, .planToLookAt:
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
      throw stale(device.name, "\(named.name) is another backup, or has changed since")
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
