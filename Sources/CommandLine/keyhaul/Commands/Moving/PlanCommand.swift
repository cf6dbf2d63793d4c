import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul plan`: shows what is lost with a device, and what a restore would do, without changing anything.
struct PlanCommand: BatchCommand {
  static let helpScreen = HelpScreen(
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
  static let configuration = makeConfiguration(named: "plan")
  static let formats: [OutputFormat] = [.text, .json, .html, .junit, .ndjson, .csv]

  /// A view that shows something other than the plan.
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
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Many backups") var batchOptions: BatchOptions
  @OptionGroup var fieldOptions: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var source: String { paths.first ?? "" }

  func runSingle(in session: Session) throws -> CommandExitStatus {
    try checkFlags()
    try session.requireOutputForPage(output)
    let expectations = try expect.map { path throws(CommandError) in try ExpectationFile.read(path, in: session) }
    let resolver = try SourceResolver(session, databaseKeys)
    let resolvedSource = try resolver.keychain(source)
    try databaseKeys.check([resolvedSource])
    let target = try move.to.map { name throws(CommandError) in try self.target(name, resolver) }
    let sourceDevice = try sourceDevice.map { name throws(CommandError) in try resolver.device(name) }
    if let output, output != "-" {
      let devices = (target?.files ?? []) + (sourceDevice?.files ?? [])
      try session.prepareOutput(output, inputs: resolvedSource.files + devices + accessOptions.files + [expect])
    }
    do {
      return try plan(from: resolvedSource, onto: target, sourceDevice: sourceDevice, expectations, in: session)
    } catch var failure as CommandError where failure.status == .damaged && failure.suggestsAnotherCopy {
      failure.advice = adviceForDamagedBackup
      throw failure
    }
  }

  /// The advice for a backup that is too damaged for a plan.
  private var adviceForDamagedBackup: String {
    let command = SuggestedCommands.verify(ShellQuoting.argument(source, placeholder: "ARCHIVE"))
    return
      "make a new backup while the source device still works, or use another copy; \(command) shows what is damaged"
  }

  private func plan(
    from resolvedSource: ResolvedSource, onto target: ResolvedDevice?, sourceDevice: ResolvedDevice?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    let argument = resolvedSource.suggestedArgument
    switch resolvedSource {
    case .backup(let backup):
      return try openAndPlan(
        backup, argument: argument, onto: target, sourceDevice: sourceDevice, expectations, in: session)
    case .dump(let dump):
      return try planDump(dump, onto: target, sourceDevice: sourceDevice, expectations, in: session)
    case .device(let device):
      try rejectBackupFlags()
      return try device.withSession(.reading) { openDevice in
        try ResolvedDevice.withSessions(target: target) { target, _ in
          guard let target else {
            return try planDeviceWithoutTarget(openDevice, argument: argument, expectations, in: session)
          }
          return try planDevice(openDevice, argument: argument, onto: target, expectations, in: session)
        }
      }
    }
  }

  /// Rejects flags that apply only to a backup.
  private func rejectBackupFlags() throws(CommandError) {
    if sourceDevice != nil {
      throw .usage(
        "--source is for backups only", why: "\(source) is a device, so every item is known", try: "leave --source out")
    }
    if accessOptions.password.isGiven {
      throw .usage(
        "a plan made from a device needs no password", why: "it opens no backup; it assumes one with a password",
        try: "leave the password out; --no-password plans for a backup without one")
    }
    try accessOptions.decryption.reject(for: source)
  }

  /// Opens a backup, decrypts it, and plans for it.
  private func openAndPlan(
    _ backup: ResolvedBackup, argument: String?, onto target: ResolvedDevice?, sourceDevice: ResolvedDevice?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    let loaded = try backup.open(storage: accessOptions.storage, for: .planning, in: session)
    if noPassword {
      throw CommandError.usage(
        "\(loaded.name) is an existing backup", why: "--no-password plans a new backup of a device",
        try: "leave --no-password out")
    }
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    // The devices' file locks are not held while the user types a password. Therefore, the device key is read first, and
    // an unreadable key is reported before the user types.
    let deviceKey = try ResolvedDevice.withSessions(target: target, sourceDevice: sourceDevice) { target, _ in
      try unlocker.deviceKey(excluding: target)
    }
    let key = try unlocker.key(accessOptions.password)
    return try ResolvedDevice.withSessions(target: target, sourceDevice: sourceDevice) { target, namedSource in
      guard let target else {
        let opened = try unlocker.decryptForOutlook(with: key, deviceKey, sourceDevice: namedSource)
        return try planBackupWithoutTarget(loaded, opened, argument: argument, expectations, in: session)
      }
      let opened = try unlocker.open(
        with: key, deviceKey: deviceKey, onto: DeviceKeyCandidate(.named, try target.deviceKey()), for: .planning)
      let sourceDevice = try unlocker.sourceDevice(
        of: opened.backup, named: namedSource, orTarget: target, with: key)
      let oneTimePasswords =
        countsOneTimePasswords(expectations, in: session)
        ? unlocker.oneTimePasswords(of: sourceDevice?.unlockedBackup ?? opened.backup, with: key) : nil
      return try planBackup(
        loaded, opened, argument: argument, onto: target, sourceDeviceItems: sourceDevice?.items,
        oneTimePasswords: oneTimePasswords, expectations, in: session)
    }
  }

  /// Plans the restore of a backup to a device.
  ///
  /// - Parameters:
  ///   - loaded: The backup, not yet decrypted.
  ///   - opened: The decrypted backup.
  ///   - argument: The argument that names the backup in suggested commands; `nil` if the backup is a stream.
  ///   - device: The target.
  ///   - sourceDeviceItems: The source device's items; `nil` if they are not available.
  ///   - oneTimePasswords: The one-time passwords of the backup; `nil` if the result does not contain them.
  ///   - expectations: The expectations to check; `nil` if there are none.
  private func planBackup(
    _ loaded: LoadedBackup, _ opened: BackupUnlocker.BackupForDevice, argument: String?, onto device: DeviceSession,
    sourceDeviceItems: SourceDeviceItems?, oneTimePasswords: OneTimePasswordSources?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    let plan = try opened.plan(onto: .device(device), policy: move.policy, for: .planning)
    var source = ReportSource(loaded, namesFrom: opened)
    source.sourceDeviceItems = sourceDeviceItems
    source.condition = BackupCondition(damage: opened.backup.damage, findings: source.reportedFindings)
    var report = try makeReport(plan, of: source, onto: device, in: session)
    report.sourceArgument = argument
    report.codes = oneTimePasswords.map { $0.overview(for: plan, names: source.apps) }
    let comparable = ComparablePlan(report: report, argument: argument, isSameDevice: plan.isSameDevice) {
      () throws(CommandError) in MigrationComparison(of: opened.backup, plan)
    }
    BackupDamageNotice(opened: opened.backup, name: loaded.name).warn(in: session)
    return try finish(comparable, expectations, isDamaged: !opened.backup.damage.isEmpty, in: session)
  }

  /// Plans as if a backup of a device were made now and then restored to the target.
  private func planDevice(
    _ sourceDevice: DeviceSession, argument: String?, onto target: DeviceSession, _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandExitStatus {
    let (plan, simulatedBackup): (MigrationPlan, SimulatedBackup)
    do throws(KeyhaulError) {
      let isCompared = view == .compare || view == .audit
      simulatedBackup = try SimulatedBackup(of: sourceDevice, hasPassword: !noPassword, isPlannedOnce: !isCompared)
      plan = try Restorer.plan(simulatedBackup, onto: target, policy: move.policy, for: .planning)
    } catch {
      throw CommandError(error, using: sourceDevice.name)
    }
    let source = try ReportSource(sourceDevice, hasPassword: !noPassword)
    var report = try makeReport(plan, of: source, onto: target, in: session)
    report.sourceArgument = argument
    if countsOneTimePasswords(expectations, in: session) {
      report.codes = try OneTimePasswordSources(of: simulatedBackup, on: sourceDevice).overview(
        for: plan, names: source.apps)
    }
    let isSameDevice = sourceDevice.device.directory == target.device.directory
    let comparable = ComparablePlan(report: report, argument: argument, isSameDevice: isSameDevice) {
      () throws(CommandError) in
      do throws(KeyhaulError) {
        return try MigrationComparison(of: sourceDevice, onto: target, using: simulatedBackup)
      } catch {
        throw CommandError(error, using: sourceDevice.name)
      }
    }
    return try finish(comparable, expectations, isDamaged: false, in: session)
  }

  /// Returns whether the result states the number of one-time passwords.
  func countsOneTimePasswords(_ expectations: [PlanExpectation]?, in session: Session) -> Bool {
    view == nil && expectations == nil && !session.isJSON
  }

  /// Returns the report on a plan for a device.
  func makeReport(
    _ plan: MigrationPlan, of source: ReportSource, onto device: DeviceSession, in session: Session
  ) throws(CommandError) -> PlanReport {
    var report = try PlanReport(plan, of: source, onto: device, isRedacted: redact)
    report.unlockCommand = session.addingHomeOption(to: report.unlockCommand)
    return report
  }

  /// A plan, and a closure that compares the four possible restores of its source.
  struct ComparablePlan {
    let report: PlanReport
    /// The argument that names the source in suggested commands; `nil` if the source is a stream.
    let argument: String?
    /// Whether the target is the source device; `nil` if the items' keys do not show it.
    let isSameDevice: Bool?
    let compare: () throws(CommandError) -> MigrationComparison
  }

  /// Delivers the requested view of a plan, and returns the exit status.
  func finish(
    _ comparable: ComparablePlan, _ expectations: [PlanExpectation]?, isDamaged: Bool, in session: Session
  ) throws -> CommandExitStatus {
    let report = comparable.report
    var isAsExpected = true
    switch (expectations, view) {
    case (let expectations?, _): isAsExpected = try check(expectations, comparable, in: session)
    case (nil, .compare):
      try deliverComparison(
        ComparisonReport(comparison: comparable.compare(), report: report), of: comparable.argument, in: session)
    case (nil, .byApp): try session.print(AppReport(report: report))
    case (nil, .audit): try session.print(AuditReport(audit: KeychainAudit(comparable.compare()), report: report))
    case (nil, nil): try deliverPlan(report, of: comparable.argument, in: session)
    }
    let summary = report.plan.summary
    if !isAsExpected { return .differs }
    if summary.unreadable > 0 || isDamaged { return .partial }
    let losesItems = summary.migrates < summary.total || report.source.sourceDeviceItems?.absent.isEmpty == false
    return exitCode && losesItems ? .differs : .ok
  }
}

extension PlanCommand {
  /// Rejects flags that cannot be combined.
  func checkFlags() throws(CommandError) {
    try common.check(output: output)
    if move.to == nil, move.existing.chosenPolicy != nil {
      throw .usage(
        "--existing needs --to", why: "without a target, the plan assumes empty devices",
        try: "--to DEVICE, or leave --existing out")
    }
    try checkView()
    try checkExpectationFlags()
  }

  /// Rejects flags that cannot be combined with a view.
  private func checkView() throws(CommandError) {
    guard let view else { return }
    let name = view.flag
    // Only the comparison has its own page.
    let hasPage = view == .compare
    let savesTestResults = expect != nil && common.isJUnit
    if output != nil, !(hasPage && common.isHTML), !savesTestResults {
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
        try: "use only one of them")
    }
  }
}
