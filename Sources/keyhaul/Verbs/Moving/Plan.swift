import ArchivedKeychain
import ArgumentParser
import BackupArchive
import CommandSession
import KeychainFormats
import KeychainRules
import Migration
import Reports
import VirtualDevice

/// `keyhaul plan`: what a restore would do, decided without changing anything.
struct Plan: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Say what a restore would do, without doing it",
    usage: "keyhaul plan ARCHIVE|DEVICE --to DEVICE [-o FILE] [--existing replace|merge]",
    examples: [
      "keyhaul plan family.backup --to new-phone -o move.plan",
      "keyhaul plan old-phone --to new-phone --compare",
    ],
    flags: [
      "--to", "--existing", "--output", "--format", "--compare", "--by-app", "--audit", "--expect", "--exit-code",
      "--redact", "--no-password", "--password-file", "--json",
    ])
  static let configuration = described(as: "plan")
  static let formats: [OutputFormat] = [.text, .json, .html]

  /// What is said of the plan.
  enum View: String, EnumerableFlag {
    case compare
    case byApp
    case audit

    static func help(for value: View) -> ArgumentHelp? {
      switch value {
      case .compare: "Compare backups with and without a password, restored to the same and to another device."
      case .byApp: "Show the items by app, those with the most losses first."
      case .audit: "For developers: deprecated classes, items that leave the device, items that never do."
      }
    }
  }

  @Argument(
    help: "The backup: a folder, a file, or - for a tar stream; or a device, as one made now would be.",
    completion: .devicesAndFiles)
  var source: String
  @OptionGroup var move: MoveOptions
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Save the plan in a file, for restore --plan; or its page, with --format html.", valueName: "file"),
    completion: .file())
  var output: String?
  @Flag(exclusivity: .exclusive) var view: View?
  @Option(
    help: ArgumentHelp(
      "Check the plan against a list of expectations; exit code 2 where it is not met. - is standard input.",
      valueName: "file"),
    completion: .file())
  var expect: String?
  @Flag(help: "End with exit code 2 if any item does not migrate.") var exitCode = false
  @Flag(help: "Leave out all names; the plan can then be shown to others.") var redact = false
  @Flag(help: "Of a device: think of a backup without a password.") var noPassword = false
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: OpeningOptions
  @OptionGroup var wait: WaitOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }

  func perform(in session: Session) throws -> CommandStatus {
    try checkFlags()
    let expectations = try expect.map { path throws(CommandFailure) in try ExpectationFile.read(path, in: session) }
    let finder = try ArgumentFinder(session)
    let found = try finder.keychain(source, wait: wait.time)
    let target = try finder.device(move.to, wait: wait.time)
    if let output, output != "-" {
      try session.prepareOutput(output, inputs: found.files + target.files + unlocking.files + [expect])
    }
    switch found {
    case .archive(let archive):
      let named = try archive.open(storage: unlocking.storage, isRestored: true, in: session)
      if noPassword {
        throw CommandFailure.usage(
          "\(named.name) is a backup that is there already", why: "--no-password is about one of a device that is not",
          try: "leave --no-password out")
      }
      return try target.hold(.reading) { device in
        try plan(named, found.word, onto: device, expectations, in: session)
      }
    case .device(let origin):
      if unlocking.password.isGiven {
        throw CommandFailure.usage(
          "a plan of a device takes no password", why: "no backup is opened; one with a password is assumed",
          try: "leave the password out, or --no-password")
      }
      try unlocking.opening.refuse(for: source)
      return try origin.hold(.reading) { held in
        try target.hold(.reading) { device in
          try plan(of: held, found.word, onto: device, expectations, in: session)
        }
      }
    }
  }

  private func checkFlags() throws(CommandFailure) {
    try common.check(output: output)
    if let name = view.map({ $0 == .byApp ? "--by-app" : "--\($0.rawValue)" }) {
      // The comparison has a page of its own; the other views have none.
      let hasPage = view == .compare
      if output != nil, !(hasPage && common.isHTML) {
        throw .usage("\(name) and -o cannot go together", why: "it is no plan to save", try: "a plan without \(name)")
      }
      if common.isHTML, !hasPage {
        throw .usage(
          "\(name) and --format html cannot go together", why: "the page is that of the plan", try: "one of them")
      }
      if expect != nil { throw .usage("\(name) and --expect cannot go together", try: "one of them") }
      if redact {
        throw .usage("\(name) and --redact cannot go together", why: "it is about names", try: "one of them")
      }
    }
    if common.isHTML, expect != nil {
      throw .usage(
        "--expect and --format html cannot go together", why: "the page is that of the plan", try: "one of them")
    }
    if redact, expect != nil {
      throw .usage("--redact and --expect cannot go together", why: "an expectation is about names", try: "one of them")
    }
  }

  /// Plans for an archive.
  private func plan(
    _ named: NamedArchive, _ word: String?, onto device: DeviceSession, _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandStatus {
    let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    let opened = try unlocker.open(with: unlocking.password, onto: device)
    let plan = try opened.plan(onto: device, policy: move.policy)
    let source = MoveSource(named, namesFrom: opened)
    let outlook = Outlook(source: source, word: word, device: device, plan: plan) { () throws(CommandFailure) in
      MigrationComparison(of: opened.archive, plan)
    }
    BackupDamageNotice(opened: opened.archive, name: named.name).warn(in: session)
    return try finish(outlook, expectations, isDamaged: !opened.archive.damage.isEmpty, in: session)
  }

  /// Plans for a backup that a device would give now.
  private func plan(
    of held: DeviceSession, _ word: String?, onto device: DeviceSession, _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandStatus {
    let plan: MigrationPlan
    do throws(MigrationError) {
      let forecast = try BackupForecast(of: held, hasPassword: !noPassword)
      plan = try Restorer.plan(forecast, onto: device, policy: move.policy)
    } catch {
      throw CommandFailure(error, device: held.name)
    }
    let source = try MoveSource(held, hasPassword: !noPassword)
    let outlook = Outlook(source: source, word: word, device: device, plan: plan) { () throws(CommandFailure) in
      do throws(MigrationError) {
        return try MigrationComparison(of: held, onto: device, hasPassword: !noPassword)
      } catch {
        throw CommandFailure(error, device: held.name)
      }
    }
    return try finish(outlook, expectations, isDamaged: false, in: session)
  }

  /// A plan, and how to compare it with the other ways of restoring where that is asked for.
  private struct Outlook {
    let source: MoveSource
    /// What a command says for it; `nil` for a stream.
    let word: String?
    let device: DeviceSession
    let plan: MigrationPlan
    let compare: () throws(CommandFailure) -> MigrationComparison
  }

  private func finish(
    _ outlook: Outlook, _ expectations: [PlanExpectation]?, isDamaged: Bool, in session: Session
  ) throws -> CommandStatus {
    let report = try PlanReport(
      outlook.plan, of: outlook.source, onto: outlook.device, made: outlook.device.environment.clock.now(),
      isRedacted: redact)
    var missed = 0
    switch view {
    case .compare:
      try say(ComparisonReport(comparison: outlook.compare(), report: report), of: outlook.word, in: session)
    case .byApp: try session.say(AppReport(report: report))
    case .audit: try session.say(AuditReport(audit: KeychainAudit(outlook.compare()), report: report))
    case nil:
      if let expectations {
        let result = ExpectationReport(expectations: expectations, report)
        missed = result.misses.count
        try save(report, to: output, in: session) { () throws(CommandFailure) in try session.say(result) }
      } else {
        try say(report, of: outlook.word, in: session)
      }
    }
    let summary = report.plan.summary
    if missed > 0 { return .differs }
    if summary.unreadable > 0 || isDamaged { return .partial }
    return exitCode && summary.migrates < summary.total ? .differs : .ok
  }

  /// Saves the plan where `-o` says, and prints what is to be printed beside it: both, or neither.
  private func save(
    _ report: PlanReport, to output: String?, in session: Session, printing: () throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    guard let output else { return try printing() }
    let bytes = try report.encoded()
    if output == "-" { return try session.writeRaw(bytes) }
    try session.changing(DoneChange("the plan was saved in \(output)")) { () throws(CommandFailure) in
      try ReportFile.write(bytes, to: output) { () throws(CommandFailure) in
        try printing()
        try session.flush()
      }
    }
  }

  private func say(_ report: PlanReport, of word: String?, in session: Session) throws {
    if common.isHTML {
      return try session.deliver(report.page(from: word, to: move.to), to: output)
    }
    try save(report, to: output, in: session) { () throws(CommandFailure) in try print(report, in: session) }
  }

  private func say(_ report: ComparisonReport, of word: String?, in session: Session) throws {
    guard common.isHTML else { return try session.say(report) }
    try session.deliver(report.page(from: word, to: move.to), to: output)
  }

  private func print(_ report: PlanReport, in session: Session) throws(CommandFailure) {
    if session.isJSON { return try session.writeRaw(report.encoded()) }
    try report.say(in: session)
    guard let output else { return }
    try session.say()
    let saved = "Saved to \(HostileText.shown(output))."
    guard !redact, !report.source.isDevice else {
      try session.say("\(saved) It is a report to read: restore --plan takes the plan of an archive, with names.")
      return
    }
    let policy = move.policy == .replace ? "" : " --existing \(move.policy.rawValue)"
    try session.say("\(saved) To do exactly this:")
    try session.say(
      "  keyhaul restore \(ShellWord.quoted(source)) --to \(ShellWord.quoted(move.to)) --plan \(ShellWord.quoted(output))\(policy)"
    )
  }
}

extension PlanReport {
  /// The plan in text, on standard output; the warning that nothing moves goes first, to standard error.
  func say(in session: Session) throws(CommandFailure) {
    if let warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    let style = session.resultStyle
    for line in heading(style: style) { try session.say(line) }
    try session.say()
    let text = text(showsAll: session.common.verbose > 0)
    for line in text.legend(style: style) { try session.say(line) }
    for line in text.lines(style: style) { try session.say(line) }
  }
}
