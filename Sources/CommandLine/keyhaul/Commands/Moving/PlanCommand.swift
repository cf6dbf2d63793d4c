import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul plan`: what is lost with a device, and what a restore would do, decided without changing anything.
struct PlanCommand: BackupVerb {
  static let screen = HelpScreen(
    sentence: "Show what you would lose in a move, or what a restore would do",
    usage: "keyhaul plan ARCHIVE|DEVICE|FOLDER... [--to DEVICE] [-o FILE] [flags]",
    examples: [
      "keyhaul plan family.backup",
      "keyhaul plan family.backup --to new-phone -o move.plan",
    ],
    flags: [
      .init("--to", "the target (default: a new device and the same one)"),
      .init("--source", "the source device"),
      "--existing", "--output", "--format", .init("--compare", "compare backups with and without a password"),
      .init("--by-app", "group the items by app, most losses first"),
      .init("--audit", "list deprecated classes and what leaves the device"),
      .init("--expect", "check the plan against a list of expectations"), "--exit-code",
      "--redact", "--no-password", "--password-file", "--json",
    ])
  static let configuration = described(as: "plan")
  static let formats: [OutputFormat] = [.text, .json, .html, .junit, .ndjson, .csv]

  /// What is said of the plan.
  enum View: String, EnumerableFlag {
    case compare
    case byApp
    case audit

    var flag: String { self == .byApp ? "--by-app" : "--\(rawValue)" }

    static func help(for value: View) -> ArgumentHelp? {
      switch value {
      case .compare: "Compare backups with and without a password, each restored to the same device and to another."
      case .byApp: "Group the items by app, starting with the apps that lose the most."
      case .audit: "List the deprecated classes and the items that can leave the device."
      }
    }
  }

  @Argument(
    help: ArgumentHelp(
      "The backup: a folder, a file, or - for a tar stream. A device, keychain dump or database is treated as if it "
        + "had been backed up. Several backups, or a folder of them, get one result each.",
      valueName: "source"),
    completion: .devicesAndFiles)
  var paths: [String] = []
  @OptionGroup var move: MoveOptions
  @Option(
    name: .customLong("source"),
    help: ArgumentHelp(
      "For a backup: the source device, to list items that never entered the backup. Keyhaul finds the device "
        + "by itself if it is in the device folder.",
      valueName: "device"),
    completion: .deviceNames)
  var sourceDevice: String?
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Save the plan in a file, for restore --plan. With --format html or junit, write the page or the test results. "
        + "Without --to, write the report.",
      valueName: "file"),
    completion: .file())
  var output: String?
  @Flag(exclusivity: .exclusive) var view: View?
  @Option(
    help: ArgumentHelp(
      "Check the plan, or all four restores of --compare, against a list of expectations; - is standard input. Exit "
        + "with 2 if an expectation is not met.",
      valueName: "file"),
    completion: .file())
  var expect: String?
  @Flag(help: "Exit with 2 if any item does not move.") var exitCode = false
  @Flag(help: "Leave all names out of the plan. Messages on the terminal still contain them.")
  var redact = false
  @Flag(help: "Plan for a backup without a password (devices only).") var noPassword = false
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Many backups") var many: ManyBackupsOptions
  @OptionGroup var chosen: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }
  var source: String { paths.first ?? "" }

  func performAlone(in session: Session) throws -> CommandStatus {
    try checkFlags()
    try session.requirePlaceForPage(output)
    let expectations = try expect.map { path throws(CommandFailure) in try ExpectationFile.read(path, in: session) }
    let finder = try ArgumentFinder(session, databaseKeys)
    let found = try finder.keychain(source)
    try databaseKeys.check([found])
    let target = try move.to.map { to throws(CommandFailure) in try self.target(to, finder) }
    let sourceDevice = try sourceDevice.map { name throws(CommandFailure) in try finder.device(name) }
    if let output, output != "-" {
      let devices = (target?.files ?? []) + (sourceDevice?.files ?? [])
      try session.prepareOutput(output, inputs: found.files + devices + unlocking.files + [expect])
    }
    do {
      return try perform(on: found, onto: target, sourceDevice, expectations, in: session)
    } catch var failure as CommandFailure where failure.status == .damaged {
      failure.advice = adviceForDamage(failure.advice)
      throw failure
    }
  }

  /// The library's advice for a damaged backup.
  private static let adviceAnotherCopy = "use another copy"

  /// Returns advice for a backup that is too damaged for a plan.
  ///
  /// - Parameter advice: The library's advice.
  private func adviceForDamage(_ advice: String?) -> String? {
    guard let advice, advice == Self.adviceAnotherCopy else { return advice }
    let call = SuggestedCommands.verify(ShellQuoting.argument(source, placeholder: "ARCHIVE"))
    return "make a new backup while the source device still works, or \(advice); \(call) shows what is damaged"
  }

  private func perform(
    on found: FoundKeychain, onto target: FoundDevice?, _ sourceDevice: FoundDevice?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandStatus {
    switch found {
    case .archive(let archive):
      let named = try archive.open(storage: unlocking.storage, for: .planning, in: session)
      if noPassword {
        throw CommandFailure.usage(
          "\(named.name) is an existing backup", why: "--no-password plans a new backup of a device",
          try: "leave --no-password out")
      }
      let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
      // Nobody types while a device is held; that each is there and can be read is known before.
      let hardware = try FoundDevice.hold(target, sourceDevice) { device, _ in
        try unlocker.hardwareKey(excluding: device)
      }
      let key = try unlocker.key(unlocking.password)
      return try FoundDevice.hold(target, sourceDevice) { device, sourceDevice in
        guard let device else {
          let opened = try unlocker.openForFutures(with: key, hardware, sourceDevice: sourceDevice)
          return try answer(for: named, opened, found.word, expectations, in: session)
        }
        let opened = try unlocker.open(
          with: key, hardware, onto: HardwareKey(.named, try device.deviceKey()), for: .planning)
        let sourceDevice = try unlocker.sourceDevice(
          of: opened.archive, named: sourceDevice, orTarget: device, with: key)
        let codes =
          countsCodes(expectations, in: session)
          ? unlocker.codes(of: sourceDevice?.returning ?? opened.archive, with: key) : nil
        return try plan(
          named, opened, found.word, onto: device, sourceDevice: sourceDevice?.items, codes, expectations, in: session)
      }
    case .dump(let dump): return try plan(dump, onto: target, sourceDevice: sourceDevice, expectations, in: session)
    case .device(let origin):
      if sourceDevice != nil {
        throw CommandFailure.usage(
          "--source is for backups only", why: "\(source) is a device, so every item is known",
          try: "leave --source out")
      }
      if unlocking.password.isGiven {
        throw CommandFailure.usage(
          "a plan made from a device needs no password", why: "it opens no backup; it assumes one with a password",
          try: "leave the password out; --no-password plans for a backup without one")
      }
      try unlocking.opening.refuse(for: source)
      return try origin.hold(.reading) { openDevice in
        try FoundDevice.hold(target, nil) { device, _ in
          guard let device else { return try answer(for: openDevice, found.word, expectations, in: session) }
          return try plan(of: openDevice, found.word, onto: device, expectations, in: session)
        }
      }
    }
  }

  /// Plans for an archive.
  ///
  /// - Parameters:
  ///   - sourceDevice: The items of the source device that are not in the backup, if it is available.
  ///   - codes: The one-time passwords of the backup; `nil` if the result does not contain them.
  private func plan(
    _ named: NamedArchive, _ opened: ArchiveUnlocker.OpenedForDevice, _ word: String?, onto device: DeviceSession,
    sourceDevice: SourceDeviceItems?, _ codes: FoundCodes?, _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandStatus {
    let plan = try opened.plan(onto: .device(device), policy: move.policy, for: .planning)
    var source = ReportSource(named, namesFrom: opened)
    source.sourceDeviceItems = sourceDevice
    source.condition = BackupCondition(damage: opened.archive.damage, findings: source.shownFindings)
    var report = try report(plan, of: source, onto: device, in: session)
    report.sourceArgument = word
    report.codes = codes.map { $0.overview(moving: plan, names: source.apps) }
    let outlook = Outlook(report: report, word: word, isSameDevice: plan.isSameDevice) {
      () throws(CommandFailure) in MigrationComparison(of: opened.archive, plan)
    }
    BackupDamageNotice(opened: opened.archive, name: named.name).warn(in: session)
    return try finish(outlook, expectations, isDamaged: !opened.archive.damage.isEmpty, in: session)
  }

  /// Plans for a backup that a device would give now.
  private func plan(
    of openDevice: DeviceSession, _ word: String?, onto device: DeviceSession, _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandStatus {
    let (plan, simulatedBackup): (MigrationPlan, SimulatedBackup)
    do throws(KeyhaulError) {
      let isCompared = view == .compare || view == .audit
      simulatedBackup = try SimulatedBackup(of: openDevice, hasPassword: !noPassword, isPlannedOnce: !isCompared)
      plan = try Restorer.plan(simulatedBackup, onto: device, policy: move.policy, for: .planning)
    } catch {
      throw CommandFailure(error, using: openDevice.name)
    }
    let source = try ReportSource(openDevice, hasPassword: !noPassword)
    var report = try report(plan, of: source, onto: device, in: session)
    report.sourceArgument = word
    if countsCodes(expectations, in: session) {
      report.codes = try FoundCodes(of: simulatedBackup, on: openDevice).overview(moving: plan, names: source.apps)
    }
    let isItself = openDevice.device.directory == device.device.directory
    let outlook = Outlook(report: report, word: word, isSameDevice: isItself) { () throws(CommandFailure) in
      do throws(KeyhaulError) {
        return try MigrationComparison(of: openDevice, onto: device, knowing: simulatedBackup)
      } catch {
        throw CommandFailure(error, using: openDevice.name)
      }
    }
    return try finish(outlook, expectations, isDamaged: false, in: session)
  }

  /// Whether the result says how many one-time passwords there are.
  func countsCodes(_ expectations: [PlanExpectation]?, in session: Session) -> Bool {
    view == nil && expectations == nil && !session.isJSON
  }

  func report(
    _ plan: MigrationPlan, of source: ReportSource, onto device: DeviceSession, in session: Session
  ) throws(CommandFailure) -> PlanReport {
    var report = try PlanReport(
      plan, of: source, onto: device, isRedacted: redact)
    report.unlockCommand = session.completed(report.unlockCommand)
    return report
  }

  /// A plan, and how to compare it with the other ways of restoring where that is asked for.
  struct Outlook {
    let report: PlanReport
    /// What a command says for the source; `nil` for a stream.
    let word: String?
    /// Whether the device is the one that is moved from; `nil` if the keys prove neither.
    let isSameDevice: Bool?
    let compare: () throws(CommandFailure) -> MigrationComparison
  }

  func finish(
    _ outlook: Outlook, _ expectations: [PlanExpectation]?, isDamaged: Bool, in session: Session
  ) throws -> CommandStatus {
    let report = outlook.report
    var isAsExpected = true
    switch (expectations, view) {
    case (let expectations?, _): isAsExpected = try check(expectations, outlook, report, in: session)
    case (nil, .compare):
      try say(ComparisonReport(comparison: outlook.compare(), report: report), of: outlook.word, in: session)
    case (nil, .byApp): try session.say(AppReport(report: report))
    case (nil, .audit): try session.say(AuditReport(audit: KeychainAudit(outlook.compare()), report: report))
    case (nil, nil): try say(report, of: outlook.word, in: session)
    }
    let summary = report.plan.summary
    if !isAsExpected { return .differs }
    if summary.unreadable > 0 || isDamaged { return .partial }
    let isLost = summary.migrates < summary.total || report.source.sourceDeviceItems?.absent.isEmpty == false
    return exitCode && isLost ? .differs : .ok
  }

  /// Saves the plan where `-o` says, and prints what is to be printed beside it: both, or neither.
  func saveAndPrint(
    _ report: PlanReport, in session: Session, printing: () throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    try saveAndPrint("the plan was saved", in: session, printing: printing, saving: report.forEachPortion)
  }

  /// The same for other bytes, which `saving` gives in portions.
  func saveAndPrint(
    _ done: String, in session: Session, printing: () throws(CommandFailure) -> Void,
    saving: ((UnsafeRawBufferPointer) throws(CommandFailure) -> Void) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    guard let output else { return try printing() }
    if output == "-" { return try saving { (bytes) throws(CommandFailure) in try session.writeRaw(bytes) } }
    func finish() throws(CommandFailure) {
      try printing()
      try session.flush()
    }
    try session.changing(DoneChange("\(done) in \(output)")) { () throws(CommandFailure) in
      try ReportFile.write(to: output, beforeNaming: finish, saving)
    }
  }

  private func say(_ report: PlanReport, of word: String?, in session: Session) throws {
    if common.isHTML {
      return try session.deliver(
        report.page(
          from: word, to: move.to.map(session.lastingWord(ofDevice:)), program: ProgramVersion.signature), to: output)
    }
    try saveAndPrint(report, in: session) { () throws(CommandFailure) in try print(report, in: session) }
  }

  private func say(_ report: ComparisonReport, of word: String?, in session: Session) throws {
    guard common.isHTML else { return try session.say(report) }
    try session.deliver(
      report.page(
        from: word, to: move.to.map(session.lastingWord(ofDevice:)), program: ProgramVersion.signature), to: output)
  }

  private func print(_ report: PlanReport, in session: Session) throws(CommandFailure) {
    if session.chosen != nil { return try session.answer(report.document.json) }
    if session.isJSON { return try report.sayDocument(in: session) }
    try report.say(in: session)
    guard let output else { return }
    try session.say()
    let saved = "Saved to \(UntrustedText.escaped(output))."
    guard !redact, report.source.isArchive, let to = move.to else {
      try session.say("\(saved) It is only a report: restore --plan needs a plan made from a backup, with names.")
      return
    }
    if let obstacle = report.obstacle { return try session.say("\(saved) \(obstacle)") }
    let policy = move.policy == .replace ? "" : " --existing \(move.policy.rawValue)"
    let words = [(source, "ARCHIVE"), (to, "DEVICE"), (output, "PLAN")].map {
      ShellQuoting.argument($0, placeholder: $1)
    }
    try session.say("\(saved) To do exactly this:")
    try session.say(
      "  " + session.completed("keyhaul restore \(words[0]) --to \(words[1]) --plan \(words[2])\(policy)"))
  }
}

extension PlanCommand {
  /// Refuses flags that cannot go together.
  func checkFlags() throws(CommandFailure) {
    try common.check(output: output)
    if move.to == nil, move.existing.given != nil {
      throw .usage(
        "--existing needs --to", why: "without a target, the plan assumes empty devices",
        try: "--to DEVICE, or leave --existing out")
    }
    if let name = view?.flag {
      // The comparison has a page of its own; the other views have none.
      let hasPage = view == .compare
      let savesResults = expect != nil && common.isJUnit
      if output != nil, !(hasPage && common.isHTML), !savesResults {
        throw .usage(
          "\(name) and -o cannot be used together", why: "\(name) produces no plan", try: "a plan without \(name)")
      }
      if common.isHTML, !hasPage {
        throw .usage(
          "\(name) and --format html cannot be used together", why: "the page shows the plan",
          try: "use only one of them")
      }
      if expect != nil, view != .compare {
        throw .usage("\(name) and --expect cannot be used together", try: "only one of them, or --compare --expect")
      }
      if redact {
        throw .usage(
          "\(name) and --redact cannot be used together", why: "the result of \(name) contains names",
          try: "use only "
            + "one of them")
      }
    }
    try checkExpectationFlags()
  }
}

extension PlanCommand {
  /// The members of each of `items` in `migration-plan/1`.
  static let table = FieldTable(
    "items",
    [
      "index", "kind", "label", "account", "service", "server", "access_group", "protection", "outcome", "change",
      "reason", "detail", "warning",
    ])
  /// The members of each of `items` in `migration-futures/1`.
  static let futuresTable = FieldTable(
    "items",
    ["index", "kind", "label", "account", "service", "server", "access_group", "protection", "outcomes"])
  static let rowsAdvice = "a plan without --compare, --by-app, --audit or --expect; or several backups"
  var rows: FieldTable? {
    guard view == nil, expect == nil else { return nil }
    return move.to == nil ? Self.futuresTable : Self.table
  }

  static var takesDevices: Bool { true }
  var needsPassword: Bool { true }

  func listing(of folders: [String]) throws -> any BackupVerb { try Inspect.parse(folders) }

  func alone(with path: String) -> PlanCommand {
    var verb = self
    verb.paths = [path]
    verb.output = nil
    verb.common.askNothing()
    return verb
  }

  func checkMany() throws(CommandFailure) {
    try checkFlags()
    if redact {
      throw .usage(
        "--redact works only with the plan of one backup", why: "each row names its backup",
        try: "plan BACKUP --redact for each backup")
    }
    if output != nil, common.format == nil, !common.json {
      throw .usage(
        "-o saves the plan of one backup", why: "several backups produce a table, which restore does not accept",
        try: "--format text, json, ndjson or csv, to save their results")
    }
    guard expect == "-" else { return }
    throw .usage(
      "for many plans, --expect needs a file", why: "standard input can be read only once",
      try: "--expect FILE")
  }

  /// A target is no argument, and two sources are rarely a backup and a device.
  func warnOfMany(in session: Session) throws(CommandFailure) {
    guard paths.count == 2, move.to == nil else { return }
    let (home, target) = (try session.homeDirectoryIfAny(), paths[1])
    let isFileToo = ((try? FileSystem.real.status(of: target)) ?? nil) != nil
    guard Self.isDevice(target, home: home), !isFileToo, !Self.isDevice(paths[0], home: home) else { return }
    session.warn(
      "\(target) would be treated as a source device", why: "the target device follows --to",
      try: "--to \(ShellQuoting.quote(target))")
  }

  var shownParts: [String] {
    (move.to.map { ["--to", ShellQuoting.quote($0)] } ?? []) + (view.map { [$0.flag] } ?? [])
  }

  /// With the target as it is now: an answer about an earlier state of it is another one.
  func asked(in session: Session) throws -> [String] {
    var flags = unlocking.opening.asked + common.detail
    if let view { flags.append(view.flag) }
    if let expect { flags.append("--expect \(expect)") }
    if let sourceDevice { flags.append("--source \(sourceDevice)") }
    if exitCode { flags.append("--exit-code") }
    if noPassword { flags.append("--no-password") }
    guard let to = move.to else { return flags }
    let finder = try ArgumentFinder(session, databaseKeys)
    let target = try self.target(to, finder)
    let revision = try target.hold(.reading) { $0.record.revision }
    return flags + ["--to \(target.name) \(revision)", "--existing \(move.policy.rawValue)"]
  }

  func inputs(in session: Session) throws -> [(flag: String, content: [UInt8])] {
    var inputs: [(flag: String, content: [UInt8])] = []
    if let expect { inputs.append(("--expect", try ExpectationFile.bytes(of: expect, in: session))) }
    let finder = try ArgumentFinder(session, databaseKeys)
    if let to = move.to { inputs.append(("--to", try target(to, finder).hold(.reading) { try $0.identity() })) }
    if let sourceDevice {
      inputs.append(("--source", try finder.device(sourceDevice).hold(.reading) { try $0.identity() }))
    }
    return inputs
  }

  static let columns = [
    AnswerColumn("total") { counts(in: $0)?.total.map { .integer($0) } },
    AnswerColumn("arrives") { counts(in: $0)?.arrives.map { .integer($0) } },
    AnswerColumn("stays_behind") { member("stays_behind", in: $0) },
    AnswerColumn("unreadable") { member("unreadable", in: $0) }, AnswerColumn("removed") { member("removed", in: $0) },
  ]

  static let textColumns = [
    AnswerTextColumn(title: "MOVE", width: 14, isShown: isMoveKnown) { document in
      guard let counts = counts(in: document), let total = counts.total, let arrives = counts.arrives else {
        return nil
      }
      return "\(HumanReadable.grouped(arrives)) of \(HumanReadable.grouped(total))"
    }
  ]

  /// Returns whether the items would move: a backup that cannot be restored as it is moves none.
  @Sendable private static func isMoveKnown(_ answer: BackupAnswer) -> Bool {
    guard let document = answer.document else { return false }
    let findings = document["findings"]?.arrayValue ?? []
    if findings.contains(where: { $0["restorable"]?.booleanValue == false }) { return false }
    // Without damage, only unreadable items lead to this code.
    let unreadable = member("unreadable", in: document)?.integerValue ?? 0
    return answer.code != CommandStatus.partial.code || unreadable > 0
  }

  static func result(in document: JSONValue, code: Int32) -> BackupResult? {
    guard code == 0 else { return nil }
    return document["expectations"] == nil && document["met"] == nil ? .planned : .asExpected
  }

  static func reason(in document: JSONValue, code: Int32) -> String? {
    if let misses = document["misses"]?.arrayValue, !misses.isEmpty {
      return "\(HumanReadable.count(misses.count, "expectation")) \(misses.count == 1 ? "is" : "are") not met"
    }
    let summary = summary(of: document)
    if let count = summary?["unreadable"]?.integerValue, count > 0 {
      return "\(HumanReadable.count(Int(clamping: count), "item")) cannot be read"
    }
    // Items that a rule keeps are a reason only for --exit-code. Damage has its own warnings.
    guard code == CommandStatus.differs.code, let count = summary?["stays_behind"]?.integerValue, count > 0 else {
      return nil
    }
    return "\(HumanReadable.count(Int(clamping: count), "item")) \(count == 1 ? "does" : "do") not move"
  }

  /// Returns what a backup needs whose items do not move only because it has no password, as the plan of it alone says it.
  static func note(on answer: BackupAnswer) -> String? {
    guard answer.code == 0, let document = answer.document, isMoveKnown(answer), counts(in: document)?.arrives == 0,
      document["source"]?["encrypted"]?.booleanValue == false,
      document["items"]?.arrayValue?.contains(where: isHeldByMissingPassword) == true
    else { return nil }
    let cause = "the backup has no password"
    let entry = document["before_wiping"]?.arrayValue?.first?["entries"]?.arrayValue?.first
    guard let step = entry?["do"]?.stringValue, step.hasPrefix("Make a ") else { return cause }
    return "\(cause). \(step)"
  }

  private static func isHeldByMissingPassword(_ item: JSONValue) -> Bool {
    let outcome = item["outcomes"]?.arrayValue?.first ?? item
    return outcome["reason"]?.stringValue == Reason.backupNotEncrypted.rawValue
  }

  /// Where a document counts: of a plan in its summary, of a plan without a target in what a new device would get.
  private static func summary(of document: JSONValue) -> JSONValue? {
    document["summary"] ?? document["futures"]?.arrayValue?.first
  }

  private static func member(_ name: String, in document: JSONValue) -> JSONValue? { summary(of: document)?[name] }

  private static func counts(in document: JSONValue) -> (total: Int64?, arrives: Int64?)? {
    guard let summary = summary(of: document) else { return nil }
    return (summary["total"]?.integerValue, (summary["migrates"] ?? summary["arrives"])?.integerValue)
  }
}
