import KeyhaulKit
import SystemPackage

extension Session {
  /// Reads a password or passcode from the source that the user named, or asks for it.
  ///
  /// - Parameters:
  ///   - flags: The flags that name the source.
  ///   - subject: The backup or device that the secret belongs to, as the user named it: "family.backup".
  ///   - isNew: Whether the secret is being set. A prompt then asks twice, as it does for every new password or passcode.
  /// - Throws: `.wrongPassword` if the secret is empty; `.needsPassword` if none was given and Keyhaul cannot ask.
  func password<Tag>(
    _ flags: SecretFlags<Tag>, of subject: String, isNew: Bool = false
  ) throws(CommandError) -> Secret {
    let source = try flags.source(environment: environment)
    if source == .prompt { return try promptedPassword(flags.kind, of: subject, isNew: isNew) }
    let bytes = try read(source, kind: flags.kind, subject: subject)
    if !flags.kind.isReadVerbatim { bytes.dropTrailingNewline() }
    if flags.kind.dropsByteOrderMark(isNew: isNew), bytes.dropByteOrderMark() {
      info("\(UntrustedText.escaped(subject)): the byte order mark before the \(flags.kind.noun) was ignored.")
    }
    return try checkedPassword(bytes.secret(), kind: flags.kind, subject: subject)
  }

  /// Reads a password from a source of a password list.
  func password(from source: SecretSource, of subject: String) throws(CommandError) -> Secret {
    let bytes = try read(source, kind: .password, subject: subject)
    bytes.dropTrailingNewline()
    return try checkedPassword(bytes.secret(), kind: .password, subject: subject)
  }

  /// Reads the secret of an item without changing its bytes. A typed line has no newline.
  ///
  /// - Parameter isPublic: Whether anyone may read the source, as for a certificate.
  func itemSecret<Tag>(
    _ flags: SecretFlags<Tag>, of subject: String, isPublic: Bool = false
  ) throws(CommandError) -> SensitiveBytes {
    let source = try flags.source(environment: environment)
    guard source == .prompt else {
      return try read(source, kind: flags.kind, subject: subject, isPublic: isPublic).sensitiveBytes()
    }
    let secret = try terminal(for: flags.kind, of: subject).secret(promptText("Secret of \(subject)"))
    return secret.withBytes { SensitiveBytes(copying: $0) }
  }

  /// Reads the device key of a backup's source device.
  func deviceKey(from source: SecretSource, of subject: String) throws(CommandError) -> DeviceKey {
    let bytes = try read(source, kind: .deviceKey, subject: subject)
    do {
      return try DeviceKey(bytes.secret())
    } catch {
      throw .usage("this is not a device key for \(subject)", why: error.reason, try: "the 0x835 key as raw bytes")
    }
  }

  /// Reads the file with the class keys of a device.
  func classKeys(from path: String, of subject: String) throws(CommandError) -> SensitiveBytes {
    try read(path == "-" ? .standardInput : .file(path), kind: .classKeys, subject: subject).sensitiveBytes()
  }

  /// Rejects a password that is empty or has a zero byte.
  func checkedPassword(
    _ password: consuming Secret, kind: SecretKind, subject: String
  ) throws(CommandError) -> Secret {
    guard !password.isEmpty else {
      throw CommandError(
        .wrongPassword, "the \(kind.noun) of \(subject) is empty",
        why: "the line is empty",
        try: kind.flags)
    }
    let hasZero = password.withBytes { $0.contains(0) }
    guard !hasZero else {
      throw CommandError(
        .wrongPassword, "the \(kind.noun) of \(subject) cannot be right",
        why: "it contains a zero byte, like UTF-16 text",
        try: "a file in UTF-8")
    }
    return password
  }

  /// Returns the error for a secret that was not given and cannot be asked for.
  func missingSecretError(_ kind: SecretKind, of subject: String, why: String) -> CommandError {
    CommandError(
      .needsPassword, "\(subject) needs a \(kind.noun)", why: why,
      try: isPartOfBatch ? "\(kind.flags); --passwords FILE for different passwords" : kind.flags)
  }

  // MARK: Files, descriptors, commands

  private func read(
    _ source: SecretSource, kind: SecretKind, subject: String, isPublic: Bool = false
  ) throws(CommandError) -> SecureInputBuffer {
    switch source {
    case .descriptor(let number):
      return try drain(number, name: "file descriptor \(number)", kind: kind, of: subject)
    case .standardInput:
      try claimStandardInput(for: "the \(kind.noun)")
      return try drain(0, name: "standard input", kind: kind, of: subject)
    case .file(let path):
      return try readFile(path, kind: kind, subject: subject, isPublic: isPublic)
    case .command(let command):
      return try SecretCommand.output(
        of: command, kind: kind, subject: subject, terminal: terminalForCommand())
    case .prompt:
      throw missingSecretError(kind, of: subject, why: "no source was given")
    }
  }

  private func readFile(
    _ path: String, kind: SecretKind, subject: String, isPublic: Bool
  ) throws(CommandError) -> SecureInputBuffer {
    let system = FileSystem.real
    let file: OwnedFileDescriptor
    do throws(Errno) {
      // Opening a named pipe waits for its writer, so the first signal must end the program.
      file = try Interruption.exitingImmediatelyOnSignal { () throws(Errno) in try system.openForReading(path, .waits) }
    } catch {
      throw Self.readError(path, error, kind: kind, of: subject)
    }
    let descriptor = file.raw
    // 0o044 are the POSIX read permissions of group and others.
    if !isPublic, let status = try? system.status(of: descriptor), status.kind == .file,
      status.permissions & 0o044 != 0
    {
      warn(
        "other users can read \(path)", why: "they can see the \(kind.noun) of \(subject) in it",
        try: "chmod 600 \(ShellQuoting.quote(path))")
    }
    let bytes = try drain(descriptor.rawValue, name: path, kind: kind, of: subject)
    try? file.close(system)
    return bytes
  }

  private func drain(
    _ descriptor: Int32, name: String, kind: SecretKind, of subject: String
  ) throws(CommandError) -> SecureInputBuffer {
    do {
      return try SecretReader.readToEnd(descriptor)
    } catch {
      switch error {
      case .system(let reason): throw Self.readError(name, reason, kind: kind, of: subject)
      case .overLimit: throw SecretReader.overLimitError(name, kind: kind)
      case .interrupted(let failure): throw failure
      }
    }
  }

  private static func readError(
    _ name: String, _ error: Errno, kind: SecretKind, of subject: String
  ) -> CommandError {
    CommandError(
      error.isNotFound ? .notFound : .failed, "cannot read the \(kind.noun) of \(subject)",
      why: "\(name): \(error.reason)", try: error.isNotFound ? "check the path" : kind.flags, of: error)
  }
}
