import KeyhaulKit

/// A change that a verb has made and that stands, in the words of whatever fails after it.
struct DoneChange: Equatable {
  /// A clause: "14 items were restored to new-phone".
  let what: String
  /// A command that shows how things are now, where there is one.
  let look: String?

  init(_ what: String, look: String? = nil) {
    self.what = what
    self.look = look
  }

  /// A change of a device.
  init(_ what: String, of device: String) {
    self.init(what, look: "keyhaul device show \(ShellQuoting.quote(device))")
  }
}

extension Session {
  /// Makes a change. From the moment in which it is final, whatever fails is told as what it is: something after a change
  /// that stands.
  func changing<Value: ~Copyable, Failure: Error>(
    _ change: DoneChange, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    do throws(Failure) {
      let value = try body()
      done = change
      return value
    } catch {
      if Self.stage(of: error) == .afterCommit { done = change }
      throw error
    }
  }

  /// Says of a backup that was replaced where it still stands, with everything that was to be changed in it.
  ///
  /// - Parameter replaced: Its path; `nil` if it was removed.
  func settleReplaced(_ replaced: String?) {
    guard let replaced else { return }
    warn(
      "the previous backup could not be removed", why: "it is now at \(replaced)", try: "delete it", evenQuiet: true)
    hasLeftReplaced = true
  }

  private static func stage(of error: any Error) -> CommitStage {
    switch error {
    case let failure as CommandFailure: failure.stage
    case let explained as any ExplainedError: explained.stage
    default: .beforeCommit
    }
  }

  /// What ended the verb, as a failure after the change where one was made before.
  func settled(_ error: any Error) -> CommandFailure {
    let failure = CommandFailure(any: error)
    guard let done = done ?? (failure.stage == .afterCommit ? DoneChange("the change was made") : nil) else {
      return failure
    }
    return failure.after(done)
  }
}

extension CommandFailure {
  /// The failure of something that came after a change which stands. Its own advice was for work that was not done.
  func after(_ change: DoneChange) -> CommandFailure {
    var failure = self
    // What a signal or a pipe ends with says nothing of the change.
    let fact: String?
    if case .signal = status { fact = nil } else { fact = why }
    failure.status = .doneBut
    failure.message = "done, but \(message)"
    let stands = "\(UntrustedText.escaped(change.what)), and this change is final"
    failure.why = fact.map { "\(stands); \($0)" } ?? stands
    failure.advice = "don't run it again" + (change.look.map { "; \($0) shows its current state" } ?? "")
    failure.isSilent = false
    failure.stage = .afterCommit
    failure.done = change.what
    return failure
  }
}

extension Session {
  /// Asks before something is deleted or replaced; goes on only after a clear yes.
  ///
  /// - Parameters:
  ///   - question: With the count: "Remove 2 items from new-phone and add 12?"
  ///   - refusal: What cannot be done unasked: "removing 2 items from new-phone".
  ///   - lines: Shown above the question: what it is about.
  /// - Throws: `.usage` where nobody can be asked and `--yes` is missing; `.failed` after a no.
  func confirm(
    _ question: String, refusal: String, showing lines: @autoclosure () -> [String] = []
  ) throws(CommandFailure) {
    if common.yes { return }
    guard let terminal = terminal() else {
      throw .usage(
        "\(refusal) must be confirmed",
        why: missingTerminal, try: "add --yes")
    }
    try ask(question, on: terminal, showing: lines())
  }

  /// Puts a question and goes on only after a clear yes.
  ///
  /// - Throws: `.failed` after a no.
  func ask(
    _ question: String, on terminal: TerminalDevice, showing lines: [String] = []
  ) throws(CommandFailure) {
    for line in lines { try terminal.show(messageStyle.adapted(line)) }
    let answer = try terminal.line(messageStyle.adapted(UntrustedText.escaped(question)) + " [y/N] ")
    guard ["y", "yes"].contains(answer.lowercased()) else {
      throw CommandFailure(.failed, "stopped: the answer was not yes", why: "nothing was changed")
    }
  }

  /// Has the user type the name of what is deleted for good, or say it with `--confirm NAME`.
  func confirm(name: String, given: String?, action: String) throws(CommandFailure) {
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
