import KeyhaulKit

/// A final change of a command, for the messages of errors that occur after it.
struct CommittedChange: Equatable {
  /// The change as a clause: "14 items were restored to new-phone".
  let clause: String
  /// A command that shows the current state; `nil` if there is none.
  let inspectCommand: String?

  init(_ clause: String, inspectCommand: String? = nil) {
    self.clause = clause
    self.inspectCommand = inspectCommand
  }

  /// Creates a change of a device.
  init(_ clause: String, of device: String) {
    self.init(clause, inspectCommand: "keyhaul device show \(ShellQuoting.quote(device))")
  }
}

extension Session {
  /// Makes a change. Once the change is final, an error is reported as a failure after a completed change.
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
    guard let done = committedChange ?? (failure.stage == .afterCommit ? CommittedChange("the change was made") : nil)
    else {
      return failure
    }
    return failure.after(done)
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
    failure.advice = "don't run it again" + (change.inspectCommand.map { "; \($0) shows its current state" } ?? "")
    failure.isSilent = false
    failure.stage = .afterCommit
    failure.done = change.clause
    return failure
  }
}

extension Session {
  /// Asks before something is deleted or replaced, and returns only if the user agrees.
  ///
  /// - Parameters:
  ///   - question: The question, with the number of items: "Remove 2 items from new-phone and add 12?"
  ///   - refusal: The action that needs a confirmation: "removing 2 items from new-phone".
  ///   - lines: The details to show above the question.
  /// - Throws: `.usage` if Keyhaul cannot ask and `--yes` is missing; `.failed` if the user does not agree.
  func confirm(
    _ question: String, refusal: String, showing lines: @autoclosure () -> [String] = []
  ) throws(CommandError) {
    if common.yes { return }
    guard let terminal = terminal() else {
      throw .usage(
        "\(refusal) must be confirmed",
        why: missingTerminal, try: "add --yes")
    }
    try ask(question, on: terminal, showing: lines())
  }

  /// Asks a question on the terminal, and returns only if the user agrees.
  ///
  /// - Throws: `.failed` if the user does not agree.
  func ask(
    _ question: String, on terminal: TerminalDevice, showing lines: [String] = []
  ) throws(CommandError) {
    for line in lines { try terminal.show(messageStyle.adapted(line)) }
    let answer = try terminal.line(messageStyle.adapted(UntrustedText.escaped(question)) + " [y/N] ")
    guard ["y", "yes"].contains(answer.lowercased()) else {
      throw CommandError(.failed, "stopped: the answer was not yes", why: "nothing was changed")
    }
  }

  /// Makes the user confirm a deletion by typing the name of the thing, or with `--confirm NAME`.
  func confirm(name: String, given: String?, action: String) throws(CommandError) {
    let typed: String
    if let given {
      typed = given
    } else if let terminal = terminal() {
      typed = try terminal.line(messageStyle.adapted("Type \(UntrustedText.escaped(name)) to \(action): "))
    } else {
      throw .usage(
        "deleting \(name) must be confirmed with its name",
        why: missingTerminal,
        try: "add --confirm \(name)")
    }
    guard typed == name else {
      throw .usage("the name does not match \(name)", why: "nothing was changed", try: "--confirm \(name)")
    }
  }
}
