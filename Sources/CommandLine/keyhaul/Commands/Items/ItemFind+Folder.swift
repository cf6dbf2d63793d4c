import KeyhaulKit
import Reports

/// `item find FOLDER`: finds the matching items of every backup in a folder.
extension ItemFind {
  /// Returns whether the argument is a folder of several backups. A password list is only for such a folder.
  func isForFolder(_ session: Session) throws(CommandError) -> Bool {
    if passwords != nil { return true }
    guard try !session.isDeviceName(target.keychain) else { return false }
    return try BackupQueue.content(of: target.keychain) == .several
  }

  /// Searches each backup, ordered by name. If a backup cannot be searched, the search continues with the next one.
  ///
  /// - Returns: `.partial` if a backup could not be searched completely; otherwise `.ok` if an item matches, or `.noMatch`
  ///   if no item matches.
  func searchFolder(in session: Session) throws -> CommandExitStatus {
    let folder = target.keychain
    guard !reveal else {
      throw CommandError.usage(
        "--reveal works with only one backup", why: "\(folder) contains several",
        try: "item find BACKUP --reveal for the backup that has the item")
    }
    guard session.chosenFields == nil else {
      throw CommandError.usage(
        "--fields works with only one backup", why: "\(folder) contains several", try: "--json, or --format csv")
    }
    let selection = try ItemSelection(filter)
    let passwordProvider = try batchPasswords(in: session)
    if let output, output != "-" {
      try session.prepareOutput(
        output, inputs: [folder] + accessOptions.files + [passwords])
    }
    var summary = BatchSummary()
    try session.writeImmediately(to: output) { (write) throws(CommandError) in
      try searchBackups(in: folder, for: selection, passwordProvider, adding: &summary, in: session) {
        (text) throws(CommandError) in try Array(text.utf8).withRawBytes(write)
      }
    }
    let matchingCount = summary.countByCode[0, default: 0]
    let notMatchingCount = summary.countByCode[CommandExitStatus.noMatch.code, default: 0]
    let unsearchedCount = summary.count - matchingCount - notMatchingCount
    session.info(
      "\(matchingCount) of \(HumanReadable.count(summary.count, "backup")) \(matchingCount == 1 ? "has" : "have") matching items"
        + (unsearchedCount == 0 ? "." : "; \(unsearchedCount) could not be searched completely."))
    for remark in summary.remarks { session.info(remark) }
    return unsearchedCount > 0 ? .partial : matchingCount > 0 ? .ok : .noMatch
  }

  /// Returns the passwords for all backups: from a list, from a flag, or asked for once.
  private func batchPasswords(in session: Session) throws(CommandError) -> BatchPasswords {
    if let passwords { return try session.passwords(listedIn: passwords, rejecting: password) }
    if let common = try session.passwordForAllBackups(password) { return BatchPasswords(common: common, list: nil) }
    guard session.terminal() != nil else { return BatchPasswords(common: nil, list: nil) }
    let password = try session.promptedPasswordForAllBackups(of: "the backups in \(target.keychain)")
    return BatchPasswords(common: password, list: nil)
  }

  /// Searches the backups in a folder, and writes each backup's matching items.
  private func searchBackups(
    in folder: String, for selection: ItemSelection, _ passwordProvider: BatchPasswords,
    adding summary: inout BatchSummary, in session: Session, _ write: (String) throws(CommandError) -> Void
  ) throws(CommandError) {
    let queue = BackupQueue([folder], pathList: nil)
    let formatter = JSONListFormatter(verb: "item find", folder: folder)
    var isFirst = true
    while let queued = try queue.next() {
      try Interruption.check()
      let backup = searchBackup(queued, for: selection, passwordProvider, in: session)
      summary.add(backup.result, isResumed: false)
      if session.isJSON {
        try write((isFirst ? formatter.head() : "") + formatter.row(backup.result, isFirst: isFirst))
      } else if common.isCSV {
        try write(csv(of: backup.entries, in: queued, hasHeader: isFirst, session))
      } else if !backup.entries.isEmpty {
        try write(text(of: backup.entries, in: queued, session))
      }
      if !session.isJSON { reportProblems(of: backup.result, in: session) }
      isFirst = false
    }
    summary.skipped = queue.skipped
    if session.isJSON { try write((isFirst ? formatter.head() : "") + formatter.foot(summary)) }
  }

  /// The result of searching one backup, with the matching items.
  private struct SearchedBackup {
    let result: BatchResult
    let entries: [KeychainEntry]
  }

  /// Searches one backup of the folder.
  private func searchBackup(
    _ queued: QueuedBackup, for selection: ItemSelection, _ passwordProvider: BatchPasswords, in session: Session
  ) -> SearchedBackup {
    var singleCommand = self
    singleCommand.target.keychain = queued.path
    singleCommand.common.limitOutputToDocument()
    let output = CapturedOutput()
    let capturingSession = Session(
      capturing: output, common: singleCommand.common, commandName: session.commandName,
      environment: passwordProvider.environment(from: session.environment), backupPath: queued.path,
      passwordProvider: passwordProvider)
    var entries: [KeychainEntry] = []
    var status = CommandExitStatus.noMatch
    var failure: CommandError?
    do {
      if let fault = queued.fault { throw fault }
      let keychain = try singleCommand.target.find(accessOptions, databaseKeys, in: capturingSession)
      let searchResult = try singleCommand.search(for: selection, in: keychain, accessOptions, capturingSession)
      if session.isJSON { try capturingSession.writeDocument(searchResult.document, of: searchResult.entries) }
      entries = searchResult.entries
      status = Self.status(of: searchResult)
    } catch {
      failure = error as? CommandError ?? CommandError(.failed, "the backup could not be searched")
      status = failure?.status ?? .failed
    }
    let result = Self.batchResult(
      for: queued, metadata: capturingSession.backupMetadata, status: status, failure: failure, output,
      by: session.commandName)
    return SearchedBackup(result: result, entries: entries)
  }

  /// Returns the result for a backup.
  ///
  /// - Parameters:
  ///   - queued: The backup.
  ///   - metadata: The metadata of the opened backup; `nil` if the backup was not opened.
  ///   - status: The exit status of the search.
  ///   - failure: The error that ended the search; `nil` if the search succeeded.
  ///   - output: The document and the warnings of the search.
  ///   - command: The full name of the command.
  private static func batchResult(
    for queued: QueuedBackup, metadata: BackupMetadata?, status: CommandExitStatus, failure: CommandError?,
    _ output: CapturedOutput, by command: String
  ) -> BatchResult {
    let entry = queued.fault == nil ? BackupDirectory.entry(of: queued.path) : nil
    let document = output.document(of: queued, by: command)
    return BatchResult(
      verb: "item find", parameters: [], path: queued.path,
      metadata: metadata ?? entry.map { BackupMetadata($0) } ?? BackupMetadata(),
      isArchivedCopy: entry?.isArchivedCopy ?? false, status: status, failure: failure, warnings: output.warnings,
      document: document,
      reason: status == .partial ? "an item that may match cannot be read" : nil)
  }

  private static func status(of result: SearchResult) -> CommandExitStatus {
    if result.mayBeIncomplete || result.entries.contains(where: { $0.item == nil }) { return .partial }
    return result.entries.isEmpty ? .noMatch : .ok
  }

  /// Returns the entries of a backup as CSV.
  private func csv(
    of entries: [KeychainEntry], in queued: QueuedBackup, hasHeader: Bool, _ session: Session
  ) -> String {
    let csv = FoundItemsCSV.table(of: entries, revealsSecrets: false, backup: queued.path, hasHeader: hasHeader)
    let isOnTerminal = writesCSVToTerminal(in: session)
    return csv.withBytes { csv in
      guard isOnTerminal else { return String(decoding: csv, as: UTF8.self) }
      return Self.escapedLines(of: csv).withBytes { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Returns the entries of a backup as a text table with a heading.
  private func text(of entries: [KeychainEntry], in queued: QueuedBackup, _ session: Session) -> String {
    let style = writesFile ? session.fileStyle : session.resultStyle
    let heading = "\(UntrustedText.escaped(queued.path)): \(HumanReadable.count(entries.count, "item"))"
    let lines = FoundItemTable.table(of: entries, style: style).lines(style: style)
    return ([style.painted(style.adapted(heading), .bold)] + lines + [""]).map { $0 + "\n" }.joined()
  }

  /// Warns about the reasons why the result for a backup is incomplete.
  private func reportProblems(of result: BatchResult, in session: Session) {
    if let error = result.error {
      session.warn("\(result.path): \(error.message)", why: error.why, try: error.advice)
    }
    // Many backups may have the same warning, so each warning takes only one line.
    for warning in result.warnings { session.warn("\(result.path): \(warning.message)", why: warning.why) }
  }
}
