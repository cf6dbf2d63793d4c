import KeyhaulKit
import Reports

/// A verb that answers about one backup, and in one call about many.
protocol BackupVerb: TabularVerb, Sendable {
  /// The backups and folders that are named.
  var paths: [String] { get set }
  var many: ManyBackupsOptions { get }
  var unlocking: UnlockingOptions { get }
  /// Where the result goes, but for standard output.
  var output: String? { get }

  /// Returns the command that lists the backups in folders, for a call without an argument.
  func listing(of folders: [String]) throws -> any BackupVerb
  /// Whether the command itself is the one that lists backups.
  static var listsBackups: Bool { get }
  /// The same call about one backup alone, its answer a document on standard output.
  func alone(with path: String) -> Self
  /// Answers about the one backup that is named.
  func performAlone(in session: Session) throws -> CommandStatus
  /// The case report that the call asks for; `nil` if it asks for none.
  func caseRequest() throws(CommandFailure) -> CaseOptions.Request?
  /// The same call without a file for its results, which go into a case report.
  func forCase() -> Self
  /// Refuses what one call about many cannot have.
  func checkMany() throws(CommandFailure)
  /// Names what a call about many may have been meant to be, once nothing is wrong with it.
  func warnOfMany(in session: Session) throws(CommandFailure)
  /// The flags of the call that choose what one about a backup alone shows, as they are typed: "--list".
  var shownParts: [String] { get }
  /// What shapes an answer besides the backup and its password: "--list", "--to new-phone r17".
  func asked(in session: Session) throws -> [String]
  /// Returns the contents of files and the identities of devices that shape an answer, each with its flag.
  func inputs(in session: Session) throws -> [(flag: String, content: [UInt8])]
  /// Whether the command tries an available password.
  var usesPassword: Bool { get }
  /// Whether the command needs the password of an encrypted backup.
  var needsPassword: Bool { get }

  /// The rows of its document about one backup; `nil` if that has none.
  var rows: FieldTable? { get }
  /// What has rows where that is so.
  static var rowsAdvice: String { get }

  /// Whether an argument may be the name of a device.
  static var takesDevices: Bool { get }
  /// The facts of its documents that stand in a table.
  static var columns: [AnswerColumn] { get }
  /// The columns of its own in the table for people.
  static var textColumns: [AnswerTextColumn] { get }
  /// The word for a document beside an exit code; `nil` if the word of the exit code says it.
  static func result(in document: JSONValue, code: Int32) -> BackupResult?
  /// The reason why a result is only partly good; `nil` if its warnings say it.
  static func reason(in document: JSONValue, code: Int32) -> String?
  /// Returns the reason why an answer without a fault needs attention, in a sentence; `nil` if it needs none.
  static func note(on answer: BackupAnswer) -> String?
}

extension BackupVerb {
  static var takesDevices: Bool { false }
  static var listsBackups: Bool { false }
  static var textColumns: [AnswerTextColumn] { [] }
  func caseRequest() throws(CommandFailure) -> CaseOptions.Request? { nil }
  func forCase() -> Self { self }
  static func reason(in _: JSONValue, code _: Int32) -> String? { nil }
  static func note(on _: BackupAnswer) -> String? { nil }
  func warnOfMany(in _: Session) throws(CommandFailure) {}
  var usesPassword: Bool { true }
  func inputs(in _: Session) throws -> [(flag: String, content: [UInt8])] { [] }

  /// Answers about the one backup that is named, or about each of many.
  func perform(in session: Session) throws -> CommandStatus {
    guard !paths.isEmpty || many.pathsFrom != nil else { return try listKnownBackups(in: session) }
    if let request = try caseRequest() {
      session.chosen = nil
      return try CaseRun(self, request, in: session).perform()
    }
    guard try isAboutMany(session) else {
      session.chosen = try ChosenFields(chosen, of: rows, otherwise: Self.rowsAdvice)
      return try performAlone(in: session)
    }
    session.chosen = try ChosenFields(chosen, of: BackupAnswer.table)
    return try ManyBackupsRun(self, in: session).perform()
  }

  /// Lists the backups that Finder, Apple Devices, iTunes or idevicebackup2 made, for a call without an argument.
  ///
  /// - Throws: `.usage` if there are none, and for a command other than `inspect`: its user has to name one.
  private func listKnownBackups(in session: Session) throws -> CommandStatus {
    let what = "\(session.verb) needs a backup\(Self.takesDevices ? " or a device" : "")"
    let folders = KnownBackupFolders.all(session.environment)
    guard !folders.isEmpty else {
      let places = KnownBackupFolders.places(session.environment).map { UntrustedText.escaped($0) }
      throw CommandFailure.usage(
        what, why: places.isEmpty ? nil : "there are no backups in \(HumanReadable.list(places, conjunction: "or"))",
        try: "\(session.verb) PATH; PATH may also be a mounted macOS or Windows volume")
    }
    if Self.listsBackups { return try Self.run(try listing(of: folders), in: session) }
    if !session.isJSON { _ = try Self.run(try listing(of: folders), in: session) }
    let places = BackupPlaces(folders, list: nil)
    var (first, count): (String?, Int) = (nil, 0)
    while let place = try places.next() {
      guard place.fault == nil else { continue }
      first = first ?? place.path
      count += 1
    }
    throw CommandFailure.usage(
      what, why: "none was named; \(HumanReadable.count(count, "backup")) \(count == 1 ? "was" : "were") found",
      try: "\(session.verb) \(ShellQuoting.argument(first, placeholder: "PATH"))")
  }

  private static func run(_ listing: some BackupVerb, in session: Session) throws -> CommandStatus {
    session.chosen = try ChosenFields(listing.chosen, of: BackupAnswer.table)
    return try ManyBackupsRun(listing, in: session).perform()
  }

  /// Whether an argument is the name of a device in the home folder.
  ///
  /// - Parameter home: The home folder; `nil` if none is configured.
  static func isDevice(_ argument: String, home: String?) -> Bool {
    guard let home else { return false }
    let name = argument.hasPrefix("device:") ? argument.dropFirst("device:".count) : argument[...]
    return !name.contains("/") && PathContent(of: "\(home)/\(name)") == .device
  }

  private func isAboutMany(_ session: Session) throws(CommandFailure) -> Bool {
    let isPage = common.isHTML || common.isJUnit
    guard let first = paths.first else { return true }
    let isList = paths.count > 1 || many.isGiven || common.isNDJSON || common.isCSV
    if !isPage, !isList {
      // A name that is a device's too is for the verb to refuse.
      let home = try session.homeDirectoryIfAny()
      guard !Self.takesDevices || !Self.isDevice(first, home: home) else { return false }
      // A script gets a list of any folder; a person gets the one backup in it.
      switch try BackupPlaces.content(of: first) {
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

/// Asks a verb about one backup, as a call about that one alone would; from several threads at once.
struct BackupAsking<Verb: BackupVerb>: Sendable {
  let verb: Verb
  /// "keyhaul inspect"
  let name: String
  /// "inspect"
  let word: String
  let environment: [String: String]
  let asked: [String]
  /// The digest of the question at the start of the run; `nil` without `--resume`.
  var questionDigest: String?
  let passwords: SharedPasswords
  private let turns = PasswordTurns()
  /// The most values of a document that stands in an answer: that is held whole, and asked for its columns.
  var maximumValueCount = JSONValue.maximumValueCount

  /// An answer, and whether it was there before.
  struct Answered: Sendable {
    let answer: BackupAnswer
    let isResumed: Bool
    /// The inputs that must match before the answer is used again; `nil` if they changed while the backup was read.
    var question: AnswerQuestion?
  }

  /// What shapes an answer. An answer without a password is none where there is one now.
  func question(hasPassword: Bool) -> [String] { asked + (hasPassword ? ["password"] : []) }

  func answer(about place: BackupPlace, _ journal: AnswerJournal?) -> Answered {
    if let fault = place.fault {
      let record = SessionRecord()
      return Answered(
        answer: answer(place, SubjectFacts(), hasPassword: false, ending: .failure(fault), record), isResumed: false)
    }
    if let journal, journal.mayKnow(place.path), let known = known(place, journal) {
      return Answered(answer: known, isResumed: true)
    }
    let alone = verb.alone(with: place.path)
    let record = SessionRecord()
    let session = session(for: alone, place, record)
    let ending: Result<CommandStatus, CommandFailure>
    do {
      ending = .success(session.settled(try alone.performAlone(in: session)))
    } catch {
      ending = .failure(session.settled(error))
    }
    let facts = session.subject ?? SubjectFacts()
    let digest = questionDigest.flatMap { $0 == (try? question(now: place)) ? $0 : nil }
    return Answered(
      answer: answer(place, facts, hasPassword: !session.offeredPasswords.isEmpty, ending: ending, record),
      isResumed: false,
      question: digest.map { AnswerQuestion(digest: $0, password: session.openingPassword?.mark) })
  }

  /// Returns the current digest of all inputs that shape an answer, except the backup and its password.
  private func question(now place: BackupPlace) throws -> String {
    let alone = verb.alone(with: place.path)
    let session = session(for: alone, place, SessionRecord())
    return try AnswerQuestion.digest(
      asked: asked, inputs: alone.inputs(in: session), alone.unlocking.opening, in: session)
  }

  private func session(for alone: Verb, _ place: BackupPlace, _ record: SessionRecord) -> Session {
    Session(
      recordingTo: record, common: alone.common, verb: name, environment: passwords.environment(from: environment),
      about: place.path, passwords)
  }

  /// What was answered before about the backup as it is now.
  private func known(_ place: BackupPlace, _ journal: AnswerJournal) -> BackupAnswer? {
    guard
      let archive = try? FoundArchive.read(
        at: .path(place.path), storage: verb.unlocking.storage, takesRemains: true)
    else { return nil }
    // The digest does not tell of all that the seal tells of.
    guard archive.seal?.violations.isEmpty != false else { return nil }
    let session = session(for: verb.alone(with: place.path), place, SessionRecord())
    session.subject = SubjectFacts(archive)
    let question = question(hasPassword: !session.offeredPasswords.isEmpty)
    guard let known = journal.answer(about: place.path, asked: question, digest: archive.digest),
      isOpened(archive, asIn: known.question, session)
    else { return nil }
    return known.answer
  }

  /// Whether the available passwords open a backup as the earlier run's passwords did.
  ///
  /// A password is recognized on the first backup that it opened in an earlier run. It then counts as the earlier run's
  /// password, so one key is derived per password, not per backup. Nothing about a password is stored.
  private func isOpened(_ archive: BackupArchive, asIn question: AnswerQuestion, _ session: Session) -> Bool {
    let offered = session.offeredPasswords
    guard verb.usesPassword, !offered.isEmpty else { return true }
    guard let mark = question.password else { return !archive.isEncrypted && !archive.hasFalseClaim }
    return turns.take(of: mark) {
      if offered.contains(where: { $0.isKnown(as: mark) }) { return true }
      let named = NamedArchive(name: session.subjectPath, archive: archive)
      let unlocker = ArchiveUnlocker(named, verb.unlocking.opening, in: session)
      guard (try? unlocker.key(verb.unlocking.password)) != nil, let opening = session.openingPassword else {
        return false
      }
      opening.know(as: mark)
      return true
    }
  }

  private func answer(
    _ place: BackupPlace, _ facts: SubjectFacts, hasPassword: Bool, ending: Result<CommandStatus, CommandFailure>,
    _ record: SessionRecord
  ) -> BackupAnswer {
    let entry = place.fault == nil ? BackupDirectory.entry(of: place.path) : nil
    var facts = facts
    // What could not be opened still says whose it is.
    if facts == SubjectFacts(), let entry { facts = SubjectFacts(entry) }
    let (status, failure): (CommandStatus, CommandFailure?)
    switch ending {
    case .success(let ended): (status, failure) = (ended, nil)
    case .failure(let failed): (status, failure) = (failed.status, failed)
    }
    var warnings = record.warnings
    let document = try? JSONValue(parsing: record.result, acceptingAtMost: maximumValueCount)
    if document == nil, !record.result.isEmpty {
      warnings.append(
        SessionRecord.Warning(
          "its result is left out here", why: "it is too large for a combined result",
          try: "\(name) \(ShellQuoting.argument(place.path, placeholder: "ARCHIVE"))"))
    }
    return BackupAnswer(
      verb: word, asked: question(hasPassword: hasPassword), path: place.path, facts: facts,
      isArchivedCopy: entry?.isArchivedCopy ?? false, status: status, failure: failure, warnings: warnings,
      document: document, result: document.flatMap { Verb.result(in: $0, code: status.code) },
      reason: document.flatMap { Verb.reason(in: $0, code: status.code) })
  }
}

/// A lock for each password mark. One thread at a time tries the passwords for a mark, and the other threads reuse its
/// result.
private final class PasswordTurns: Sendable {
  private final class Turn: Sendable { let lock = Locked(()) }
  private let turns = Locked<[String: Turn]>([:])

  func take(of mark: String, _ body: () -> Bool) -> Bool {
    let turn = turns.withLock { turns in
      if let turn = turns[mark] { return turn }
      let turn = Turn()
      turns[mark] = turn
      return turn
    }
    return turn.lock.withLock { _ in body() }
  }
}
