public import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

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
    let finder = try SourceResolver(session)
    let simulator = try move.to.flatMap { (to) throws(CommandError) in try finder.simulator(to) }
      .map { (database) throws(CommandError) in try ResolvedSimulator(database) }
    try simulator.map(rejectFlags)
    let saved = try plan.map { path throws(CommandError) in try SavedPlan(path, in: session) }
    let policy = try policy(saved: saved)
    let selection = try only.map { path throws(CommandError) in try RestoreSelection(path, in: session) }
    let backup = try finder.backup(archive)
    let target: ResolvedTarget =
      if let simulator { .simulator(simulator) } else { .device(try finder.device(move.target(of: archive))) }
    let fileStatus = backup.fileStatus
    let loaded = try backup.open(storage: accessOptions.storage, for: .restoring, in: session)
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    // The device is not locked while the user types. Afterwards, Keyhaul checks that it has not changed.
    let keys = try target.withTarget(.reading) { lockedTarget in
      try PreparedRestore.check(lockedTarget, loaded, saved)
      return (
        target: try lockedTarget.device.map { HardwareKey(.named, try $0.deviceKey()) },
        sourceDevice: try unlocker.hardwareKey(excluding: lockedTarget.device), identifier: lockedTarget.identifier
      )
    }
    let key = try unlocker.key(accessOptions.password)
    let opened = try unlocker.open(
      with: key, keys.sourceDevice, onto: keys.target, for: .restoring)
    unlocker.warnIfUnsealed()
    let prepared = PreparedRestore(
      loaded: loaded, opened: opened, identifier: keys.identifier, policy: policy, selection: selection, saved: saved)
    let confirmation = RestoreConfirmation(
      prepared: prepared, acceptsDamage: acceptDamage, isPlanned: saved != nil,
      isPolicyChosen: saved != nil || move.existing.given != nil, session: session)
    confirmation.damage.warn(in: session, isNamedLater: !dryRun.isOn && !acceptDamage)
    if dryRun.isOn {
      let report = try target.withTarget(.reading) { lockedTarget in
        let sourceDevice = try unlocker.sourceDevice(
          of: opened.backup, named: nil, orTarget: lockedTarget.device, with: key)
        return try prepared.report(onto: lockedTarget, sourceDeviceItems: sourceDevice?.items, in: session)
      }
      return try finishDryRun(report, confirmation, onto: target, in: session)
    }
    let shown =
      try confirmation.mayAsk ? target.withTarget(.reading) { try prepared.report(onto: $0, in: session) } : nil
    if let shown {
      try confirmation.obtain(for: shown)
      try backup.requireUnchanged(since: loaded.archive, fileStatus, storage: accessOptions.storage)
    }
    return try target.withTarget(.writing) { lockedTarget in
      let report = try prepared.report(onto: lockedTarget, since: shown, in: session)
      if shown == nil { try confirmation.obtain(for: report) }
      try restore(report, onto: lockedTarget, target, in: session)
      return prepared.status(of: report)
    }
  }

  /// Prints the plan, and reports what a restore would warn about or reject.
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
    let given = [plan.map { _ in "--plan" }, try decryption.deviceKeySource().map { _ in "a hardware key" }]
    guard let flag = given.compactMap(\.self).first else { return }
    throw .usage(
      "\(flag) applies only to devices", why: "\(simulator.name) is a Simulator's keychain, which no hardware protects",
      try: "leave it out")
  }

  private func policy(saved: SavedPlan?) throws(CommandError) -> ExistingItemPolicy {
    guard let saved else { return move.policy }
    guard move.existing.given == nil || move.policy == saved.document.policy else {
      throw .usage(
        "--existing \(move.policy.rawValue) contradicts the plan",
        why: "\(saved.path) was made with --existing \(saved.document.policy.rawValue)", try: "leave --existing out")
    }
    return saved.document.policy
  }

  private func print(_ report: PlanReport, onto target: ResolvedTarget, in session: Session) throws {
    guard session.isJSON else { return try report.print(in: session) }
    switch target {
    case .device: try report.printDocument(in: session)
    case .simulator(let simulator): try session.writeDocument(document(of: report, onto: simulator))
    }
  }

  private func restore(
    _ report: PlanReport, onto lockedTarget: RestoreTarget, _ target: ResolvedTarget, in session: Session
  ) throws {
    try Interruption.check()
    let summary = RestoreSummaryText(report.plan, device: lockedTarget.name)
    try session.progress(
      "Restoring \(HumanReadable.count(summary.restoredCount, "item"))", phase: "restore"
    ) { (progress) throws(CommandError) in
      try target.restore(report.plan, onto: lockedTarget, summary, in: session) { progress.update(done: $0, total: $1) }
    }
    if session.isJSON {
      switch target {
      case .simulator(let simulator): try session.writeDocument(document(of: report, onto: simulator))
      case .device:
        let document = RestoreDocument(
          plan: report.document, restoredCount: summary.restoredCount, overwrittenCount: summary.overwrittenCount,
          overwrittenNewerCount: summary.overwrittenNewerCount,
          revision: lockedTarget.revision)
        try session.writeDocument(document.json)
      }
      return
    }
    if session.common.verbose > 0 {
      for line in report.text(showsAll: true).lines(style: session.resultStyle) { try session.print(line) }
    }
    try session.print(summary.sentence)
  }

  /// Returns the document of the changes that were made or planned for a Simulator's keychain.
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

extension ExistingItemPolicy: ExpressibleByArgument {}

/// The option for the target's existing items.
struct ExistingItemOptions: ParsableArguments {
  @Option(
    name: .customLong("existing"),
    help: ArgumentHelp(
      "What to do with items that the device already has: replace (the default, as in iOS) or "
        + "merge.", valueName: "policy"))
  var given: ExistingItemPolicy?

  var policy: ExistingItemPolicy { given ?? .replace }
}

/// The options that `plan` and `restore` share, so that both make the same decisions.
struct MoveOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The device to restore to. Without it, plan shows the results for a new device and the erased source device. "
        + "The plan's views and --expect then apply to the new device, and --existing is not allowed.",
      valueName: "device"),
    completion: .deviceNames)
  var to: String?

  /// Returns the device of `--to`, for a command that requires it.
  func target(of archive: String) throws(CommandError) -> String {
    if let to { return to }
    let isStream = archive == "-"
    throw .usage(
      "no target device was given", why: "--to is missing",
      try: "--to DEVICE"
        + (isStream
          ? ""
          : ". To see what you would lose before you choose a device: keyhaul plan "
            + "\(ShellQuoting.quote(archive))"))
  }

  @OptionGroup var existing: ExistingItemOptions

  var policy: ExistingItemPolicy { existing.policy }
}
