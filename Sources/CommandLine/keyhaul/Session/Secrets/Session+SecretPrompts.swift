import KeyhaulKit

extension Session {
  /// The number of times that a user may type a password, like `sudo` and `ssh`.
  private static let maximumAttemptCount = 3

  /// Asks once for a password for several backups.
  ///
  /// - Returns: `nil` if there is no terminal or the user enters an empty line.
  func promptedPasswordForAllBackups(of subject: String) throws(CommandError) -> ReusablePassword? {
    guard let terminal = terminal() else { return nil }
    let password = try terminal.secret(promptText("Password of \(subject)"))
    guard !password.isEmpty else { return nil }
    return ReusablePassword(try checkedPassword(password, kind: .password, subject: subject), from: "the password")
  }

  /// Reads a password and uses it. If the user typed a wrong password, asks again, up to
  /// `maximumAttemptCount` times in total. An empty line ends the attempts.
  ///
  /// Not for a device's passcode, because the device counts failed attempts.
  ///
  /// - Parameter use: The action that needs the password. It throws `.wrongPassword` if the password is wrong.
  func withPassword<Tag, Value: ~Copyable>(
    _ flags: SecretFlags<Tag>, of subject: String, _ use: (consuming Secret) throws(CommandError) -> Value
  ) throws(CommandError) -> Value {
    let isPrompted = try flags.source(environment: environment) == .prompt
    var attemptCount = 0
    while true {
      let password = try password(flags, of: subject)
      attemptCount += 1
      do throws(CommandError) {
        return try use(password)
      } catch {
        let mayRetry = isPrompted && attemptCount < Self.maximumAttemptCount
        guard mayRetry, error.status == .wrongPassword else { throw error }
        try terminal(for: flags.kind, of: subject).show("That \(flags.kind.noun) is wrong; try again.")
      }
    }
  }

  /// Asks for a password or passcode. A new one is asked for twice.
  func promptedPassword(
    _ kind: SecretKind, of subject: String, isNew: Bool
  ) throws(CommandError) -> Secret {
    let terminal = try terminal(for: kind, of: subject)
    let isPasscode = kind == .passcode || kind == .newPasscode
    let isSetting = isNew || kind == .newPassword || kind == .newPasscode
    let noun = isPasscode ? "passcode" : "password"
    let title = isSetting ? "New \(noun) for \(subject)" : "\(isPasscode ? "Passcode" : "Password") of \(subject)"
    let password = try checkedPassword(terminal.secret(promptText(title)), kind: kind, subject: subject)
    guard isSetting else { return password }
    let repetition = try terminal.secret(promptText("again"))
    guard password.matches(repetition) else {
      throw CommandError(
        .failed, "the two \(noun)s differ", why: "both were typed for \(subject)", try: "run it again")
    }
    return password
  }

  /// Returns the terminal for a prompt, or throws `.needsPassword` if there is none.
  func terminal(for kind: SecretKind, of subject: String) throws(CommandError) -> TerminalDevice {
    guard let terminal = terminal() else {
      throw missingSecretError(kind, of: subject, why: isPartOfBatch ? "no password was given for it" : missingTerminal)
    }
    return terminal
  }

  /// Returns a prompt that fits on one line, even if the subject contains control characters.
  func promptText(_ title: String) -> String {
    messageStyle.adapted(UntrustedText.escaped(title, columns: 100)) + ": "
  }
}
