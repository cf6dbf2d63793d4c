import ArgumentParser
import KeyhaulKit

/// A run of a command on many backups. Several backups are processed at the same time, and the results are printed in
/// the order in which the backups were named and found.
///
/// Only two kinds of data are in memory: the backups being read, and results that wait for an earlier backup's result.
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
    try Self.checkPaths(command.paths, in: session)
    try command.accessOptions.decryption.validateForBatch()
    let parameters = try command.resultParameters(in: session)
    let pathList = try command.batchOptions.pathsFrom.map { path throws(CommandError) in
      try PathList(path, in: session)
    }
    let passwords = try Self.passwords(command, in: session)
    try Self.prepareFiles(of: command, in: session)
    let verb = session.commandName.split(separator: " ").dropFirst().joined(separator: " ")
    let inputsDigest = try command.batchOptions.resume.map { _ in
      try ResumeCondition.digest(
        parameters: parameters, inputs: command.inputs(in: session), command.accessOptions.decryption, in: session)
    }
    let worker = BatchWorker(
      command: command, commandName: session.commandName, verb: verb, environment: session.environment,
      parameters: parameters, inputsDigest: inputsDigest, passwords: passwords)
    self.worker = worker
    if let path = command.batchOptions.resume, let inputsDigest {
      resumeLog = try ResumeLog(
        path, verb: verb, parameters: Set([true, false].map { worker.parameters(hasPassword: $0) }),
        inputsDigest: inputsDigest)
    } else {
      resumeLog = nil
    }
    queue = BackupQueue(command.paths, pathList: pathList)
    formatter = Self.formatter(of: command, verb: verb, session)
    // This comes last, because an argument that is not a file may be a password, which is rejected above.
    try command.warnAboutArguments(in: session)
  }

  /// Checks the files that the run writes: the output and the file of `--resume`. They must not be inputs.
  private static func prepareFiles(of command: Command, in session: Session) throws(CommandError) {
    let options = command.batchOptions
    if let output = command.output, output != "-" {
      try session.common.check(output: output)
      try session.prepareOutput(output, inputs: command.paths + command.accessOptions.files + options.files)
    }
    if let resume = options.resume {
      guard resume != "-" else {
        throw .usage("--resume needs a file", why: "Keyhaul reads earlier results from it", try: "--resume FILE")
      }
      try session.requireOutput(
        resume, differsFrom: command.paths + [options.pathsFrom, options.passwords], after: "--resume")
    }
  }

  func run() throws(CommandError) -> CommandExitStatus {
    var summary = BatchSummary()
    let file = command.output.flatMap { $0 == "-" ? nil : $0 }
    try session.writeImmediately(to: file) { (write) throws(CommandError) in
      try writeResults(adding: &summary) { (text) throws(CommandError) in
        let bytes = Array(text.utf8)
        try bytes.withRawBytes(write)
        // With `--json`, the results also go to standard output.
        if file != nil, session.isJSON { try bytes.withRawBytes(session.printImmediately) }
      }
    }
    if let file { session.info("Wrote \(UntrustedText.escaped(file)).") }
    if !formatter.hasSummary || file != nil {
      for line in [summary.sentence] + summary.remarks { session.info(line) }
    }
    return summary.status
  }

  /// Writes the results as they become available, in the order of the backups.
  private func writeResults(
    adding summary: inout BatchSummary, _ write: (String) throws(CommandError) -> Void
  ) throws(CommandError) {
    var count = 0
    let (worker, resumeLog) = (worker, resumeLog)
    try ParallelMap.run(
      jobs: command.batchOptions.jobCount, next: { () throws(CommandError) in try queue.next() },
      shouldContinue: { Interruption.pending == nil },
      work: { (queued) throws(CommandError) in worker.result(for: queued, resumingFrom: resumeLog) },
      deliver: { (finished) throws(CommandError) in
        let result = finished.result
        if !finished.isResumed { try resumeLog?.add(result, condition: finished.resumeCondition) }
        summary.add(result, isResumed: finished.isResumed, needsAttention: Command.note(on: result) != nil)
        let head = count == 0 ? formatter.head() : ""
        try write(head + formatter.row(result, isFirst: count == 0))
        count += 1
      })
    try Interruption.check(count == 0 ? "there are no results" : "\(HumanReadable.count(count, "backup")) had results")
    guard count > 0 else {
      throw CommandError(.noMatch, "no backup was given", why: "the list of paths is empty", try: "a list with paths")
    }
    summary.skipped = queue.skipped
    let foot = formatter.foot(summary)
    if !foot.isEmpty { try write(foot) }
  }

  // MARK: The arguments

  /// Rejects an argument that is neither a file nor a device, if several arguments were given. Such an argument may be a
  /// password, so the message repeats it only if it looks like a path.
  private static func checkPaths(_ paths: [String], in session: Session) throws(CommandError) {
    guard paths.count > 1 else { return }
    let deviceFolder = try session.optionalDeviceFolder()
    for (index, path) in paths.enumerated() {
      guard path != "-" else {
        throw .usage(
          "- cannot be combined with other backups", why: "\(paths.count) were given", try: "a separate command for -")
      }
      let isDevice = path.hasPrefix("device:") || deviceFolder.map { PathContent(of: "\($0)/\(path)") } == .device
      let fileStatus = (try? FileSystem.real.status(of: path)) ?? nil
      guard fileStatus == nil, !isDevice else { continue }
      let selectedBackup = try? BackupDirectoryResolver.path(path, backups: BackupDirectoryResolver.backups)
      if let selectedBackup, selectedBackup != path { continue }
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

  /// Returns the passwords for all backups: from a list, from a flag or the environment, or asked for once.
  private static func passwords(_ command: Command, in session: Session) throws(CommandError) -> BatchPasswords {
    let flags = command.accessOptions.password
    if let path = command.batchOptions.passwords { return try session.passwords(listedIn: path, rejecting: flags) }
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
    guard command.needsPassword, command.batchOptions.pathsFrom == nil, session.terminal() != nil else { return nil }
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

  private static func formatter(of command: Command, verb: String, _ session: Session) -> any ResultFormatter {
    let isFile = command.output.map { $0 != "-" } ?? false
    if let chosenFields = session.chosenFields { return FieldsFormatter(chosenFields: chosenFields) }
    if command.common.isNDJSON { return NDJSONFormatter() }
    if command.common.isCSV {
      return CSVFormatter(columns: Command.csvColumns, isOnTerminal: session.resultIsOnTerminal && !isFile)
    }
    if session.isJSON {
      let onlyPath = command.paths.count == 1 && command.batchOptions.pathsFrom == nil ? command.paths.first : nil
      let isFolder = onlyPath.map { (try? BackupQueue.containsBackups($0)) == true } ?? false
      return JSONListFormatter(verb: verb, folder: isFolder ? onlyPath : nil)
    }
    return TableFormatter(
      style: isFile ? session.fileStyle : session.resultStyle, columns: Command.textColumns,
      suggestedCommand: session.commandName, suggestedFlags: command.suggestedFlags, note: { Command.note(on: $0) })
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
