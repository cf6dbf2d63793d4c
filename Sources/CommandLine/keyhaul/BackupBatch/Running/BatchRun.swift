import ArgumentParser
import KeyhaulKit

/// A run of a command on many backups. Several backups are processed at once, and the results are printed in the order
/// in which the backups were named and found.
///
/// Only the backups being read and results that wait for an earlier one are in memory.
struct BatchRun<Command: BatchCommand> {
  private let command: Command
  private let session: Session
  let worker: BatchWorker<Command>
  private let resumeLog: ResumeLog?
  let queue: BackupQueue
  private let formatter: any ResultFormatter

  /// Checks all arguments before any backup is read.
  init(_ command: Command, in session: Session) throws {
    self.command = command
    self.session = session
    try command.validateBatch()
    try Self.checkNames(command.paths, in: session)
    try command.accessOptions.decryption.validateForBatch()
    let parameters = try command.resultParameters(in: session)
    let list = try command.many.pathsFrom.map { path throws(CommandError) in try PathList(path, in: session) }
    let passwords = try Self.passwords(command, in: session)
    if let output = command.output, output != "-" {
      try session.common.check(output: output)
      try session.prepareOutput(output, inputs: command.paths + command.accessOptions.files + command.many.files)
    }
    if let resume = command.many.resume {
      guard resume != "-" else {
        throw CommandError.usage(
          "--resume needs a file", why: "Keyhaul reads earlier results from it", try: "--resume FILE")
      }
      try session.requireOutput(
        resume, differsFrom: command.paths + [command.many.pathsFrom, command.many.passwords], after: "--resume")
    }
    let commandName = session.commandName.split(separator: " ").dropFirst().joined(separator: " ")
    let digest = try command.many.resume.map { _ in
      try ResumeInputs.digest(
        parameters: parameters, inputs: command.inputs(in: session), command.accessOptions.decryption, in: session)
    }
    let worker = BatchWorker(
      command: command, name: session.commandName, commandName: commandName, environment: session.environment,
      parameters: parameters,
      inputsDigest: digest, passwords: passwords)
    self.worker = worker
    if let path = command.many.resume, let digest {
      resumeLog = try ResumeLog(
        path, verb: commandName, parameters: Set([true, false].map { worker.parameters(hasPassword: $0) }),
        inputsDigest: digest)
    } else {
      resumeLog = nil
    }
    queue = BackupQueue(command.paths, pathList: list)
    formatter = Self.formatter(of: command, commandName: commandName, session)
    // This comes last, because an argument that is not a file may be a password, which is rejected above.
    try command.warnAboutArguments(in: session)
  }

  func run() throws(CommandError) -> CommandExitStatus {
    var summary = BatchSummary()
    if let output = command.output, output != "-" {
      // With `--json`, the results also go to standard output.
      try ReportFile.write(to: output) { (write) throws(CommandError) in
        try writeResults(adding: &summary) { (text) throws(CommandError) in
          try Array(text.utf8).withRawBytes(write)
          if session.isJSON { try print(text) }
        }
      }
      session.info("Wrote \(UntrustedText.escaped(output)).")
    } else {
      try writeResults(adding: &summary, print)
    }
    if !formatter.hasSummary || command.output.map({ $0 != "-" }) == true {
      for line in [summary.sentence] + summary.remarks { session.info(line) }
    }
    return summary.status
  }

  /// Writes a row as soon as it is available, so that a reader always has complete rows.
  private func print(_ text: String) throws(CommandError) {
    try session.writeRaw(Array(text.utf8))
    try session.flush()
  }

  private func writeResults(
    adding summary: inout BatchSummary, _ put: (String) throws(CommandError) -> Void
  ) throws(CommandError) {
    var count = 0
    let (worker, resumeLog) = (worker, resumeLog)
    try ParallelMap.run(
      jobs: command.many.jobCount, next: { () throws(CommandError) in try queue.next() },
      shouldContinue: { Interruption.pending == nil },
      work: { (queued) throws(CommandError) in worker.result(for: queued, resumeLog) },
      deliver: { (finished) throws(CommandError) in
        let result = finished.result
        if !finished.isResumed { try resumeLog?.add(result, finished.inputs) }
        summary.add(result, isResumed: finished.isResumed, needsAttention: Command.note(on: result) != nil)
        try put((count == 0 ? formatter.head() : "") + formatter.row(result, isFirst: count == 0))
        count += 1
      })
    try Interruption.check(count == 0 ? "there are no results" : "\(HumanReadable.count(count, "backup")) had results")
    guard count > 0 else {
      throw CommandError(.noMatch, "no backup was given", why: "the list of paths is empty", try: "a list with paths")
    }
    summary.skipped = queue.skipped
    let foot = formatter.foot(summary)
    if !foot.isEmpty { try put(foot) }
  }

  // MARK: The arguments

  /// Rejects an argument that is not a file if there are several. It may be a password, so the message does not repeat
  /// it.
  private static func checkNames(_ paths: [String], in session: Session) throws(CommandError) {
    guard paths.count > 1 else { return }
    let home = try session.optionalHomeDirectory()
    for (index, path) in paths.enumerated() {
      guard path != "-" else {
        throw .usage(
          "- cannot be combined with other backups", why: "\(paths.count) were given", try: "a separate command for -")
      }
      let isDevice = path.hasPrefix("device:") || home.map { PathContent(of: "\($0)/\(path)") } == .device
      let fileStatus = (try? FileSystem.real.status(of: path)) ?? nil
      guard fileStatus == nil, !isDevice else { continue }
      if let selected = try? BackupDirectoryResolver.path(path, backups: BackupDirectoryResolver.backups),
        selected != path
      {
        continue
      }
      if looksLikePath(path) {
        throw CommandError(
          .notFound, "\(path) does not exist", why: "no file or folder has this name",
          try: "check the path; --paths-from FILE for paths that may be missing")
      }
      throw .usage(
        "an argument of \(session.commandName) is not a file",
        why: "it is number \(index + 1) of \(paths.count); Keyhaul does not repeat it here, because it may be a "
          + "password",
        try: "--password-file, --password-fd or --password-command; --paths-from FILE for paths that may be missing")
    }
  }

  /// Returns whether an argument is clearly a path and may be repeated: it has a backup's extension, or is in an
  /// existing folder. Neither is likely for a mistyped password.
  private static func looksLikePath(_ argument: String) -> Bool {
    let name = argument.lowercased()
    if BackupFinder.endings.contains(where: name.hasSuffix) { return true }
    let parent = argument.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    return !parent.isEmpty && PathContent(of: parent) == .directory
  }

  private static func passwords(_ command: Command, in session: Session) throws(CommandError) -> BatchPasswords {
    let flags = command.accessOptions.password
    if let path = command.many.passwords {
      guard !flags.isGiven else {
        throw .usage("--passwords and a password cannot be used together", try: "use only one of them")
      }
      return BatchPasswords(common: nil, list: try PasswordList(path, in: session))
    }
    do throws(CommandError) {
      if let password = try session.passwordForAllBackups(flags) {
        return BatchPasswords(common: password, list: nil)
      }
    } catch {
      // An unreadable source in the environment is reported for each backup that needs the password.
      guard !flags.isGiven, error.status != .usage else { throw error }
      return BatchPasswords(common: nil, list: nil)
    }
    return BatchPasswords(common: try promptedPasswordForAllBackups(command, in: session), list: nil)
  }

  /// Asks once for the password of all backups, if there is a terminal and one of the backups may need it.
  private static func promptedPasswordForAllBackups(_ command: Command, in session: Session) throws(CommandError)
    -> ReusablePassword?
  {
    guard command.needsPassword, command.many.pathsFrom == nil, session.terminal() != nil else { return nil }
    let queue = BackupQueue(command.paths, pathList: nil)
    while let queued = try queue.next() {
      guard queued.fault == nil else { continue }
      // Whether a backup in one file has a password is known only once the file is read.
      let mayNeedPassword =
        BackupDirectory.entry(of: queued.path)?.isEncrypted ?? (PathContent(of: queued.path) == .file)
      guard mayNeedPassword else { continue }
      let folder = command.paths.count == 1 ? command.paths.first : nil
      return try session.promptedPasswordForAllBackups(of: folder.map { "the backups in \($0)" } ?? "the backups")
    }
    return nil
  }

  private static func formatter(of command: Command, commandName: String, _ session: Session) -> any ResultFormatter {
    let isFile = command.output.map { $0 != "-" } ?? false
    if let chosenFields = session.chosenFields { return FieldsFormatter(chosenFields: chosenFields) }
    if command.common.isNDJSON { return NDJSONFormatter() }
    if command.common.isCSV {
      return CSVFormatter(columns: Command.csvColumns, isShown: session.resultIsOnTerminal && !isFile)
    }
    if session.isJSON {
      let onlyPath = command.paths.count == 1 && command.many.pathsFrom == nil ? command.paths.first : nil
      let isFolder = onlyPath.map { (try? BackupQueue.containsBackups($0)) == true } ?? false
      return JSONListFormatter(verb: commandName, folder: isFolder ? onlyPath : nil)
    }
    var style = session.resultStyle
    if isFile { (style.usesColor, style.cutsText) = (false, false) }
    return TableFormatter(
      style: style, columns: Command.textColumns, suggestedCommand: session.commandName,
      suggestedFlags: command.suggestedFlags,
      note: { Command.note(on: $0) })
  }
}

extension DecryptionOptions {
  /// Rejects a device key from a source that can be read only once.
  fileprivate func validateForBatch() throws(CommandError) {
    switch try deviceKeySource() {
    case .descriptor, .standardInput:
      throw .usage(
        "for many backups, the device key must come from a file", why: "a descriptor can be read only once",
        try: "--device-key-file PATH")
    case .file, .command, .prompt, nil: return
    }
  }
}

/// The options of commands on many backups.
struct BatchOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Read more paths from a file, one per line or NUL-terminated; - is standard input.", valueName: "file"),
    completion: .file())
  var pathsFrom: String?

  @Option(
    help: ArgumentHelp(
      "A file that says where to read each backup's password. Each line is PATTERN file:PATH or PATTERN command:COMMAND.",
      valueName: "file"),
    completion: .file())
  var passwords: String?

  @Option(help: ArgumentHelp("Read this many backups at once (default: one per core).", valueName: "n"))
  var jobs: JobCount?

  @Option(
    help: ArgumentHelp(
      "Append each result to a file, and skip unchanged backups whose results are already in it.", valueName: "file"),
    completion: .file())
  var resume: String?

  init() {}

  /// Whether any of the flags was given, which makes the call one for many backups.
  var isGiven: Bool { given != nil }

  /// The first of the flags that was given.
  var given: String? {
    [
      pathsFrom.map { _ in "--paths-from" }, passwords.map { _ in "--passwords" }, jobs.map { _ in "--jobs" },
      resume.map { _ in "--resume" },
    ].compactMap(\.self).first
  }

  var jobCount: Int { jobs?.value ?? ParallelMap.standardJobCount }

  /// The files that are read or written in addition to the backups.
  var files: [String?] { [pathsFrom, passwords, resume] }
}

/// A number of parallel jobs.
struct JobCount: Equatable, Sendable, ExpressibleByArgument {
  /// The maximum. More threads are not faster on any current machine.
  static let most = 256

  let value: Int

  init?(argument: String) {
    guard let value = Int(argument), (1...Self.most).contains(value) else { return nil }
    self.value = value
  }
}
