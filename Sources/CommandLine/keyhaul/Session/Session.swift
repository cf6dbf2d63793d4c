import KeyhaulKit
import SystemPackage

/// A running command's connection to its user: it prints results and messages, shows progress and asks questions.
///
/// Results go to standard output, everything else to standard error.
final class Session {
  // MARK: The command

  let common: CommonOptions
  /// The name of the command: "keyhaul restore". Shown to a process that finds a device busy.
  let commandName: String
  let environment: [String: String]
  /// The fields to print of a document's rows; `nil` if the complete document is printed.
  var chosenFields: ChosenFields?

  // MARK: The output

  /// The style of results.
  let resultStyle: TextStyle
  /// The style of messages.
  let messageStyle: TextStyle
  let resultIsOnTerminal: Bool
  private let messagesAreOnTerminal: Bool
  private let results: BufferedOutput
  private let messages: BufferedOutput
  private let terminalPath: String
  /// Whether part of a result was written to standard output.
  private(set) var hasPrinted = false
  /// The number of status lines written so far.
  private var statusLineCount = 0
  /// The device folders that suggested commands must name, because a device's name is not enough to find it.
  var deviceFoldersToShow: Set<String> = []

  // MARK: One session of a batch

  /// The captured output if this session is part of a batch, in which case it never asks; `nil` if the session prints.
  private let capturedOutput: CapturedOutput?
  /// The passwords for the backups of the batch; `nil` if this session is not part of a batch.
  let passwordProvider: (any PasswordProvider)?
  /// The path of the backup if this session is part of a batch; otherwise empty.
  let backupPath: String
  /// The backup's statements about itself, once it was opened.
  var backupMetadata: BackupMetadata?
  /// The provided password that decrypted the backup; `nil` if none did.
  var matchedPassword: ReusablePassword?

  // MARK: The command's effects

  /// The final change that the command has made. Later errors do not undo it.
  var committedChange: CommittedChange?
  /// Whether a replaced backup could not be removed, so that the change is final but not complete.
  var hasLeftOldBackup = false
  /// Whether the command read a backup that has changed since it was sealed, so that it cannot report full success.
  var hasReadChangedBackup = false
  /// The purpose for which standard input was reserved, because it can be read only once; `nil` if it is free.
  private var standardInputPurpose: String?
  /// The file locks of the backups that the command uses.
  private var locks: [(path: String, lock: BackupLock)] = []

  /// Creates the session of a command that prints.
  ///
  /// - Parameters:
  ///   - common: The options of all commands.
  ///   - commandName: The name of the command: "keyhaul restore".
  ///   - environment: The environment variables.
  ///   - output: The descriptor for results.
  ///   - errors: The descriptor for everything else.
  ///   - terminalPath: The device on which prompts are shown.
  init(
    common: CommonOptions, commandName: String = "keyhaul", environment: [String: String], output: Int32 = 1,
    errors: Int32 = 2, terminalPath: String = "/dev/tty"
  ) {
    capturedOutput = nil
    passwordProvider = nil
    backupPath = ""
    self.common = common
    self.commandName = commandName
    self.environment = environment
    self.terminalPath = terminalPath
    results = BufferedOutput(descriptor: output)
    messages = BufferedOutput(descriptor: errors)
    let settings = TerminalSettings(environment: environment, color: common.color)
    resultIsOnTerminal = TerminalDevice.isTerminal(output)
    messagesAreOnTerminal = TerminalDevice.isTerminal(errors)
    resultStyle = settings.style(
      isTerminal: resultIsOnTerminal, terminalWidth: TerminalDevice.reportedWidth(of: output))
    messageStyle = settings.style(
      isTerminal: messagesAreOnTerminal, terminalWidth: TerminalDevice.reportedWidth(of: errors))
  }

  /// Creates the session for one backup of a batch. It captures its output and never asks.
  ///
  /// - Parameters:
  ///   - capturedOutput: Receives the output.
  ///   - common: The options, with JSON output and without prompts.
  ///   - commandName: The name of the command.
  ///   - environment: The environment variables.
  ///   - backupPath: The path of the backup.
  ///   - passwordProvider: The passwords for the backups.
  init(
    capturing capturedOutput: CapturedOutput, common: CommonOptions, commandName: String, environment: [String: String],
    backupPath: String, passwordProvider: any PasswordProvider
  ) {
    self.capturedOutput = capturedOutput
    self.passwordProvider = passwordProvider
    self.backupPath = backupPath
    self.common = common
    self.commandName = commandName
    self.environment = environment
    terminalPath = ""
    results = BufferedOutput(descriptor: -1)
    messages = BufferedOutput(descriptor: -1)
    resultIsOnTerminal = false
    messagesAreOnTerminal = false
    let settings = TerminalSettings(environment: environment, color: .never)
    resultStyle = settings.style(isTerminal: false, terminalWidth: nil)
    messageStyle = resultStyle
  }

  /// Whether this session processes one backup of a batch. Its document then omits measurements of this run, so that two
  /// runs give equal documents.
  var isPartOfBatch: Bool { capturedOutput != nil }

  /// Whether the result is one JSON document.
  var isJSON: Bool { common.isJSON }

  // MARK: Results

  /// Prints a line of the result. Prints nothing with `--json`, where the document is the result.
  func print(_ line: String = "", _ color: Color? = nil) throws(CommandError) {
    guard !isJSON else { return }
    try write(resultStyle.painted(resultStyle.adapted(line), color) + "\n")
  }

  func print(_ table: Table) throws(CommandError) {
    guard !isJSON else { return }
    for line in table.lines(style: resultStyle) { try write(line + "\n") }
  }

  /// Writes the JSON document that is the result.
  ///
  /// - Parameter path: The file to write; standard output for "-" and `nil`.
  func writeDocument(_ document: JSONValue, to path: String? = nil) throws(CommandError) {
    try write(to: path) { (write) throws(CommandError) in
      try (chosenFields?.rows(of: document) ?? document).forEachChunk(write)
    }
  }

  /// Writes a chunk of a document that is produced piece by piece. Ctrl-C ends it between two chunks.
  func writeChunk(_ bytes: UnsafeRawBufferPointer) throws(CommandError) {
    try Interruption.check()
    try writeRaw(bytes)
  }

  /// Writes bytes of a result unchanged, such as a requested secret or a script.
  func writeRaw(_ bytes: some Collection<UInt8>) throws(CommandError) {
    if let capturedOutput { return capturedOutput.add(bytes) }
    hasPrinted = true
    do {
      try results.write(bytes)
    } catch {
      throw Self.writeFailure(error)
    }
  }

  func flush() throws(CommandError) {
    do {
      try results.flush()
    } catch {
      throw Self.writeFailure(error)
    }
  }

  private func write(_ text: String) throws(CommandError) { try writeRaw(Array(text.utf8)) }

  static func writeFailure(_ error: Errno) -> CommandError {
    if error.isClosedPipe {
      var failure = CommandError(.closedPipe, "the program that reads the result has ended")
      (failure.isSilent, failure.isClosedPipe) = (true, true)
      return failure
    }
    if error == .interrupted, let signal = Interruption.pending {
      return Interruption.failure(signal, state: "the result was not written completely")
    }
    return CommandError(
      .failed, "could not write the result", why: "standard output: \(error.reason)",
      try: error.isDiskFull ? "free space and run it again" : nil, of: error)
  }

  // MARK: Messages

  /// Prints a message about the progress of the command, except with `-q` or `--json`.
  func info(_ line: String) {
    guard !common.quiet, !isJSON else { return }
    writeLines(Self.wrapped(line, isOnTerminal: messagesAreOnTerminal, style: messageStyle))
  }

  /// Prints a detail with `-v`, or at level 2 with `-vv`. Prints nothing with `--json`.
  func debug(_ line: @autoclosure () -> String, level: Int = 1) {
    guard common.verbose >= level, !isJSON else { return }
    writeLines([line()])
  }

  /// Prints a warning. The command continues.
  ///
  /// - Parameters:
  ///   - message: A description of what happened.
  ///   - why: The cause.
  ///   - advice: The action to try.
  ///   - errno: The error number of a failed system call; `nil` if no call failed. If it stands for a shortage of file
  ///     descriptors or memory, advice about that replaces `advice`.
  ///   - ignoresQuiet: Whether to print it even with `-q`, because a user who misses it would trust something unsafe.
  func warn(
    _ message: String, why: String? = nil, try advice: String? = nil, of errno: Errno? = nil, ignoresQuiet: Bool = false
  ) {
    let advice = CommandError.shortageAdvice(errno) ?? advice.map(addingHomeOption(to:))
    if let capturedOutput { return capturedOutput.add(.init(message, why: why, try: advice)) }
    guard ignoresQuiet || !common.quiet else { return }
    if isJSON {
      let warning = Self.warningJSON(message, why: why, advice: advice)
      return writeMessage(warning.compactText() + "\n")
    }
    writeWarningPart("warning: ", message, .yellow)
    if let why { writeWarningPart("  why: ", why) }
    if let advice { writeWarningPart("  try: ", advice) }
  }

  private static func warningJSON(_ message: String, why: String?, advice: String?) -> JSONValue {
    var fields: [(String, JSONValue)] = [("message_type", "warning"), ("message", .string(message))]
    if let why { fields.append(("why", .string(why))) }
    if let advice { fields.append(("try", .string(advice))) }
    return .object(fields)
  }

  private func writeWarningPart(_ label: String, _ text: String, _ color: Color? = nil) {
    let columns = min(messageStyle.width, CommandError.maximumWidth)
    let lines = WordWrap.labeled(label, messageStyle.adapted(UntrustedText.escaped(text)), columns: columns)
    writeMessage(lines.map { messageStyle.painted($0, color) + "\n" }.joined())
  }

  /// Returns the exit status of a command that ended with a given status. `ok` and `partial` become `doneBut` if an old
  /// backup remains. Otherwise they become `partial` if the command read a backup that has changed since it was sealed.
  func finalStatus(_ status: CommandExitStatus) -> CommandExitStatus {
    switch status {
    case .ok, .partial: hasLeftOldBackup ? .doneBut : hasReadChangedBackup ? .partial : status
    default: status
    }
  }

  /// Prints an error and returns its exit status.
  func fail(_ failure: CommandError) -> CommandExitStatus {
    try? results.flush()
    guard !failure.isSilent else { return failure.status }
    var failure = failure.withShortageAdvice
    failure.advice = failure.advice.map(addingHomeOption(to:))
    if isJSON {
      writeMessage(failure.json.compactText() + "\n")
    } else {
      writeMessage(failure.lines(style: messageStyle, showsCode: common.verbose > 0).map { $0 + "\n" }.joined())
    }
    return failure.status
  }

  private func writeLines(_ lines: [String]) {
    writeMessage(lines.map { messageStyle.adapted($0) + "\n" }.joined())
  }

  private func writeMessage(_ text: String) {
    guard capturedOutput == nil else { return }
    // If standard error cannot be written, there is no other place to report it.
    try? results.flush()
    try? messages.write(Array(text.utf8))
    try? messages.flush()
  }

  // MARK: Progress

  /// Shows the progress of slow work: status lines with `--json`, otherwise a line on the terminal. Shows nothing with
  /// `-q` or `--no-progress`, and in a batch. The line is also left out without a terminal, and with `-v`.
  ///
  /// - Parameters:
  ///   - title: The title of the work: "Deriving key: 10,000,000 iterations".
  ///   - phase: The name in status lines: "derive-key".
  ///   - unit: The unit of progress.
  ///   - body: The work, which may report its progress.
  func progress<Result: ~Copyable, Failure: Error>(
    _ title: String, phase: String, unit: ProgressUnit = .step, _ body: (ProgressReport) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let mayShowProgress = capturedOutput == nil && !common.quiet && !common.noProgress
    guard mayShowProgress else { return try body(.ignored) }
    if isJSON { return try body(statusLineReport(phase: phase)) }
    guard messagesAreOnTerminal, common.verbose == 0 else { return try body(.ignored) }
    try? results.flush()
    let line = ProgressLine(title, unit: unit, style: messageStyle, descriptor: messages.descriptor)
    defer { line.end() }
    return try body(ProgressReport { done, total in line.update(done: done, total: total) })
  }

  /// Writes the first status line of some work, and returns a report that writes the others.
  private func statusLineReport(phase: String) -> ProgressReport {
    let status = StatusLines(phase: phase) { line in
      guard self.statusLineCount < StatusLines.maximumCount else { return }
      self.statusLineCount += 1
      self.writeMessage(line)
    }
    status.update(done: nil, total: nil)
    return ProgressReport { done, total in status.update(done: done, total: total) }
  }

  // MARK: Asking

  /// Returns the terminal to ask on; `nil` if there is none, or if asking is not allowed.
  func terminal() -> TerminalDevice? {
    common.noInput || isPartOfBatch ? nil : TerminalDevice(path: terminalPath)
  }

  /// Returns the terminal on which a user's command may prompt, even if Keyhaul itself may not.
  func terminalForCommand() -> TerminalDevice? { TerminalDevice(path: terminalPath) }

  /// The reason why Keyhaul cannot ask.
  var missingTerminal: String {
    if isPartOfBatch { return "Keyhaul does not ask while it reads several backups" }
    return common.noInput
      ? "--no-input prevents Keyhaul from asking" : "Keyhaul cannot ask, because there is no terminal"
  }

  /// Reserves standard input for one use.
  ///
  /// - Parameter purpose: The use, for messages: "the backup".
  /// - Throws: `.usage` if standard input already has a use.
  func claimStandardInput(for purpose: String) throws(CommandError) {
    if let earlierPurpose = standardInputPurpose {
      guard earlierPurpose != purpose else {
        throw .usage(
          "standard input cannot be \(purpose) twice", why: "it can be read only once", try: "a file for one")
      }
      throw .usage(
        "standard input cannot be both \(earlierPurpose) and \(purpose)", why: "it can be read only once",
        try: "a file for one of them")
    }
    standardInputPurpose = purpose
  }
}

// MARK: Locks

extension Session {
  /// Takes the file lock of a backup until the session ends.
  ///
  /// - Parameter name: The backup's name in messages.
  /// - Throws: `.busy` if another process still uses the backup after the time given by `--wait`.
  func lock(_ path: String, named name: String, for access: BackupLock.Access) throws(CommandError) {
    // A lock for writing also allows reading.
    let isLocked = locks.contains { $0.path == path && ($0.lock.access == access || access == .reading) }
    guard !isLocked else { return }
    do throws(KeyhaulError) {
      let lock = try BackupLock.acquire(
        path, for: access, wait: common.wait.duration, shouldContinue: { Interruption.pending == nil })
      if let lock { locks.append((path, lock)) }
    } catch {
      try Interruption.check()
      throw CommandError(backup: error, name: name)
    }
  }
}

// MARK: Suggested commands

extension Session {
  /// Adds `--home` to the command that a text suggests, if the command would not find the device without it.
  ///
  /// If the user named devices of several folders, the command's folder is unknown, and the text stays unchanged. Text
  /// after a quotation mark also stays unchanged, because it may be a file name that an attacker chose.
  func addingHomeOption(to text: String) -> String {
    guard deviceFoldersToShow.count == 1, let folder = deviceFoldersToShow.first else { return text }
    let option = "--home \(ShellQuoting.argument(folder, placeholder: "DIR"))"
    for name in ["device", "restore"] {
      guard let command = text.firstRange(of: "keyhaul \(name) "), !text[..<command.lowerBound].contains("'") else {
        continue
      }
      var text = text
      text.replaceSubrange(command, with: "keyhaul \(option) \(name) ")
      return text
    }
    return text
  }
}

// MARK: Computations

extension Session {
  /// Runs a computation on data that was read. The first signal ends the program immediately, because nothing needs
  /// cleanup. This does not apply after a change, or to a session that is part of a batch.
  func computing<Value: ~Copyable, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    guard !isPartOfBatch, committedChange == nil else { return try body() }
    return try Interruption.exitingImmediatelyOnSignal(body)
  }

  /// Shows progress while a key is derived, and lets Ctrl-C stop it.
  func deriving<Value: ~Copyable, Failure: Error>(
    iterationCount: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let title = "Deriving key: \(HumanReadable.grouped(iterationCount)) iterations"
    return try progress(title, phase: "derive-key") { (report) throws(Failure) in
      try body { done, total in
        report.update(done: done, total: total)
        return Interruption.pending == nil
      }
    }
  }
}

// MARK: Announcements

extension Session {
  /// Prints a line about a change that the command has made or would make. Prints nothing with `-q`.
  func announce(_ line: String) throws(CommandError) {
    guard !common.quiet else { return }
    for line in Self.wrapped(line, isOnTerminal: resultIsOnTerminal, style: resultStyle) { try print(line) }
  }

  /// Returns a line, wrapped between words if it is too long for the terminal. An indented line is not wrapped.
  static func wrapped(_ line: String, isOnTerminal: Bool, style: TextStyle) -> [String] {
    guard isOnTerminal, !line.hasPrefix(" "), DisplayWidth.columns(of: line) > style.width else { return [line] }
    return WordWrap.lines(of: line, columns: style.width)
  }
}
