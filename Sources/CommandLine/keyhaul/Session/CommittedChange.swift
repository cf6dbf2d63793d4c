import KeyhaulKit

/// A change that a command has made and that is final. Messages of later errors mention it.
struct CommittedChange: Equatable {
  /// The change as a clause: "14 items were restored to new-phone".
  let clause: String
  /// A command that shows the current state; `nil` if there is none.
  let inspectCommand: String?

  init(_ clause: String, inspectCommand: String? = nil) {
    self.clause = clause
    self.inspectCommand = inspectCommand
  }

  /// Creates a change of a backup or a file.
  init(_ clause: String, at path: String) {
    self.init(clause, inspectCommand: "keyhaul inspect \(ShellQuoting.quote(path))")
  }

  /// Creates a change of a device.
  init(_ clause: String, of device: String) {
    self.init(clause, inspectCommand: "keyhaul device show \(ShellQuoting.quote(device))")
  }
}

extension Session {
  /// Makes a change, and records it once it is final. Messages of later errors then mention it.
  func committing<Value: ~Copyable, Failure: Error>(
    _ change: CommittedChange, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    do throws(Failure) {
      let value = try body()
      committedChange = change
      return value
    } catch {
      if Self.stage(of: error) == .afterCommit { committedChange = change }
      throw error
    }
  }

  /// Warns that a replaced backup could not be removed. It still has the contents that the command was meant to change.
  ///
  /// - Parameter replaced: The path of the replaced backup; `nil` if it was removed.
  func warnIfOldBackupRemains(_ replaced: String?) {
    guard let replaced else { return }
    warn(
      "the previous backup could not be removed", why: "it is now at \(replaced)", try: "delete it", ignoresQuiet: true)
    hasLeftOldBackup = true
  }

  private static func stage(of error: any Error) -> CommitStage {
    switch error {
    case let failure as CommandError: failure.stage
    case let explained as any ExplainedError: explained.stage
    default: .beforeCommit
    }
  }

  /// Returns the error to report. If the command has already made a change, it is an error after that change.
  func errorAfterChange(_ error: any Error) -> CommandError {
    let failure = CommandError(any: error)
    if let committedChange { return failure.after(committedChange) }
    return failure.stage == .afterCommit ? failure.after(CommittedChange("the change was made")) : failure
  }
}

extension CommandError {
  /// Returns this error as one that occurred after a final change, without its original advice, which does not apply.
  func after(_ change: CommittedChange) -> CommandError {
    var failure = self
    // The cause of a signal or a closed pipe is left out, because it does not concern the change.
    let cause: String?
    if case .signal = status { cause = nil } else { cause = why }
    failure.status = .doneBut
    failure.message = "done, but \(message)"
    let finality = "\(UntrustedText.escaped(change.clause)), and this change is final"
    failure.why = cause.map { "\(finality); \($0)" } ?? finality
    let inspectAdvice = change.inspectCommand.map { "; \($0) shows its current state" } ?? ""
    failure.advice = "don't run it again" + inspectAdvice
    failure.isSilent = false
    failure.stage = .afterCommit
    failure.completedChange = change.clause
    return failure
  }
}
