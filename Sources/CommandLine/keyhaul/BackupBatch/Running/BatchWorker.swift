import KeyhaulKit

/// Runs a command for one of many backups. Several threads can use it at the same time.
struct BatchWorker<Command: BatchCommand>: Sendable {
  let command: Command
  /// The full name of the command: "keyhaul inspect".
  let commandName: String
  /// The name without "keyhaul": "inspect".
  let verb: String
  let environment: [String: String]
  let parameters: [String]
  /// The digest of the inputs at the start of the run; `nil` without `--resume`.
  var inputsDigest: String?
  let passwords: BatchPasswords
  private let locks = PasswordLocks()
  /// The maximum number of JSON values in a document. A larger document is left out, because documents are kept in memory.
  var maximumValueCount = JSONValue.maximumValueCount

  /// A result, and whether it came from an earlier run.
  struct FinishedBackup: Sendable {
    let result: BatchResult
    let isResumed: Bool
    /// The condition under which the next run uses a new result; `nil` if it must not use the result.
    var resumeCondition: ResumeCondition?
  }

  /// Returns the parameters of a result. They state whether a password was available, so that a result without a password
  /// is not used again once a password is available.
  func parameters(hasPassword: Bool) -> [String] { parameters + (hasPassword ? ["password"] : []) }

  /// Returns the result for a backup: the earlier result if it still applies, otherwise a new result.
  ///
  /// - Parameter resumeLog: The earlier results; `nil` without `--resume`.
  func result(for queued: QueuedBackup, resumingFrom resumeLog: ResumeLog?) -> FinishedBackup {
    if let fault = queued.fault {
      let result = makeResult(
        for: queued, metadata: BackupMetadata(), hasPassword: false, completion: .failure(fault),
        output: CapturedOutput())
      return FinishedBackup(result: result, isResumed: false)
    }
    if let resumeLog, resumeLog.mayContain(queued.path), let earlier = earlierResult(for: queued, in: resumeLog) {
      return FinishedBackup(result: earlier, isResumed: true)
    }
    return newResult(for: queued)
  }

  /// Runs the command for a backup.
  private func newResult(for queued: QueuedBackup) -> FinishedBackup {
    let singleCommand = command.command(for: queued.path)
    let output = CapturedOutput()
    let session = makeSession(for: singleCommand, reading: queued, capturing: output)
    let completion: Result<CommandExitStatus, CommandError>
    do {
      completion = .success(session.finalStatus(try singleCommand.runSingle(in: session)))
    } catch {
      completion = .failure(session.errorAfterChange(error))
    }
    let result = makeResult(
      for: queued, metadata: session.backupMetadata ?? BackupMetadata(),
      hasPassword: !session.availablePasswords.isEmpty, completion: completion, output: output)
    var finished = FinishedBackup(result: result, isResumed: false)
    // If an input changed while the backup was read, the next run must not use the result.
    if let inputsDigest, inputsDigest == (try? currentInputsDigest(of: queued)) {
      finished.resumeCondition = ResumeCondition(
        inputsDigest: inputsDigest, passwordIdentifier: session.matchedPassword?.identifier)
    }
    return finished
  }

  /// Returns the current digest of all inputs that affect a result, except the backup and its password.
  private func currentInputsDigest(of queued: QueuedBackup) throws -> String {
    let singleCommand = command.command(for: queued.path)
    let session = makeSession(for: singleCommand, reading: queued, capturing: CapturedOutput())
    return try ResumeCondition.digest(
      parameters: parameters, inputs: singleCommand.inputs(in: session), singleCommand.accessOptions.decryption,
      in: session
    )
  }

  private func makeSession(
    for singleCommand: Command, reading queued: QueuedBackup, capturing output: CapturedOutput
  ) -> Session {
    Session(
      capturing: output, common: singleCommand.common, commandName: commandName,
      environment: passwords.environment(from: environment),
      backupPath: queued.path, passwordProvider: passwords)
  }

  /// Returns the earlier result for the backup in its current state; `nil` if there is no such result.
  private func earlierResult(for queued: QueuedBackup, in resumeLog: ResumeLog) -> BatchResult? {
    guard
      let archive = try? ResolvedBackup.read(
        at: .path(queued.path), storage: command.accessOptions.storage, acceptsPartialBackup: true)
    else { return nil }
    let metadata = BackupMetadata(archive)
    // The digest does not cover everything that the seal covers, so a backup with a broken seal is checked again.
    guard !metadata.isSealBroken else { return nil }
    let session = makeSession(for: command.command(for: queued.path), reading: queued, capturing: CapturedOutput())
    session.backupMetadata = metadata
    let parameters = parameters(hasPassword: !session.availablePasswords.isEmpty)
    guard let earlier = resumeLog.result(for: queued.path, parameters: parameters, backupDigest: archive.digest),
      hasSameAccess(to: archive, as: earlier.condition, in: session)
    else { return nil }
    return earlier.result
  }

  /// Returns whether the available passwords give the same access to a backup as the passwords of the earlier run.
  ///
  /// The earlier run stored a random identifier instead of the password. A password that decrypts this backup now gets the
  /// identifier, so that other results with the same identifier require no key derivation.
  private func hasSameAccess(
    to archive: BackupArchive, as condition: ResumeCondition, in session: Session
  ) -> Bool {
    let passwords = session.availablePasswords
    guard command.usesPassword, !passwords.isEmpty else { return true }
    // No password decrypted the backup in the earlier run. If the backup has a password, it may be available now.
    guard let identifier = condition.passwordIdentifier else { return !archive.keybagHasPassword }
    return locks.withLock(for: identifier) {
      if passwords.contains(where: { $0.isKnown(as: identifier) }) { return true }
      let loaded = LoadedBackup(name: session.backupPath, archive: archive)
      let unlocker = BackupUnlocker(loaded, command.accessOptions.decryption, in: session)
      guard (try? unlocker.key(command.accessOptions.password)) != nil, let password = session.matchedPassword else {
        return false
      }
      password.addIdentifier(identifier)
      return true
    }
  }

  /// Creates a result.
  ///
  /// - Parameters:
  ///   - queued: The backup.
  ///   - metadata: The metadata; empty if the backup could not be opened.
  ///   - hasPassword: Whether a password was available.
  ///   - completion: The exit status, or the error that ended the command.
  ///   - output: The output of the command.
  private func makeResult(
    for queued: QueuedBackup, metadata: BackupMetadata, hasPassword: Bool,
    completion: Result<CommandExitStatus, CommandError>, output: CapturedOutput
  ) -> BatchResult {
    let entry = queued.fault == nil ? BackupDirectory.entry(of: queued.path) : nil
    var metadata = metadata
    // A backup that could not be opened may still have readable property lists.
    if metadata == BackupMetadata(), let entry { metadata = BackupMetadata(entry) }
    let (status, failure): (CommandExitStatus, CommandError?) =
      switch completion {
      case .success(let finalStatus): (finalStatus, nil)
      case .failure(let error): (error.status, error)
      }
    let document = output.document(of: queued, by: commandName, acceptingAtMost: maximumValueCount)
    return BatchResult(
      verb: verb, parameters: parameters(hasPassword: hasPassword), path: queued.path, metadata: metadata,
      isArchivedCopy: entry?.isArchivedCopy ?? false, status: status, failure: failure, warnings: output.warnings,
      document: document, result: document.flatMap { Command.result(in: $0, code: status.code) },
      reason: document.flatMap { Command.reason(in: $0, code: status.code) })
  }
}

/// A mutex for each random identifier of a password. One thread at a time tries the passwords for an identifier. The next
/// thread then uses the password that the first thread found.
private final class PasswordLocks: Sendable {
  private final class PasswordLock: Sendable { let lock = Locked(()) }
  private let locks = Locked<[String: PasswordLock]>([:])

  func withLock(for identifier: String, _ body: () -> Bool) -> Bool {
    let passwordLock = locks.withLock { locks in
      if let passwordLock = locks[identifier] { return passwordLock }
      let passwordLock = PasswordLock()
      locks[identifier] = passwordLock
      return passwordLock
    }
    return passwordLock.lock.withLock { _ in body() }
  }
}
