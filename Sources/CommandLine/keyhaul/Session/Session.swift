import KeyhaulKit
import SystemPackage

/// What a verb has of the world around it: where its words go, what it may ask, and what the user wants of both.
///
/// Results go to standard output, everything else to standard error.
final class Session {
  let common: CommonOptions
  /// "keyhaul restore": told to whoever finds a device busy.
  let verb: String
  let environment: [String: String]
  /// How results look.
  let resultStyle: TextStyle
  /// How messages look.
  let messageStyle: TextStyle
  private let results: ByteStream
  private let messages: ByteStream
  private let terminalPath: String
  private let messagesAreOnTerminal: Bool
  private let resultsAreOnTerminal: Bool
  /// What has claimed standard input: it can be read once.
  private var standardInputClaim: String?
  /// Whether standard output was given a part of a result.
  private(set) var hasPrinted = false
  /// What the verb has changed for good; what fails from then on does not undo it.
  var done: DoneChange?
  /// Where its words are kept, of one of many answers: then nothing is printed and nobody is asked.
  private let record: SessionRecord?
  /// What is printed of a document, where fields of its rows were chosen.
  var chosen: ChosenFields?
  /// What opens the backups of a call about many.
  let offers: (any PasswordOffers)?
  /// The backup that it is about, of one of many.
  let subjectPath: String
  /// What that backup says of itself, once it was opened.
  var subject: SubjectFacts?
  /// The offered password that opened that backup; `nil` if none did.
  var openingPassword: SharedPassword?
  /// Whether it read a backup that is known not to be what was sealed: then its answer is not all right.
  var isAboutChangedBackup = false
  /// The folders of devices that calls which are shown have to name, as no device in them is found by its name alone.
  var shownHomes: Set<String> = []
  /// The number of status lines that were written.
  private var statusLineCount = 0
  /// The locks of the backups that the command uses.
  private var locks: [(path: String, lock: BackupLock)] = []
  /// Whether what it replaced is still there, as it could not be removed: then its change stands, and is not all of it.
  var hasLeftReplaced = false

  /// - Parameters:
  ///   - output: The descriptor that results go to.
  ///   - errors: The descriptor that everything else goes to.
  ///   - terminalPath: The device that prompts are shown on.
  init(
    common: CommonOptions, verb: String = "keyhaul", environment: [String: String], output: Int32 = 1,
    errors: Int32 = 2, terminalPath: String = "/dev/tty"
  ) {
    (record, offers, subjectPath) = (nil, nil, "")
    self.common = common
    self.verb = verb
    self.environment = environment
    self.terminalPath = terminalPath
    results = ByteStream(descriptor: output)
    messages = ByteStream(descriptor: errors)
    let settings = TerminalSettings(environment: environment, color: common.color)
    resultsAreOnTerminal = TerminalSettings.isTerminal(output)
    messagesAreOnTerminal = TerminalSettings.isTerminal(errors)
    resultStyle = settings.style(
      isTerminal: resultsAreOnTerminal, terminalWidth: TerminalSettings.reportedWidth(of: output))
    messageStyle = settings.style(
      isTerminal: messagesAreOnTerminal, terminalWidth: TerminalSettings.reportedWidth(of: errors))
  }

  /// One of the many sessions of a call about many backups: its words are kept, and nobody is asked.
  ///
  /// - Parameters:
  ///   - common: Its result is a document, and it asks nothing.
  ///   - path: The backup.
  init(
    recordingTo record: SessionRecord, common: CommonOptions, verb: String, environment: [String: String],
    about path: String, _ offers: any PasswordOffers
  ) {
    (self.record, self.offers, subjectPath) = (record, offers, path)
    (self.common, self.verb, self.environment) = (common, verb, environment)
    terminalPath = ""
    results = ByteStream(descriptor: -1)
    messages = ByteStream(descriptor: -1)
    (resultsAreOnTerminal, messagesAreOnTerminal) = (false, false)
    let settings = TerminalSettings(environment: environment, color: .never)
    resultStyle = settings.style(isTerminal: false, terminalWidth: nil)
    messageStyle = resultStyle
  }

  /// Whether it is one of many: what was measured here and now is left out of its document, so that two runs give the same.
  var isOneOfMany: Bool { record != nil }

  /// Whether the result is one JSON document.
  var isJSON: Bool { common.isJSON }

  var resultIsOnTerminal: Bool { resultsAreOnTerminal }

  // MARK: Results

  /// A line of the result. Nothing under `--json`, where the document is the result.
  func say(_ line: String = "", _ color: Color? = nil) throws(CommandFailure) {
    guard !isJSON else { return }
    try write(resultStyle.painted(resultStyle.adapted(line), color) + "\n")
  }

  func say(_ table: Table) throws(CommandFailure) {
    guard !isJSON else { return }
    for line in table.lines(style: resultStyle) { try write(line + "\n") }
  }

  /// The result as the one document of `--json`.
  func answer(_ document: JSONValue) throws(CommandFailure) {
    try (chosen?.rows(of: document) ?? document).forEachPortion(writePortion)
  }

  /// A portion of a document that is made while it is written: Ctrl-C ends it between two of them.
  func writePortion(_ bytes: UnsafeRawBufferPointer) throws(CommandFailure) {
    try Interruption.check()
    try writeRaw(bytes)
  }

  /// Bytes of a result as they are: a secret that was asked for by name, a script.
  func writeRaw(_ bytes: some Collection<UInt8>) throws(CommandFailure) {
    if let record { return record.add(bytes) }
    hasPrinted = true
    do {
      try results.write(bytes)
    } catch {
      throw Self.writeFailure(error)
    }
  }

  func flush() throws(CommandFailure) {
    do {
      try results.flush()
    } catch {
      throw Self.writeFailure(error)
    }
  }

  private func write(_ text: String) throws(CommandFailure) { try writeRaw(Array(text.utf8)) }

  static func writeFailure(_ error: Errno) -> CommandFailure {
    if error.isClosedPipe {
      var failure = CommandFailure(.signal(Errno.closedPipeSignal), "the program that reads the result has ended")
      (failure.isSilent, failure.isClosedPipe) = (true, true)
      return failure
    }
    if error == .interrupted, let signal = Interruption.pending {
      return Interruption.failure(signal, state: "the result was not written completely")
    }
    return CommandFailure(
      .failed, "could not write the result", why: "standard output: \(error.reason)",
      try: error.isDiskFull ? "free space and run it again" : nil, of: error)
  }

  // MARK: Messages

  /// What happened, in passing; not under `-q`.
  func note(_ line: String) {
    guard !common.quiet, !isJSON else { return }
    tell(Self.wrapped(line, isOnTerminal: messagesAreOnTerminal, style: messageStyle))
  }

  /// Each step, under `-v`; bytes, offsets and timings under `-vv`.
  func detail(_ line: @autoclosure () -> String, level: Int = 1) {
    guard common.verbose >= level, !isJSON else { return }
    tell([line()])
  }

  /// Something that the user should know of, though the work goes on.
  /// - Parameter evenQuiet: Said with `-q` too: whoever does not hear it trusts what cannot be trusted.
  func warn(
    _ message: String, why: String? = nil, try advice: String? = nil, of errno: Errno? = nil, evenQuiet: Bool = false
  ) {
    let advice = CommandFailure.adviceOfShortage(errno) ?? advice.map(completed)
    if let record { return record.add(.init(message, why: why, try: advice)) }
    guard evenQuiet || !common.quiet else { return }
    if isJSON {
      var fields: [(String, JSONValue)] = [("message_type", "warning"), ("message", .string(message))]
      if let why { fields.append(("why", .string(why))) }
      if let advice { fields.append(("try", .string(advice))) }
      writeMessage(JSONValue.object(fields).compactText() + "\n")
      return
    }
    let parts =
      [("warning: ", message)] + (why.map { [("  why: ", $0)] } ?? []) + (advice.map { [("  try: ", $0)] } ?? [])
    for (index, part) in parts.enumerated() {
      let text = messageStyle.adapted(UntrustedText.escaped(part.1))
      let columns = min(messageStyle.width, CommandFailure.widestText)
      let lines = WordWrap.labeled(part.0, text, columns: columns)
      writeMessage(lines.map { messageStyle.painted($0, index == 0 ? .yellow : nil) + "\n" }.joined())
    }
  }

  /// The status that a verb ends with, whose answer may be of a backup that was changed.
  func settled(_ status: CommandStatus) -> CommandStatus {
    switch status {
    case .ok, .partial: hasLeftReplaced ? .doneBut : isAboutChangedBackup ? .partial : status
    default: status
    }
  }

  /// Ends the session with a failure said in the user's form; its status is the program's.
  func fail(_ failure: CommandFailure) -> CommandStatus {
    try? results.flush()
    guard !failure.isSilent else { return failure.status }
    var failure = failure.advisingOfShortage
    failure.advice = failure.advice.map(completed)
    if isJSON {
      writeMessage(failure.json.compactText() + "\n")
    } else {
      writeMessage(failure.lines(style: messageStyle, showsCode: common.verbose > 0).map { $0 + "\n" }.joined())
    }
    return failure.status
  }

  private func tell(_ lines: [String]) {
    writeMessage(lines.map { messageStyle.adapted($0) + "\n" }.joined())
  }

  private func writeMessage(_ text: String) {
    guard record == nil else { return }
    // What cannot be said on standard error can be said nowhere.
    try? results.flush()
    try? messages.write(Array(text.utf8))
    try? messages.flush()
  }

  // MARK: Progress

  /// Does slow work under its name: a line on a terminal, status lines under `--json`, nothing elsewhere.
  ///
  /// - Parameters:
  ///   - title: "Deriving key: 10,000,000 rounds".
  ///   - phase: The name in status lines: "derive-key".
  ///   - unit: What is counted.
  ///   - body: The work; it may tell how far it has come.
  func progress<Result: ~Copyable, Failure: Error>(
    _ title: String, phase: String, unit: ProgressUnit = .step, _ body: (ProgressReport) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if record != nil { return try body(ProgressReport { _, _ in }) }
    if isJSON {
      guard !common.quiet, !common.noProgress else { return try body(ProgressReport { _, _ in }) }
      let status = StatusLines(phase: phase) { line in
        guard self.statusLineCount < StatusLines.maximumCount else { return }
        self.statusLineCount += 1
        self.writeMessage(line)
      }
      status.update(done: nil, total: nil)
      return try body(ProgressReport { done, total in status.update(done: done, total: total) })
    }
    let isWanted = messagesAreOnTerminal && !common.quiet && common.verbose == 0 && !common.noProgress
    guard isWanted else { return try body(ProgressReport { _, _ in }) }
    try? results.flush()
    let line = ProgressLine(title, unit: unit, style: messageStyle, descriptor: messages.descriptor)
    defer { line.end() }
    return try body(ProgressReport { done, total in line.update(done: done, total: total) })
  }

  // MARK: Asking

  /// The terminal to ask on, if there is one and asking is allowed.
  func terminal() -> TerminalDevice? {
    common.noInput || isOneOfMany ? nil : TerminalDevice(path: terminalPath)
  }

  /// Returns the terminal on which a user's command may prompt, even if Keyhaul itself may not.
  func terminalForCommand() -> TerminalDevice? { TerminalDevice(path: terminalPath) }

  /// Why there is none.
  var missingTerminal: String {
    if isOneOfMany { return "Keyhaul does not ask while it reads several backups" }
    return common.noInput
      ? "--no-input prevents Keyhaul from asking" : "Keyhaul cannot ask, because there is no terminal"
  }

  /// Takes standard input for one purpose.
  ///
  /// - Parameter purpose: "--password-file -", "the archive".
  func claimStandardInput(for purpose: String) throws(CommandFailure) {
    if let first = standardInputClaim {
      guard first != purpose else {
        throw .usage("standard input cannot be \(first) twice", why: "it can be read only once", try: "a file for one")
      }
      throw .usage(
        "standard input cannot be both \(first) and \(purpose)", why: "it can be read only once",
        try: "a file for one of them")
    }
    standardInputClaim = purpose
  }
}

extension Session {
  /// Locks a backup until the session ends.
  ///
  /// - Parameter name: The backup's name in messages.
  /// - Throws: `.busy` if another process still uses the backup after the time given by `--wait`.
  func lock(_ path: String, named name: String, for access: BackupLock.Access) throws(CommandFailure) {
    let isLocked = locks.contains { $0.path == path && ($0.lock.access == access || access == .reading) }
    guard !isLocked else { return }
    do throws(KeyhaulError) {
      let lock = try BackupLock.acquire(
        path, for: access, wait: common.wait.duration, shouldContinue: { Interruption.pending == nil })
      if let lock { locks.append((path, lock)) }
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: name)
    }
  }
}

extension Session {
  /// A text with the folder of the devices in its call, where one without it would mean another device or none.
  ///
  /// Where devices of two folders were named, nothing says which of them a call is about. What stands behind a quotation
  /// mark may be the name of a file that somebody else chose, and stays as it is quoted.
  func completed(_ text: String) -> String {
    guard shownHomes.count == 1, let home = shownHomes.first else { return text }
    for verb in ["device", "restore"] {
      guard let call = text.firstRange(of: "keyhaul \(verb) "), !text[..<call.lowerBound].contains("'") else {
        continue
      }
      var text = text
      text.replaceSubrange(call, with: "keyhaul --home \(ShellQuoting.argument(home, placeholder: "DIR")) \(verb) ")
      return text
    }
    return text
  }
}

extension Session {
  /// Runs a computation on data that was read. The first signal ends the program, however long the computation takes,
  /// because nothing was changed and nothing needs cleanup. If the session is one of several, the signal does not end
  /// the program.
  func computing<Value: ~Copyable, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    guard !isOneOfMany, done == nil else { return try body() }
    return try Interruption.leavingAtOnce(body)
  }

  /// Shows that a key is being derived, and lets Ctrl-C end it.
  func deriving<Value: ~Copyable, Failure: Error>(
    rounds: Int, _ body: (PasswordDerivation.Progress) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let title = "Deriving key: \(HumanReadable.grouped(rounds)) iterations"
    return try progress(title, phase: "derive-key") { (report) throws(Failure) in
      try body { done, total in
        report.update(done: done, total: total)
        return Interruption.pending == nil
      }
    }
  }
}

extension Session {
  /// What a verb has changed, or would change, in one line. Results alone are printed under `-q`, and this is none.
  func announce(_ line: String) throws(CommandFailure) {
    guard !common.quiet else { return }
    for line in Self.wrapped(line, isOnTerminal: resultIsOnTerminal, style: resultStyle) { try say(line) }
  }

  /// A sentence broken between its words where a terminal would break it anywhere; one line for what reads lines.
  static func wrapped(_ line: String, isOnTerminal: Bool, style: TextStyle) -> [String] {
    guard isOnTerminal, !line.hasPrefix(" "), DisplayWidth.columns(of: line) > style.width else { return [line] }
    return WordWrap.lines(of: line, columns: style.width)
  }
}
