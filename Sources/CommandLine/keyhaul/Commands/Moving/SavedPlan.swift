import KeyhaulKit
import Reports

/// A plan that was saved with `plan -o`.
struct SavedPlan {
  let path: String
  private let file: PlanFile
  var document: PlanDocument { file.document }

  /// The maximum size of the file in bytes, more than a plan for 100,000 items needs.
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
        throw CommandError(error, failedAction: "cannot check \(path)")
      }
    }
  }

  /// Rejects a plan that was made for a different backup, device or revision. Also rejects a plan that cannot be carried
  /// out because it was edited, is redacted or was not made from a backup. Called before asking for a password.
  func check(_ loaded: LoadedBackup, _ device: DeviceSession) throws(CommandError) {
    if let obstacle = file.obstacle { throw staleError(device.name, because: obstacle) }
    if document.source.digest != loaded.archive.digest {
      throw staleError(device.name, because: "\(loaded.name) is not the planned backup, or has changed since")
    }
    if document.target.name != device.name {
      throw staleError(device.name, because: "it was made for \(document.target.name)")
    }
    if document.target.revision != device.record.revision {
      throw staleError(
        device.name,
        because:
          "it was made for revision \(document.target.revision); \(device.name) is at revision \(device.record.revision)"
      )
    }
  }

  /// Rejects the saved plan if a plan made now would decide anything differently.
  func check(against currentPlan: PlanDocument, target: String) throws(CommandError) {
    if let difference = document.difference(from: currentPlan) { throw staleError(target, because: difference) }
  }

  private func staleError(_ target: String, because why: String) -> CommandError {
    CommandError(.stalePlan, "\(path) no longer matches \(target)", why: why, try: "plan again")
  }
}
