import KeyhaulKit
import Reports

/// `item find FOLDER`: the matching items of every backup in a folder.
extension ItemFind {
  /// Whether the argument means several backups.
  func isAboutFolder(_ session: Session) throws(CommandFailure) -> Bool {
    if passwords != nil { return true }
    let home = try session.homeDirectoryIfAny()
    guard !Inspect.isDevice(target.keychain, home: home) else { return false }
    return try BackupPlaces.content(of: target.keychain) == .several
  }

  /// Searches each backup in the order of the names; a backup that cannot be searched does not stop the others.
  ///
  /// - Returns: `.ok` if an item matches and every backup was searched, `.noMatch` if none matches, and `.partial` if a
  ///   backup could not be searched completely.
  func searchFolder(in session: Session) throws -> CommandStatus {
    let folder = target.keychain
    guard !reveal else {
      throw CommandFailure.usage(
        "--reveal works with only one backup", why: "\(folder) contains several",
        try: "item find BACKUP --reveal for the backup that has the item")
    }
    guard session.chosen == nil else {
      throw CommandFailure.usage(
        "--fields works with only one backup", why: "\(folder) contains several", try: "--json, or --format csv")
    }
    let selection = try ItemSelection(wanted)
    let offers = try sharedPasswords(in: session)
    if let output, output != "-" {
      try session.prepareOutput(
        output, inputs: [folder] + UnlockingOptions(password: password, opening: opening).files + [passwords])
    }
    var summary = AnswerSummary()
    if let output, output != "-" {
      try ReportFile.write(to: output) { (portion) throws(CommandFailure) in
        try search(folder, for: selection, offers, adding: &summary, in: session) { (text) throws(CommandFailure) in
          try Array(text.utf8).withRawBytes(portion)
        }
      }
    } else {
      try search(folder, for: selection, offers, adding: &summary, in: session) { (text) throws(CommandFailure) in
        try session.writeRaw(Array(text.utf8))
        try session.flush()
      }
    }
    let (found, none) = (
      summary.countByCode[0, default: 0], summary.countByCode[CommandStatus.noMatch.code, default: 0]
    )
    let unsearched = summary.count - found - none
    session.note(
      "\(found) of \(HumanReadable.count(summary.count, "backup")) \(found == 1 ? "has" : "have") matching items"
        + (unsearched == 0 ? "." : "; \(unsearched) could not be searched completely."))
    for remark in summary.remarks { session.note(remark) }
    return unsearched > 0 ? .partial : found > 0 ? .ok : .noMatch
  }

  /// The passwords for all backups: of a list, of a flag, or asked for once.
  private func sharedPasswords(in session: Session) throws(CommandFailure) -> SharedPasswords {
    if let passwords {
      guard !password.isGiven else {
        throw .usage("--passwords and a password cannot be used together", try: "use only one of them")
      }
      return SharedPasswords(named: nil, list: try PasswordList(passwords, in: session))
    }
    if let named = try session.sharedPassword(password) { return SharedPasswords(named: named, list: nil) }
    guard session.terminal() != nil else { return SharedPasswords(named: nil, list: nil) }
    let asked = try session.askedPassword(of: "the backups in \(target.keychain)")
    return SharedPasswords(named: asked, list: nil)
  }

  private func search(
    _ folder: String, for selection: ItemSelection, _ offers: SharedPasswords, adding summary: inout AnswerSummary,
    in session: Session, _ put: (String) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    let places = BackupPlaces([folder], list: nil)
    let list = AnswerListForm(verb: "item find", folder: folder)
    var isFirst = true
    while let place = try places.next() {
      try Interruption.check()
      let (answer, rows) = search(place, for: selection, offers, in: session)
      summary.add(answer, isResumed: false)
      if session.isJSON {
        try put((isFirst ? list.head() : "") + list.row(answer, isFirst: isFirst))
      } else if common.isCSV {
        let table = ItemCSV.table(of: rows, revealsSecrets: false, backup: place.path, hasHead: isFirst)
        let text = table.withBytes { String(decoding: $0, as: UTF8.self) }
        let isShown = session.resultIsOnTerminal && (output == nil || output == "-")
        try put(
          isShown ? text.split(separator: "\r\n").map { UntrustedText.escaped(String($0)) + "\n" }.joined() : text)
      } else if !rows.isEmpty {
        try put(text(of: rows, in: place, session))
      }
      if !session.isJSON { tell(of: answer, in: session) }
      isFirst = false
    }
    summary.passedOver = places.passedOver
    if session.isJSON { try put((isFirst ? list.head() : "") + list.foot(summary)) }
  }

  private func search(
    _ place: BackupPlace, for selection: ItemSelection, _ offers: SharedPasswords, in session: Session
  ) -> (BackupAnswer, [KeychainEntry]) {
    var one = self
    one.target.keychain = place.path
    one.common.askNothing()
    let record = SessionRecord()
    let alone = Session(
      recordingTo: record, common: one.common, verb: session.verb,
      environment: offers.environment(from: session.environment), about: place.path, offers)
    var (status, failure, found): (CommandStatus, CommandFailure?, [KeychainEntry]) = (.noMatch, place.fault, [])
    if let fault = place.fault {
      status = fault.status
    } else {
      do {
        let unlocking = UnlockingOptions(password: password, opening: opening)
        let keychain = try one.target.find(unlocking, databaseKeys, in: alone)
        let (rows, document, isOpen) = try one.search(for: selection, in: keychain, unlocking, alone)
        try alone.answer(document, of: rows, to: nil)
        found = rows
        status = isOpen || rows.contains { $0.item == nil } ? .partial : rows.isEmpty ? .noMatch : .ok
      } catch let error as CommandFailure {
        (status, failure) = (error.status, error)
      } catch {
        (status, failure) = (.failed, CommandFailure(.failed, "the backup could not be searched"))
      }
    }
    let entry = place.fault == nil ? BackupDirectory.entry(of: place.path) : nil
    let facts = alone.subject ?? entry.map { SubjectFacts($0) } ?? SubjectFacts()
    let document = try? JSONValue(parsing: record.result, acceptingAtMost: JSONValue.maximumValueCount)
    let answer = BackupAnswer(
      verb: "item find", asked: [], path: place.path, facts: facts, isArchivedCopy: entry?.isArchivedCopy ?? false,
      status: status, failure: failure, warnings: record.warnings, document: document,
      reason: status == .partial ? "an item that may match cannot be read" : nil)
    return (answer, found)
  }

  private func text(of rows: [KeychainEntry], in place: BackupPlace, _ session: Session) -> String {
    var style = session.resultStyle
    if output.map({ $0 != "-" }) ?? false { (style.usesColor, style.cutsText) = (false, false) }
    let head = "\(UntrustedText.escaped(place.path)): \(HumanReadable.count(rows.count, "item"))"
    let lines = FoundItemTable.table(of: rows, style: style).lines(style: style)
    return ([style.painted(style.adapted(head), .bold)] + lines + [""]).map { $0 + "\n" }.joined()
  }

  /// Reports what keeps the result for one backup from being complete.
  private func tell(of answer: BackupAnswer, in session: Session) {
    if let error = answer.error {
      session.warn("\(answer.path): \(error.message)", why: error.why, try: error.advice)
    }
    // Many backups may have the same warning, so each has one line.
    for warning in answer.warnings { session.warn("\(answer.path): \(warning.message)", why: warning.why) }
  }
}
