import KeyhaulKit

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
    let answer = try terminal.line(messageStyle.adapted(HostileText.shown(question)) + " [y/N] ")
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
      typed = try terminal.line(messageStyle.adapted("Type \(HostileText.shown(name)) to \(action): "))
    } else {
      throw .usage(
        "\(name) must be confirmed with its name",
        why: missingTerminal,
        try: "add --confirm \(name)")
    }
    guard typed == name else {
      throw .usage("the name does not match \(name)", why: "nothing was changed", try: "--confirm \(name)")
    }
  }
}
