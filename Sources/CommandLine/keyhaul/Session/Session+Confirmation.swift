import KeyhaulKit

extension Session {
  /// Asks before something is deleted or replaced, and returns only if the user agrees.
  ///
  /// - Parameters:
  ///   - question: The question, with the number of items: "Remove 2 items from new-phone and add 12?"
  ///   - action: The action that needs the user's agreement: "removing 2 items from new-phone".
  ///   - lines: The details to show above the question.
  /// - Throws: `.usage` if Keyhaul cannot ask and `--yes` is missing; `.failed` if the user does not agree.
  func confirm(
    _ question: String, action: String, showing lines: @autoclosure () -> [String] = []
  ) throws(CommandError) {
    if common.yes { return }
    guard let terminal = terminal() else {
      throw .usage(
        "\(action) must be confirmed",
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

  /// Asks the user to confirm a deletion by typing the device's name.
  ///
  /// - Parameters:
  ///   - name: The device's name.
  ///   - confirmation: The name from `--confirm NAME`; `nil` if Keyhaul must ask for it.
  ///   - action: The deletion as an imperative clause: "delete it for good".
  func confirm(name: String, confirmation: String?, action: String) throws(CommandError) {
    let enteredName: String
    if let confirmation {
      enteredName = confirmation
    } else if let terminal = terminal() {
      enteredName = try terminal.line(messageStyle.adapted("Type \(UntrustedText.escaped(name)) to \(action): "))
    } else {
      throw .usage(
        "deleting \(name) must be confirmed with its name",
        why: missingTerminal,
        try: "add --confirm \(name)")
    }
    guard enteredName == name else {
      throw .usage("the name does not match \(name)", why: "nothing was changed", try: "--confirm \(name)")
    }
  }
}
