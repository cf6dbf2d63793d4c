import ArgumentParser
import KeyhaulKit

/// One call about many backups: each is asked as if it were alone, several at once, and the answers come in the order in
/// which the backups were named and found.
///
/// What is held are the backups that are read at the moment and the answers that wait for an earlier one.
struct ManyBackupsRun<Verb: BackupVerb> {
  private let verb: Verb
  private let session: Session
  let asking: BackupAsking<Verb>
  private let journal: AnswerJournal?
  let places: BackupPlaces
  private let form: any AnswerForm

  /// Finds out all that can be wrong with the call itself, before any backup is read.
  init(_ verb: Verb, in session: Session) throws {
    self.verb = verb
    self.session = session
    try verb.checkMany()
    try Self.checkNames(verb.paths, in: session)
    try verb.unlocking.opening.checkForMany()
    let asked = try verb.asked(in: session)
    let list = try verb.many.pathsFrom.map { path throws(CommandFailure) in try PathList(path, in: session) }
    let passwords = try Self.passwords(verb, in: session)
    if let output = verb.output, output != "-" {
      try session.common.check(output: output)
      try session.prepareOutput(output, inputs: verb.paths + verb.unlocking.files + verb.many.files)
    }
    if let resume = verb.many.resume {
      guard resume != "-" else {
        throw CommandFailure.usage(
          "--resume needs a file", why: "Keyhaul reads earlier results from it", try: "--resume FILE")
      }
      try session.requireOutput(
        resume, differsFrom: verb.paths + [verb.many.pathsFrom, verb.many.passwords], after: "--resume")
    }
    let word = session.verb.split(separator: " ").dropFirst().joined(separator: " ")
    let digest = try verb.many.resume.map { _ in
      try AnswerQuestion.digest(asked: asked, inputs: verb.inputs(in: session), verb.unlocking.opening, in: session)
    }
    let asking = BackupAsking(
      verb: verb, name: session.verb, word: word, environment: session.environment, asked: asked,
      questionDigest: digest, passwords: passwords)
    self.asking = asking
    if let path = verb.many.resume, let digest {
      journal = try AnswerJournal(
        path, verb: word, asked: Set([true, false].map { asking.question(hasPassword: $0) }), questionDigest: digest)
    } else {
      journal = nil
    }
    places = BackupPlaces(verb.paths, list: list)
    form = Self.form(of: verb, word: word, session)
    // What is not a file may be a password, and was refused by now.
    try verb.warnOfMany(in: session)
  }

  func perform() throws(CommandFailure) -> CommandStatus {
    var summary = AnswerSummary()
    if let output = verb.output, output != "-" {
      let isPrintedToo = session.isJSON
      try ReportFile.write(to: output) { (portion) throws(CommandFailure) in
        try answer(adding: &summary) { (text) throws(CommandFailure) in
          try Array(text.utf8).withRawBytes(portion)
          if isPrintedToo { try print(text) }
        }
      }
      session.note("Wrote \(UntrustedText.escaped(output)).")
    } else {
      try answer(adding: &summary, print)
    }
    if !form.hasSummary || verb.output.map({ $0 != "-" }) == true {
      for line in [summary.sentence] + summary.remarks { session.note(line) }
    }
    return summary.status
  }

  /// A row is written as soon as it is there: whoever reads it has whole ones, whenever the program ends.
  private func print(_ text: String) throws(CommandFailure) {
    try session.writeRaw(Array(text.utf8))
    try session.flush()
  }

  private func answer(
    adding summary: inout AnswerSummary, _ put: (String) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    var count = 0
    let (asking, journal) = (asking, journal)
    try ParallelMap.run(
      jobs: verb.many.jobCount, next: { () throws(CommandFailure) in try places.next() },
      shouldContinue: { Interruption.pending == nil },
      work: { (place) throws(CommandFailure) in asking.answer(about: place, journal) },
      deliver: { (answered) throws(CommandFailure) in
        let answer = answered.answer
        if !answered.isResumed { try journal?.add(answer, answered.question) }
        summary.add(answer, isResumed: answered.isResumed, needsAttention: Verb.note(on: answer) != nil)
        try put((count == 0 ? form.head() : "") + form.row(answer, isFirst: count == 0))
        count += 1
      })
    try Interruption.check(count == 0 ? "there are no results" : "\(HumanReadable.count(count, "backup")) had results")
    guard count > 0 else {
      throw CommandFailure(.noMatch, "no backup was given", why: "the list of paths is empty", try: "a list with paths")
    }
    summary.passedOver = places.passedOver
    let foot = form.foot(summary)
    if !foot.isEmpty { try put(foot) }
  }

  // MARK: The call

  /// Refuses an argument that is not a file where several are given: it may be a password, and is not repeated.
  private static func checkNames(_ paths: [String], in session: Session) throws(CommandFailure) {
    guard paths.count > 1 else { return }
    let home = try session.homeDirectoryIfAny()
    for (place, path) in paths.enumerated() {
      guard path != "-" else {
        throw .usage(
          "- cannot be combined with other backups", why: "\(paths.count) were given", try: "a separate command for -")
      }
      let isDevice = path.hasPrefix("device:") || home.map { PathContent(of: "\($0)/\(path)") } == .device
      let stands = (try? FileSystem.real.status(of: path)) ?? nil
      guard stands == nil, !isDevice else { continue }
      if let chosen = try? BackupChoice.path(path, backups: BackupChoice.backups), chosen != path { continue }
      if looksLikePath(path) {
        throw CommandFailure(
          .notFound, "\(path) does not exist", why: "no file or folder has this name",
          try: "check the path; --paths-from FILE for paths that may be missing")
      }
      throw .usage(
        "an argument of \(session.verb) is not a file",
        why: "it is number \(place + 1) of \(paths.count); Keyhaul does not repeat it here, because it may be a "
          + "password",
        try: "--password-file, --password-fd or --password-command; --paths-from FILE for paths that may be missing")
    }
  }

  /// Whether an argument is so clearly a path that it may be repeated: it ends like a backup, or is in a folder that
  /// exists. A password that was typed in the wrong place is neither.
  private static func looksLikePath(_ argument: String) -> Bool {
    let name = argument.lowercased()
    if BackupFinder.endings.contains(where: name.hasSuffix) { return true }
    let parent = argument.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    return !parent.isEmpty && PathContent(of: parent) == .directory
  }

  private static func passwords(_ verb: Verb, in session: Session) throws(CommandFailure) -> SharedPasswords {
    let flags = verb.unlocking.password
    if let path = verb.many.passwords {
      guard !flags.isGiven else {
        throw .usage("--passwords and a password cannot be used together", try: "use only one of them")
      }
      return SharedPasswords(named: nil, list: try PasswordList(path, in: session))
    }
    do throws(CommandFailure) {
      if let named = try session.sharedPassword(flags) { return SharedPasswords(named: named, list: nil) }
    } catch {
      // What the environment names and cannot be read is told of each backup that needs it.
      guard !flags.isGiven, error.status != .usage else { throw error }
      return SharedPasswords(named: nil, list: nil)
    }
    return SharedPasswords(named: try askedPassword(verb, in: session), list: nil)
  }

  /// Asks once for the password of all backups, on a terminal, if one of them may need it.
  private static func askedPassword(_ verb: Verb, in session: Session) throws(CommandFailure) -> SharedPassword? {
    guard verb.needsPassword, verb.many.pathsFrom == nil, session.terminal() != nil else { return nil }
    let places = BackupPlaces(verb.paths, list: nil)
    while let place = try places.next() {
      guard place.fault == nil else { continue }
      // Whether a backup in one file has a password shows only when the file is read.
      let mayNeedPassword = BackupDirectory.entry(of: place.path)?.isEncrypted ?? (PathContent(of: place.path) == .file)
      guard mayNeedPassword else { continue }
      let folder = verb.paths.count == 1 ? verb.paths.first : nil
      return try session.askedPassword(of: folder.map { "the backups in \($0)" } ?? "the backups")
    }
    return nil
  }

  private static func form(of verb: Verb, word: String, _ session: Session) -> any AnswerForm {
    let isFile = verb.output.map { $0 != "-" } ?? false
    if let chosen = session.chosen { return AnswerFieldsForm(chosen: chosen) }
    if verb.common.isNDJSON { return AnswerLinesForm() }
    if verb.common.isCSV {
      return AnswerTableForm(columns: Verb.columns, isShown: session.resultIsOnTerminal && !isFile)
    }
    if session.isJSON {
      let only = verb.paths.count == 1 && verb.many.pathsFrom == nil ? verb.paths.first : nil
      let isFolder = only.map { (try? BackupPlaces.areBackups(in: $0)) == true } ?? false
      return AnswerListForm(verb: word, folder: isFolder ? only : nil)
    }
    var style = session.resultStyle
    if isFile { (style.usesColor, style.cutsText) = (false, false) }
    return AnswerTextForm(
      style: style, columns: Verb.textColumns, call: session.verb, parts: verb.shownParts, note: { Verb.note(on: $0) })
  }
}

extension OpeningOptions {
  /// Refuses a device key that can be read once.
  fileprivate func checkForMany() throws(CommandFailure) {
    switch try deviceKeySource() {
    case .descriptor, .standardInput:
      throw .usage(
        "for many backups, the device key must come from a file", why: "a descriptor can be read only once",
        try: "--device-key-file PATH")
    case .file, .command, .prompt, nil: return
    }
  }
}

/// The flags of a verb that takes many backups in one call.
struct ManyBackupsOptions: ParsableArguments, Sendable {
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

  /// Whether the call is about many by its flags alone.
  var isGiven: Bool { given != nil }

  /// The first of them that was given.
  var given: String? {
    [
      pathsFrom.map { _ in "--paths-from" }, passwords.map { _ in "--passwords" }, jobs.map { _ in "--jobs" },
      resume.map { _ in "--resume" },
    ].compactMap(\.self).first
  }

  var jobCount: Int { jobs?.value ?? ParallelMap.standardJobCount }

  /// What is read or written besides the backups.
  var files: [String?] { [pathsFrom, passwords, resume] }
}

/// A number of jobs.
struct JobCount: Equatable, Sendable, ExpressibleByArgument {
  /// More than this many threads bring nothing on any machine that there is.
  static let most = 256

  let value: Int

  init?(argument: String) {
    guard let value = Int(argument), (1...Self.most).contains(value) else { return nil }
    self.value = value
  }
}
