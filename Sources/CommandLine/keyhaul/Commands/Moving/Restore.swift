import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul restore`: restores a backup's items to a device or a Simulator's keychain, in one step.
struct Restore: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Restore a backup onto a device, in one step",
    usage: "keyhaul restore ARCHIVE --to DEVICE [-n] [--plan FILE] [--only FILE] [--existing replace|merge]",
    examples: [
      "keyhaul restore family.backup --to new-phone -n",
      "keyhaul restore family.backup --to new-phone --plan move.plan",
      "keyhaul restore family.backup --to CoreSimulator/Devices/UDID --existing merge",
    ],
    flags: [
      "--to", "--plan", "--only", "--existing", "--accept-damage", "--dry-run", "--password-file", "--yes",
    ])
  static let configuration = makeConfiguration(named: "restore")

  @Argument(help: "The backup: a folder, a file, or - for a tar stream.", completion: .file()) var archive: String
  @OptionGroup var move: MoveOptions
  @Option(
    help: ArgumentHelp("Do exactly what this saved plan says, or refuse.", valueName: "file"), completion: .file())
  var plan: String?
  @Option(
    help: ArgumentHelp(
      "Restore only the items in this list: {\"indexes\": [0, 3]}.",
      discussion: "The restore still removes the device's other items, unless you add --existing merge.",
      valueName: "file"),
    completion: .file())
  var only: String?
  @Flag(
    help: ArgumentHelp(
      "Restore what is left of a damaged backup without asking. (--yes does not confirm this.)",
      discussion: "This flag does not accept a broken seal; use export to get items out of such a backup."))
  var acceptDamage = false
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let resolver = try SourceResolver(session)
    let simulator = try simulator(with: resolver)
    try simulator.map(rejectFlags)
    let savedPlan = try plan.map { path throws(CommandError) in try SavedPlan(path, in: session) }
    let policy = try policy(savedPlan)
    let selection = try only.map { path throws(CommandError) in try RestoreSelection(path, in: session) }
    let backup = try resolver.backup(archive)
    let target: ResolvedTarget =
      if let simulator { .simulator(simulator) } else { .device(try resolver.device(move.target(of: archive))) }
    let fileStatus = backup.fileStatus
    let loaded = try backup.open(storage: accessOptions.storage, for: .restoring, in: session)
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    let deviceKeys = try deviceKeys(for: unlocker, loaded, onto: target, savedPlan)
    let key = try unlocker.key(accessOptions.password)
    let opened = try unlocker.open(
      with: key, deviceKey: deviceKeys.sourceDevice, onto: deviceKeys.target, for: .restoring)
    unlocker.warnIfUnsealed()
    let prepared = PreparedRestore(
      loaded: loaded, opened: opened, targetIdentifier: deviceKeys.targetIdentifier, policy: policy,
      selection: selection, savedPlan: savedPlan)
    let confirmation = RestoreConfirmation(
      prepared: prepared, acceptsDamage: acceptDamage, isPlanned: savedPlan != nil,
      isPolicyChosen: savedPlan != nil || move.existing.chosenPolicy != nil, session: session)
    confirmation.damageNotice.warn(in: session, isStatedLater: !dryRun.isOn && !acceptDamage)
    if dryRun.isOn { return try showPlan(confirmation, unlocker, key, onto: target, in: session) }
    return try confirmAndRestore(confirmation, backup, fileStatus: fileStatus, onto: target, in: session)
  }

  /// Returns the Simulator that `--to` names; `nil` if it names a device or is missing.
  private func simulator(with resolver: SourceResolver) throws(CommandError) -> ResolvedSimulator? {
    guard let to = move.to, let database = try resolver.simulator(to) else { return nil }
    return try ResolvedSimulator(database)
  }

  /// The device keys for decrypting a backup and encrypting its items for the target.
  private struct DeviceKeys {
    /// The target's key; `nil` if the target is a Simulator.
    let target: DeviceKeyCandidate?
    /// The source device's key; `nil` if it is not available.
    let sourceDevice: DeviceKeyCandidate?
    /// The target's identifier; `nil` if the target is a Simulator.
    let targetIdentifier: String?
  }

  /// Reads the device keys before the user is asked for the password.
  ///
  /// The device's file lock is not held while the user types. Afterwards, `PreparedRestore` checks that the target is
  /// still the same device.
  private func deviceKeys(
    for unlocker: BackupUnlocker, _ loaded: LoadedBackup, onto target: ResolvedTarget, _ savedPlan: SavedPlan?
  ) throws -> DeviceKeys {
    try target.withTarget(.reading) { openTarget in
      try PreparedRestore.check(openTarget, loaded, savedPlan)
      return DeviceKeys(
        target: try openTarget.device.map { DeviceKeyCandidate(.named, try $0.deviceKey()) },
        sourceDevice: try unlocker.deviceKey(excluding: openTarget.device),
        targetIdentifier: openTarget.identifier)
    }
  }

  /// Plans and prints a dry run, including the source device's items that never entered the backup.
  private func showPlan(
    _ confirmation: RestoreConfirmation, _ unlocker: BackupUnlocker, _ key: BackupKey, onto target: ResolvedTarget,
    in session: Session
  ) throws -> CommandExitStatus {
    let prepared = confirmation.prepared
    let report = try target.withTarget(.reading) { openTarget in
      let sourceDevice = try unlocker.sourceDevice(
        of: prepared.opened.backup, named: nil, orTarget: openTarget.device, with: key)
      return try prepared.report(onto: openTarget, sourceDeviceItems: sourceDevice?.items, in: session)
    }
    return try finishDryRun(report, confirmation, onto: target, in: session)
  }

  /// Asks the user to agree if necessary, and restores the items.
  ///
  /// - Parameter fileStatus: The status of the backup's file before the file was read.
  private func confirmAndRestore(
    _ confirmation: RestoreConfirmation, _ backup: ResolvedBackup, fileStatus: FileStatus?,
    onto target: ResolvedTarget, in session: Session
  ) throws -> CommandExitStatus {
    let prepared = confirmation.prepared
    var confirmedPlan: PlanReport?
    if confirmation.mayAsk {
      // The device's file lock is not held while the user decides.
      let report = try target.withTarget(.reading) { try prepared.report(onto: $0, in: session) }
      try confirmation.obtain(for: report)
      try backup.requireUnchanged(
        since: prepared.loaded.archive, fileStatus: fileStatus, storage: accessOptions.storage)
      confirmedPlan = report
    }
    return try target.withTarget(.writing) { openTarget in
      let report = try prepared.report(onto: openTarget, since: confirmedPlan, in: session)
      if confirmedPlan == nil { try confirmation.obtain(for: report) }
      try restore(report, onto: openTarget, target, in: session)
      return prepared.status(of: report)
    }
  }

  /// Prints the plan, with the warnings and the refusals of a real restore.
  private func finishDryRun(
    _ report: PlanReport, _ confirmation: RestoreConfirmation, onto target: ResolvedTarget, in session: Session
  ) throws -> CommandExitStatus {
    try print(report, onto: target, in: session)
    try confirmation.warnAboutOnlyCopies(report, willRestore: false)
    session.info("Nothing was changed (--dry-run).")
    try confirmation.rejectRemovalOnlyRestore(report)
    return confirmation.prepared.status(of: report)
  }

  /// Rejects flags that apply only to devices.
  private func rejectFlags(for simulator: ResolvedSimulator) throws(CommandError) {
    let givenFlags = [plan.map { _ in "--plan" }, try decryption.deviceKeySource().map { _ in "a device key" }]
    guard let flag = givenFlags.compactMap(\.self).first else { return }
    throw .usage(
      "\(flag) applies only to devices", why: "\(simulator.name) is a Simulator's keychain, which no hardware protects",
      try: "leave it out")
  }

  /// Returns the policy of the saved plan, or of the flag if there is no plan.
  private func policy(_ savedPlan: SavedPlan?) throws(CommandError) -> ExistingItemPolicy {
    guard let savedPlan else { return move.policy }
    guard move.existing.chosenPolicy == nil || move.policy == savedPlan.document.policy else {
      throw .usage(
        "--existing \(move.policy.rawValue) contradicts the plan",
        why: "\(savedPlan.path) was made with --existing \(savedPlan.document.policy.rawValue)",
        try: "leave --existing out")
    }
    return savedPlan.document.policy
  }

  private func print(_ report: PlanReport, onto target: ResolvedTarget, in session: Session) throws {
    guard session.isJSON else { return try report.print(in: session) }
    switch target {
    case .device: try report.printDocument(in: session)
    case .simulator(let simulator): try session.writeDocument(document(of: report, onto: simulator))
    }
  }

  private func restore(
    _ report: PlanReport, onto openTarget: RestoreTarget, _ target: ResolvedTarget, in session: Session
  ) throws {
    try Interruption.check()
    let summary = RestoreSummaryText(report.plan, device: openTarget.name)
    try session.progress(
      "Restoring \(HumanReadable.count(summary.restoredCount, "item"))", phase: "restore"
    ) { (progress) throws(CommandError) in
      try target.restore(report.plan, onto: openTarget, summary, in: session) { progress.update(done: $0, total: $1) }
    }
    if session.isJSON {
      try writeDocument(of: report, summary, openTarget, target, in: session)
    } else {
      if session.common.verbose > 0 {
        for line in report.text(showsAll: true).lines(style: session.resultStyle) { try session.print(line) }
      }
      try session.print(summary.sentence)
    }
  }

  private func writeDocument(
    of report: PlanReport, _ summary: RestoreSummaryText, _ openTarget: RestoreTarget, _ target: ResolvedTarget,
    in session: Session
  ) throws(CommandError) {
    switch target {
    case .simulator(let simulator): try session.writeDocument(document(of: report, onto: simulator))
    case .device:
      let document = RestoreDocument(
        plan: report.document, restoredCount: summary.restoredCount, overwrittenCount: summary.overwrittenCount,
        overwrittenNewerCount: summary.overwrittenNewerCount, revision: openTarget.revision)
      try session.writeDocument(document.json)
    }
  }

  /// Returns the document that lists the changes to a Simulator's keychain, either made or planned.
  private func document(of report: PlanReport, onto simulator: ResolvedSimulator) -> JSONValue {
    let summary = report.plan.summary
    let changes = summary.byChange
    return simulator.document(
      "restore",
      [
        ("source", .string(report.source.name)), ("items", .count(summary.total)),
        ("added", .count(changes[.new, default: 0])), ("replaced", .count(changes[.replaces, default: 0])),
        ("kept", .count(changes[.keepsExisting, default: 0] + changes[.identical, default: 0])),
        ("removed", .count(summary.removed)), ("stays_behind", .count(summary.staysBehind)),
        ("unreadable", .count(summary.unreadable)),
      ], isDryRun: dryRun.isOn)
  }
}
