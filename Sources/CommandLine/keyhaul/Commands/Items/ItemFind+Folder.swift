import KeyhaulKit
import Reports

/// `item find FOLDER`: finds the matching items of every backup in a folder.
extension ItemFind {
  /// Returns whether the argument is a folder of several backups. A password list is only for such a folder.
  func isForFolder(_ session: Session) throws(CommandError) -> Bool {
    if passwords != nil { return true }
    let home = try session.optionalHomeDirectory()
    guard !Inspect.isDevice(target.keychain, home: home) else { return false }
    return try BackupQueue.content(of: target.keychain) == .several
  }

  /// Searches each backup, ordered by name. A backup that cannot be searched does not stop the others.
  ///
  /// - Returns: `.ok` if an item matches and every backup was searched, `.noMatch` if none matches, and `.partial` if a
  ///   backup could not be searched completely.
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
    if let output, output != "-" {
      try ReportFile.write(to: output) { (write) throws(CommandError) in
        try search(folder, for: selection, passwordProvider, adding: &summary, in: session) {
          (text) throws(CommandError) in
          try Array(text.utf8).withRawBytes(write)
        }
      }
    } else {
      try search(folder, for: selection, passwordProvider, adding: &summary, in: session) {
        (text) throws(CommandError) in
        try session.writeRaw(Array(text.utf8))
        try session.flush()
      }
    }
    let matching = summary.countByCode[0, default: 0]
    let notMatching = summary.countByCode[CommandExitStatus.noMatch.code, default: 0]
    let unsearched = summary.count - matching - notMatching
    session.info(
      "\(matching) of \(HumanReadable.count(summary.count, "backup")) \(matching == 1 ? "has" : "have") matching items"
        + (unsearched == 0 ? "." : "; \(unsearched) could not be searched completely."))
    for remark in summary.remarks { session.info(remark) }
    return unsearched > 0 ? .partial : matching > 0 ? .ok : .noMatch
  }

  /// Returns the passwords for all backups: from a list, from a flag, or asked for once.
  private func batchPasswords(in session: Session) throws(CommandError) -> BatchPasswords {
    if let passwords {
      guard !password.isGiven else {
        throw .usage("--passwords and a password cannot be used together", try: "use only one of them")
      }
      return BatchPasswords(common: nil, list: try PasswordList(passwords, in: session))
    }
    if let common = try session.passwordForAllBackups(password) { return BatchPasswords(common: common, list: nil) }
    guard session.terminal() != nil else { return BatchPasswords(common: nil, list: nil) }
    let typed = try session.promptedPasswordForAllBackups(of: "the backups in \(target.keychain)")
    return BatchPasswords(common: typed, list: nil)
  }

  private func search(
    _ folder: String, for selection: ItemSelection, _ passwordProvider: BatchPasswords,
    adding summary: inout BatchSummary,
    in session: Session, _ put: (String) throws(CommandError) -> Void
  ) throws(CommandError) {
    let queue = BackupQueue([folder], pathList: nil)
    let list = JSONListFormatter(verb: "item find", folder: folder)
    var isFirst = true
    while let queued = try queue.next() {
      try Interruption.check()
      let (result, rows) = search(queued, for: selection, passwordProvider, in: session)
      summary.add(result, isResumed: false)
      if session.isJSON {
        try put((isFirst ? list.head() : "") + list.row(result, isFirst: isFirst))
      } else if common.isCSV {
        let table = ItemCSV.table(of: rows, revealsSecrets: false, backup: queued.path, hasHeader: isFirst)
        let isShown = showsTable(in: session)
        try put(
          table.withBytes { table in
            guard isShown else { return String(decoding: table, as: UTF8.self) }
            let text = Self.escapedLines(of: table)
            return text.withBytes { String(decoding: $0, as: UTF8.self) }
          })
      } else if !rows.isEmpty {
        try put(text(of: rows, in: queued, session))
      }
      if !session.isJSON { reportProblems(of: result, in: session) }
      isFirst = false
    }
    summary.skipped = queue.skipped
    if session.isJSON { try put((isFirst ? list.head() : "") + list.foot(summary)) }
  }

  private func search(
    _ queued: QueuedBackup, for selection: ItemSelection, _ passwordProvider: BatchPasswords, in session: Session
  ) -> (BatchResult, [KeychainEntry]) {
    var singleCommand = self
    singleCommand.target.keychain = queued.path
    singleCommand.common.disablePrompts()
    let capturedOutput = CapturedOutput()
    let capturingSession = Session(
      capturing: capturedOutput, common: singleCommand.common, commandName: session.commandName,
      environment: passwordProvider.environment(from: session.environment), backupPath: queued.path,
      passwordProvider: passwordProvider)
    var (status, failure, items): (CommandExitStatus, CommandError?, [KeychainEntry]) = (.noMatch, queued.fault, [])
    if let fault = queued.fault {
      status = fault.status
    } else {
      do {
        let keychain = try singleCommand.target.find(accessOptions, databaseKeys, in: capturingSession)
        let (rows, document, mayBeIncomplete) = try singleCommand.search(
          for: selection, in: keychain, accessOptions, capturingSession)
        try capturingSession.writeDocument(document, of: rows, to: nil)
        items = rows
        status = mayBeIncomplete || rows.contains { $0.item == nil } ? .partial : rows.isEmpty ? .noMatch : .ok
      } catch let error as CommandError {
        (status, failure) = (error.status, error)
      } catch {
        (status, failure) = (.failed, CommandError(.failed, "the backup could not be searched"))
      }
    }
    let entry = queued.fault == nil ? BackupDirectory.entry(of: queued.path) : nil
    let metadata = capturingSession.backupMetadata ?? entry.map { BackupMetadata($0) } ?? BackupMetadata()
    let document = try? JSONValue(parsing: capturedOutput.result, acceptingAtMost: JSONValue.maximumValueCount)
    let result = BatchResult(
      verb: "item find", parameters: [], path: queued.path, metadata: metadata,
      isArchivedCopy: entry?.isArchivedCopy ?? false,
      status: status, failure: failure, warnings: capturedOutput.warnings, document: document,
      reason: status == .partial ? "an item that may match cannot be read" : nil)
    return (result, items)
  }

  private func text(of rows: [KeychainEntry], in queued: QueuedBackup, _ session: Session) -> String {
    var style = session.resultStyle
    if output.map({ $0 != "-" }) ?? false { (style.usesColor, style.cutsText) = (false, false) }
    let head = "\(UntrustedText.escaped(queued.path)): \(HumanReadable.count(rows.count, "item"))"
    let lines = FoundItemTable.table(of: rows, style: style).lines(style: style)
    return ([style.painted(style.adapted(head), .bold)] + lines + [""]).map { $0 + "\n" }.joined()
  }

  /// Warns about the reasons why the result for a backup is incomplete.
  private func reportProblems(of result: BatchResult, in session: Session) {
    if let error = result.error {
      session.warn("\(result.path): \(error.message)", why: error.why, try: error.advice)
    }
    // Many backups may have the same warning, so each is one line.
    for warning in result.warnings { session.warn("\(result.path): \(warning.message)", why: warning.why) }
  }
}
