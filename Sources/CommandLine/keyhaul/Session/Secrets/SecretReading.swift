import KeyhaulKit
import SystemPackage

/// Limits of what is read as a secret.
enum SecretLimits {
  /// The largest password, passcode or item secret, in bytes.
  static let maximumByteCount = 1_048_576
  /// How often a password is asked for on a terminal until a right one is typed, as `sudo` and `ssh` do.
  static let maximumAttemptCount = 3
}

extension Session {
  /// Gets a password or passcode from where the user said, or asks for it.
  ///
  /// - Parameters:
  ///   - subject: Whose it is, as the user named it: "family.backup".
  ///   - isNew: Whether it is being set: then a prompt asks twice.
  /// - Throws: `.wrongPassword` if it is empty; `.needsPassword` if none was given and Keyhaul cannot ask.
  func password<Name>(
    _ flags: SecretFlags<Name>, of subject: String, isNew: Bool = false
  ) throws(CommandFailure) -> Secret {
    let source = try flags.source(environment: environment)
    if source == .prompt { return try promptedPassword(flags.family, of: subject, isNew: isNew) }
    let bytes = try read(source, family: flags.family, subject: subject)
    if !flags.family.isTakenVerbatim { bytes.dropTrailingNewline() }
    if flags.family.isTakenWithoutMark(isNew: isNew), bytes.dropByteOrderMark() {
      note("\(UntrustedText.escaped(subject)): the byte order mark before the \(flags.family.noun) was ignored.")
    }
    return try checkedPassword(bytes.secret(), family: flags.family, subject: subject)
  }

  /// Asks once for a password that opens several backups.
  ///
  /// - Returns: `nil` if there is no terminal, and for an empty line: then there is no password to try.
  func askedPassword(of subject: String) throws(CommandFailure) -> SharedPassword? {
    guard let terminal = terminal() else { return nil }
    let typed = try terminal.secret(promptText("Password of \(subject)"))
    guard !typed.isEmpty else { return nil }
    return SharedPassword(try checkedPassword(typed, family: .password, subject: subject), from: "the password")
  }

  /// Gets a password from a source that a list names.
  func password(from source: SecretSource, of subject: String) throws(CommandFailure) -> Secret {
    let bytes = try read(source, family: .password, subject: subject)
    bytes.dropTrailingNewline()
    return try checkedPassword(bytes.secret(), family: .password, subject: subject)
  }

  /// Gets a password and uses it. Where a person types it on a terminal and it is wrong, that is said and it is asked for
  /// again, up to `SecretLimits.maximumAttemptCount` times in all; an empty line ends this. A device's passcode is not asked for
  /// this way: the device counts its wrong ones.
  ///
  /// - Parameter use: What shows whether it is right: then it throws `.wrongPassword`.
  func withPassword<Name, Value: ~Copyable>(
    _ flags: SecretFlags<Name>, of subject: String, _ use: (consuming Secret) throws(CommandFailure) -> Value
  ) throws(CommandFailure) -> Value {
    let isPrompted = try flags.source(environment: environment) == .prompt
    var tries = 0
    while true {
      let typed = try password(flags, of: subject)
      tries += 1
      do throws(CommandFailure) {
        return try use(typed)
      } catch {
        guard isPrompted, tries < SecretLimits.maximumAttemptCount, error.status == .wrongPassword else { throw error }
        try terminal(for: flags.family, of: subject).show("That \(flags.family.noun) is wrong; try again.")
      }
    }
  }

  /// Gets the secret of an item, bytes as they are; a line that is typed comes without its newline.
  ///
  /// - Parameter isPublic: Whether everybody may read it, as a certificate.
  func itemSecret<Name>(
    _ flags: SecretFlags<Name>, of subject: String, isPublic: Bool = false
  ) throws(CommandFailure) -> SensitiveBytes {
    let source = try flags.source(environment: environment)
    guard source == .prompt else {
      return try read(source, family: flags.family, subject: subject, isPublic: isPublic).sensitiveBytes()
    }
    let typed = try terminal(for: flags.family, of: subject).secret(promptText("Secret of \(subject)"))
    return typed.withBytes { SensitiveBytes(copying: $0) }
  }

  /// Gets the hardware key of the device that made a backup.
  func deviceKey(from source: SecretSource, of subject: String) throws(CommandFailure) -> DeviceKey {
    let bytes = try read(source, family: .deviceKey, subject: subject)
    do {
      return try DeviceKey(bytes.secret())
    } catch {
      throw .usage("this is not a device key for \(subject)", why: error.reason, try: "the 0x835 key as raw bytes")
    }
  }

  /// Gets the keys of a device's classes from a file, as its bytes.
  func classKeys(from path: String, of subject: String) throws(CommandFailure) -> SensitiveBytes {
    try read(path == "-" ? .standardInput : .file(path), family: .classKeys, subject: subject).sensitiveBytes()
  }

  // MARK: Prompts

  private func promptedPassword(
    _ family: SecretFamily, of subject: String, isNew: Bool
  ) throws(CommandFailure) -> Secret {
    let terminal = try terminal(for: family, of: subject)
    let isSetting = isNew || family == .newPassword || family == .newPasscode
    let kind = family == .passcode || family == .newPasscode ? "passcode" : "password"
    let title =
      isSetting ? "New \(kind) for \(subject)" : "\(kind.prefix(1).uppercased() + kind.dropFirst()) of \(subject)"
    let first = try checkedPassword(
      terminal.secret(promptText(title)), family: family, subject: subject)
    guard isSetting else { return first }
    let second = try terminal.secret(promptText("again"))
    guard first.matches(second) else {
      throw CommandFailure(
        .failed, "the two \(kind)s differ", why: "both were typed for \(subject)", try: "run it again")
    }
    return first
  }

  private func terminal(for family: SecretFamily, of subject: String) throws(CommandFailure) -> TerminalDevice {
    guard let terminal = terminal() else {
      throw missing(family, of: subject, why: isOneOfMany ? "no password was given for it" : missingTerminal)
    }
    return terminal
  }

  private func missing(_ family: SecretFamily, of subject: String, why: String) -> CommandFailure {
    CommandFailure(
      .needsPassword, "\(subject) needs a \(family.noun)", why: why,
      try: isOneOfMany ? "\(family.flags); --passwords FILE for different passwords" : family.flags)
  }

  private func promptText(_ title: String) -> String {
    messageStyle.adapted(UntrustedText.escaped(title, columns: 100)) + ": "
  }

  private func checkedPassword(
    _ password: consuming Secret, family: SecretFamily, subject: String
  ) throws(CommandFailure) -> Secret {
    guard !password.isEmpty else {
      throw CommandFailure(
        .wrongPassword, "the \(family.noun) of \(subject) is empty",
        why: "the line is empty",
        try: family.flags)
    }
    let hasZero = password.withBytes { $0.contains(0) }
    guard !hasZero else {
      throw CommandFailure(
        .wrongPassword, "the \(family.noun) of \(subject) cannot be right",
        why: "it contains a zero byte, like UTF-16 text",
        try: "a file in UTF-8")
    }
    return password
  }

  // MARK: Files, descriptors, commands

  private func read(
    _ source: SecretSource, family: SecretFamily, subject: String, isPublic: Bool = false
  ) throws(CommandFailure) -> WipedBuffer {
    switch source {
    case .descriptor(let number):
      return try drain(number, name: "file descriptor \(number)", family: family, of: subject)
    case .standardInput:
      try claimStandardInput(for: "the \(family.noun)")
      return try drain(0, name: "standard input", family: family, of: subject)
    case .file(let path):
      return try readFile(path, family: family, subject: subject, isPublic: isPublic)
    case .command(let command):
      return try SecretCommand.output(
        of: command, family: family, subject: subject, terminal: terminalForCommand())
    case .prompt:
      throw missing(family, of: subject, why: "no source was given")
    }
  }

  private func readFile(
    _ path: String, family: SecretFamily, subject: String, isPublic: Bool
  ) throws(CommandFailure) -> WipedBuffer {
    // A pipe with a name waits here for whoever fills it.
    let system = FileSystem.real
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try Interruption.leavingAtOnce { () throws(Errno) in try system.openForReading(path, .waits) }
    } catch {
      throw Self.unreadable(path, error, family: family, of: subject)
    }
    let raw = file.raw
    // The read bits of group and others, as POSIX numbers them.
    if !isPublic, let status = try? system.status(of: raw), status.kind == .file, status.permissions & 0o044 != 0 {
      warn(
        "other users can read \(path)", why: "they can see the \(family.noun) of \(subject) in it",
        try: "chmod 600 \(ShellQuoting.quote(path))")
    }
    let bytes = try drain(raw.rawValue, name: path, family: family, of: subject)
    try? file.close(system)
    return bytes
  }

  private func drain(
    _ descriptor: Int32, name: String, family: SecretFamily, of subject: String
  ) throws(CommandFailure) -> WipedBuffer {
    do {
      return try SecretDraining.drain(descriptor)
    } catch {
      switch error {
      case .system(let reason): throw Self.unreadable(name, reason, family: family, of: subject)
      case .overLimit: throw SecretDraining.overLimit(name, family: family)
      case .interrupted(let failure): throw failure
      }
    }
  }

  private static func unreadable(
    _ name: String, _ error: Errno, family: SecretFamily, of subject: String
  ) -> CommandFailure {
    CommandFailure(
      error.isNotFound ? .notFound : .failed, "cannot read the \(family.noun) of \(subject)",
      why: "\(name): \(error.reason)", try: error.isNotFound ? "check the path" : family.flags, of: error)
  }
}

/// Reads a secret from a descriptor to its end.
enum SecretDraining {
  enum Failure: Error {
    case system(Errno)
    case overLimit
    case interrupted(CommandFailure)
  }

  static func drain(_ descriptor: Int32) throws(Failure) -> WipedBuffer {
    let buffer = WipedBuffer(limit: SecretLimits.maximumByteCount)
    while true {
      if let signal = Interruption.pending {
        throw .interrupted(Interruption.failure(signal, state: "nothing was changed"))
      }
      let outcome: WipedBuffer.ReadStep
      do {
        outcome = try buffer.readOnce(from: descriptor)
      } catch {
        throw .system(error)
      }
      switch outcome {
      case .more, .noDataYet: continue
      case .end: return buffer
      case .full: throw .overLimit
      }
    }
  }

  static func overLimit(_ name: String, family: SecretFamily) -> CommandFailure {
    CommandFailure(
      .refused, "refused to read the \(family.noun) from \(name)",
      why: "it is longer than the limit of \(HumanReadable.bytes(SecretLimits.maximumByteCount))", try: "the right file"
    )
  }
}

/// The passwords of a call that is about many backups.
struct SharedPasswords: PasswordOffers {
  /// The one that a flag or the environment names; for every backup.
  let named: SharedPassword?
  /// Those of a list, for the backups that their patterns mean.
  let list: PasswordList?

  init(named: SharedPassword?, list: PasswordList?) {
    self.named = named
    self.list = list
  }

  var areListed: Bool { list != nil }

  /// Returns the environment of a call about one of the backups: a list takes precedence over it, as a flag does.
  func environment(from environment: [String: String]) -> [String: String] {
    guard list != nil else { return environment }
    return environment.filter { !["KEYHAUL_PASSWORD_FILE", "KEYHAUL_PASSWORD_COMMAND"].contains($0.key) }
  }

  func passwords(for path: String, of identifier: String?) -> [SharedPassword] {
    if let named { return [named] }
    return list?.passwords(for: path, of: identifier) ?? []
  }
}

extension Session {
  /// The password that a call about many backups names for all of them, read once; `nil` if a prompt would ask: there
  /// is nobody to answer for each.
  func sharedPassword(_ flags: PasswordFlags) throws(CommandFailure) -> SharedPassword? {
    guard try flags.source(environment: environment) != .prompt else { return nil }
    return SharedPassword(try password(flags, of: "the backups"), from: "the password")
  }
}
