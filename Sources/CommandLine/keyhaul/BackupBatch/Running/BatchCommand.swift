import KeyhaulKit
import Reports

/// A command that processes one backup, or many in one call.
protocol BatchCommand: TabularCommand, DecryptingCommand, Sendable {
  /// The backups and folders that the user named.
  var paths: [String] { get set }
  var many: BatchOptions { get }
  /// The output file; `nil` if the result goes to standard output.
  var output: String? { get }

  /// Returns the command that lists the backups in folders, for a call without an argument.
  func listing(of folders: [String]) throws -> any BatchCommand
  /// Whether this command itself lists backups.
  static var listsBackups: Bool { get }
  /// Returns the same command for one backup, with a JSON document on standard output.
  func command(for path: String) -> Self
  /// Processes the backup that was named.
  func runSingle(in session: Session) throws -> CommandExitStatus
  /// Returns the requested case report; `nil` if none was requested.
  func caseRequest() throws(CommandError) -> CaseOptions.Request?
  /// Returns the same command without an output file and without a case report.
  func withoutOutput() -> Self
  /// Rejects flags that do not work with many backups.
  func validateBatch() throws(CommandError)
  /// Warns if a call with several arguments was probably meant differently. Called after all checks.
  func warnAboutArguments(in session: Session) throws(CommandError)
  /// The flags that select what is shown of a backup: "--list".
  var suggestedFlags: [String] { get }
  /// Returns the parameters that affect a result, except the backup and its password: "--list", "--to new-phone r17".
  func resultParameters(in session: Session) throws -> [String]
  /// Returns the contents of files and the identities of devices that affect a result, each with its flag.
  func inputs(in session: Session) throws -> [(flag: String, content: [UInt8])]
  /// Whether the command tries an available password.
  var usesPassword: Bool { get }
  /// Whether the command needs the password of an encrypted backup.
  var needsPassword: Bool { get }

  /// The rows of the document for one backup; `nil` if it has none.
  var rows: FieldTable? { get }
  /// The flags to suggest if the document has no rows.
  static var rowsAdvice: String { get }

  /// Whether an argument may be the name of a device.
  static var acceptsDevices: Bool { get }
  /// The CSV columns with values from the command's documents.
  static var csvColumns: [ResultColumn] { get }
  /// The text columns with values from the command's documents.
  static var textColumns: [ResultTextColumn] { get }
  /// Returns the result word for a document and exit code; `nil` if the exit code's own word applies.
  static func result(in document: JSONValue, code: Int32) -> BackupResult?
  /// Returns the reason for a result that is only partly good; `nil` if its warnings state it.
  static func reason(in document: JSONValue, code: Int32) -> String?
  /// Returns the reason why a backup with exit code 0 needs attention, as a sentence; `nil` if it needs none.
  static func note(on result: BatchResult) -> String?
}

extension BatchCommand {
  static var acceptsDevices: Bool { false }
  static var listsBackups: Bool { false }
  static var textColumns: [ResultTextColumn] { [] }
  func caseRequest() throws(CommandError) -> CaseOptions.Request? { nil }
  func withoutOutput() -> Self { self }
  static func reason(in _: JSONValue, code _: Int32) -> String? { nil }
  static func note(on _: BatchResult) -> String? { nil }
  func warnAboutArguments(in _: Session) throws(CommandError) {}
  var usesPassword: Bool { true }
  func inputs(in _: Session) throws -> [(flag: String, content: [UInt8])] { [] }

  /// Runs the command for the named backup, or for each of many.
  func run(in session: Session) throws -> CommandExitStatus {
    guard !paths.isEmpty || many.pathsFrom != nil else { return try listKnownBackups(in: session) }
    if let request = try caseRequest() {
      return try CaseReportRun(self, request, in: session).run()
    }
    guard try isForManyBackups(session) else {
      session.chosenFields = try ChosenFields(fieldOptions, of: rows, advice: Self.rowsAdvice)
      return try runSingle(in: session)
    }
    session.chosenFields = try ChosenFields(fieldOptions, of: BatchResult.table)
    return try BatchRun(self, in: session).run()
  }

  /// Lists the backups that Finder, Apple Devices, iTunes or idevicebackup2 made, for a call without an argument.
  ///
  /// - Throws: `.usage` if there are none, and for any command except `inspect`, because the user must name one.
  private func listKnownBackups(in session: Session) throws -> CommandExitStatus {
    let message = "\(session.commandName) needs a backup\(Self.acceptsDevices ? " or a device" : "")"
    let folders = KnownBackupFolders.all(session.environment)
    guard !folders.isEmpty else {
      let locations = KnownBackupFolders.standardFolders(session.environment).map { UntrustedText.escaped($0) }
      throw CommandError.usage(
        message,
        why: locations.isEmpty ? nil : "there are no backups in \(HumanReadable.list(locations, conjunction: "or"))",
        try: "\(session.commandName) PATH; PATH may also be a mounted macOS or Windows volume")
    }
    if Self.listsBackups { return try Self.run(try listing(of: folders), in: session) }
    if !session.isJSON { _ = try Self.run(try listing(of: folders), in: session) }
    let queue = BackupQueue(folders, pathList: nil)
    var (first, count): (String?, Int) = (nil, 0)
    while let queued = try queue.next() {
      guard queued.fault == nil else { continue }
      first = first ?? queued.path
      count += 1
    }
    throw CommandError.usage(
      message, why: "none was named; \(HumanReadable.count(count, "backup")) \(count == 1 ? "was" : "were") found",
      try: "\(session.commandName) \(ShellQuoting.argument(first, placeholder: "PATH"))")
  }

  private static func run(_ listing: some BatchCommand, in session: Session) throws -> CommandExitStatus {
    session.chosenFields = try ChosenFields(listing.fieldOptions, of: BatchResult.table)
    return try BatchRun(listing, in: session).run()
  }

  /// Returns whether an argument is the name of a virtual device.
  ///
  /// - Parameter home: The device folder; `nil` if none is configured.
  static func isDevice(_ argument: String, home: String?) -> Bool {
    guard let home else { return false }
    let name = argument.hasPrefix("device:") ? argument.dropFirst("device:".count) : argument[...]
    return !name.contains("/") && PathContent(of: "\(home)/\(name)") == .device
  }

  private func isForManyBackups(_ session: Session) throws(CommandError) -> Bool {
    let isPage = common.isHTML || common.isJUnit
    guard let first = paths.first else { return true }
    let isList = paths.count > 1 || many.isGiven || common.isNDJSON || common.isCSV
    if !isPage, !isList {
      // The command itself rejects a name that is also a device's.
      let home = try session.optionalHomeDirectory()
      guard !Self.acceptsDevices || !Self.isDevice(first, home: home) else { return false }
      // Scripts get a list for every folder with backups; users get the only backup in it.
      switch try BackupQueue.content(of: first) {
      case .none: return false
      case .one: return session.isJSON
      case .several: return true
      }
    }
    guard isPage else { return true }
    guard !isList else {
      throw .usage(
        "--format \(common.format?.rawValue ?? "html") works with only one backup",
        why: "\(paths.count > 1 ? "\(paths.count) were given" : "\(many.given ?? "the command") is for many backups")",
        try: "--format text, json, ndjson or csv")
    }
    return false
  }
}

/// Runs a command for one of many backups. Several threads can use it at once.
struct BatchWorker<Command: BatchCommand>: Sendable {
  let command: Command
  /// The full name of the command: "keyhaul inspect".
  let name: String
  /// The name without "keyhaul": "inspect".
  let commandName: String
  let environment: [String: String]
  let parameters: [String]
  /// The digest of the inputs at the start of the run; `nil` without `--resume`.
  var inputsDigest: String?
  let passwords: BatchPasswords
  private let locks = PasswordLocks()
  /// The maximum number of JSON values in a document. A larger one is left out, because documents are kept in memory.
  var maximumValueCount = JSONValue.maximumValueCount

  /// A result, and whether it came from an earlier run.
  struct FinishedBackup: Sendable {
    let result: BatchResult
    let isResumed: Bool
    /// The inputs that must match before the result is used again; `nil` if they changed while the backup was read.
    var inputs: ResumeInputs?
  }

  /// Returns the parameters of a result. A result without a password is not reused once there is one.
  func parameters(hasPassword: Bool) -> [String] { parameters + (hasPassword ? ["password"] : []) }

  func result(for queued: QueuedBackup, _ resumeLog: ResumeLog?) -> FinishedBackup {
    if let fault = queued.fault {
      let ending = Result<CommandExitStatus, CommandError>.failure(fault)
      return FinishedBackup(
        result: result(queued, BackupMetadata(), hasPassword: false, ending: ending, CapturedOutput()),
        isResumed: false)
    }
    if let resumeLog, resumeLog.mayContain(queued.path), let earlier = earlierResult(for: queued, in: resumeLog) {
      return FinishedBackup(result: earlier, isResumed: true)
    }
    let singleCommand = command.command(for: queued.path)
    let output = CapturedOutput()
    let session = session(for: singleCommand, queued, output)
    let ending: Result<CommandExitStatus, CommandError>
    do {
      ending = .success(session.finalStatus(try singleCommand.runSingle(in: session)))
    } catch {
      ending = .failure(session.errorAfterChange(error))
    }
    let metadata = session.backupMetadata ?? BackupMetadata()
    let digest = inputsDigest.flatMap { $0 == (try? currentInputsDigest(of: queued)) ? $0 : nil }
    return FinishedBackup(
      result: result(queued, metadata, hasPassword: !session.availablePasswords.isEmpty, ending: ending, output),
      isResumed: false,
      inputs: digest.map { ResumeInputs(digest: $0, password: session.matchedPassword?.identifier) })
  }

  /// Returns the current digest of all inputs that affect a result, except the backup and its password.
  private func currentInputsDigest(of queued: QueuedBackup) throws -> String {
    let singleCommand = command.command(for: queued.path)
    let session = session(for: singleCommand, queued, CapturedOutput())
    return try ResumeInputs.digest(
      parameters: parameters, inputs: singleCommand.inputs(in: session), singleCommand.accessOptions.decryption,
      in: session
    )
  }

  private func session(for singleCommand: Command, _ queued: QueuedBackup, _ output: CapturedOutput) -> Session {
    Session(
      capturing: output, common: singleCommand.common, commandName: name,
      environment: passwords.environment(from: environment),
      backupPath: queued.path, passwordProvider: passwords)
  }

  /// Returns the earlier result for the backup in its current state; `nil` if there is none.
  private func earlierResult(for queued: QueuedBackup, in resumeLog: ResumeLog) -> BatchResult? {
    guard
      let archive = try? ResolvedBackup.read(
        at: .path(queued.path), storage: command.accessOptions.storage, allowsIncomplete: true)
    else { return nil }
    // The digest does not cover everything that the seal covers, so a backup with a broken seal is checked again.
    guard archive.seal?.violations.isEmpty != false else { return nil }
    let session = session(for: command.command(for: queued.path), queued, CapturedOutput())
    session.backupMetadata = BackupMetadata(archive)
    let parameters = parameters(hasPassword: !session.availablePasswords.isEmpty)
    guard let earlier = resumeLog.result(for: queued.path, parameters: parameters, backupDigest: archive.digest),
      isUnlocked(archive, asIn: earlier.inputs, session)
    else { return nil }
    return earlier.result
  }

  /// Returns whether the available passwords decrypt a backup as those of the earlier run did.
  ///
  /// A password is recognized when it decrypts a backup of an earlier run. It then counts as the earlier run's password
  /// for all backups, so only one key per password is derived. Nothing about a password is stored.
  private func isUnlocked(_ archive: BackupArchive, asIn inputs: ResumeInputs, _ session: Session) -> Bool {
    let passwords = session.availablePasswords
    guard command.usesPassword, !passwords.isEmpty else { return true }
    guard let identifier = inputs.password else { return !archive.isEncrypted && !archive.hasFalseClaim }
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

  private func result(
    _ queued: QueuedBackup, _ metadata: BackupMetadata, hasPassword: Bool,
    ending: Result<CommandExitStatus, CommandError>,
    _ output: CapturedOutput
  ) -> BatchResult {
    let entry = queued.fault == nil ? BackupDirectory.entry(of: queued.path) : nil
    var metadata = metadata
    // A backup that could not be opened may still have readable property lists.
    if metadata == BackupMetadata(), let entry { metadata = BackupMetadata(entry) }
    let (status, failure): (CommandExitStatus, CommandError?)
    switch ending {
    case .success(let finalStatus): (status, failure) = (finalStatus, nil)
    case .failure(let error): (status, failure) = (error.status, error)
    }
    var warnings = output.warnings
    let document = try? JSONValue(parsing: output.result, acceptingAtMost: maximumValueCount)
    if document == nil, !output.result.isEmpty {
      warnings.append(
        CapturedOutput.Warning(
          "its result is left out here", why: "it is too large for a combined result",
          try: "\(name) \(ShellQuoting.argument(queued.path, placeholder: "ARCHIVE"))"))
    }
    return BatchResult(
      verb: commandName, parameters: parameters(hasPassword: hasPassword), path: queued.path, metadata: metadata,
      isArchivedCopy: entry?.isArchivedCopy ?? false, status: status, failure: failure, warnings: warnings,
      document: document, result: document.flatMap { Command.result(in: $0, code: status.code) },
      reason: document.flatMap { Command.reason(in: $0, code: status.code) })
  }
}

/// Locks for the names of passwords. One thread at a time tries the passwords for a name, and the other threads reuse
/// its result.
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
