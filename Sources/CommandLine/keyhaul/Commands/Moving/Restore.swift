public import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul restore`: restores an archive's items to a device or a Simulator's keychain, in one step.
struct Restore: RunnableVerb {
  static let screen = HelpScreen(
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
  static let configuration = described(as: "restore")

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
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }

  func perform(in session: Session) throws -> CommandStatus {
    let finder = try ArgumentFinder(session)
    let simulator = try move.to.flatMap { (to) throws(CommandFailure) in try finder.simulator(to) }
      .map { (found) throws(CommandFailure) in try FoundSimulator(found) }
    try simulator.map(refuseFlags)
    let saved = try plan.map { path throws(CommandFailure) in try SavedPlan(path, in: session) }
    let policy = try policy(saved: saved)
    let selection = try only.map { path throws(CommandFailure) in try RestoreSelection(path, in: session) }
    let found = try finder.archive(archive)
    let target: FoundTarget =
      if let simulator { .simulator(simulator) } else { .device(try finder.device(move.target(of: archive))) }
    let standingFile = found.standingFile
    let named = try found.open(storage: unlocking.storage, for: .restoring, in: session)
    let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    // Nobody types while the device is held: others may use it meanwhile, and whether they did is looked at afterwards.
    let keys = try target.hold(.reading) { held in
      try PreparedRestore.check(held, named, saved)
      return (
        target: try held.device.map { HardwareKey(.named, try $0.deviceKey()) },
        sourceDevice: try unlocker.hardwareKey(excluding: held.device), identifier: held.identifier
      )
    }
    let key = try unlocker.key(unlocking.password)
    let opened = try unlocker.open(
      with: key, keys.sourceDevice, onto: keys.target, for: .restoring)
    unlocker.tellOfMissingSeal()
    let prepared = PreparedRestore(
      named: named, opened: opened, identifier: keys.identifier, policy: policy, selection: selection, saved: saved)
    let agreement = RestoreAgreement(
      prepared: prepared, acceptsDamage: acceptDamage, isPlanned: saved != nil,
      isPolicyChosen: saved != nil || move.existing.given != nil, session: session)
    agreement.damage.warn(in: session, isAsked: !dryRun.isOn && !acceptDamage)
    if dryRun.isOn {
      let report = try target.hold(.reading) { held in
        let sourceDevice = try unlocker.sourceDevice(of: opened.archive, named: nil, orTarget: held.device, with: key)?
          .items
        return try prepared.report(onto: held, sourceDeviceItems: sourceDevice, in: session)
      }
      try say(report, onto: target, in: session)
      try agreement.sayOnlyCopies(report, isChange: false)
      session.note("Nothing was changed (--dry-run).")
      try agreement.refusePointless(report)
      return prepared.status(of: report)
    }
    let shown = try agreement.isAsked ? target.hold(.reading) { try prepared.report(onto: $0, in: session) } : nil
    if let shown {
      try agreement.reach(on: shown)
      try found.requireUnchanged(since: named.archive, standingFile, storage: unlocking.storage)
    }
    return try target.hold(.writing) { held in
      let report = try prepared.report(onto: held, since: shown, in: session)
      if shown == nil { try agreement.reach(on: report) }
      try restore(report, onto: held, target, in: session)
      return prepared.status(of: report)
    }
  }

  /// Refuses flags that apply only to devices.
  private func refuseFlags(for simulator: FoundSimulator) throws(CommandFailure) {
    let given = [plan.map { _ in "--plan" }, try opening.deviceKeySource().map { _ in "a hardware key" }]
    guard let flag = given.compactMap(\.self).first else { return }
    throw .usage(
      "\(flag) applies only to devices", why: "\(simulator.name) is a Simulator's keychain, which no hardware protects",
      try: "leave it out")
  }

  private func policy(saved: SavedPlan?) throws(CommandFailure) -> ExistingItemPolicy {
    guard let saved else { return move.policy }
    guard move.existing.given == nil || move.policy == saved.document.policy else {
      throw .usage(
        "--existing \(move.policy.rawValue) contradicts the plan",
        why: "\(saved.path) was made with --existing \(saved.document.policy.rawValue)", try: "leave --existing out")
    }
    return saved.document.policy
  }

  private func say(_ report: PlanReport, onto target: FoundTarget, in session: Session) throws {
    guard session.isJSON else { return try report.say(in: session) }
    switch target {
    case .device: try report.sayDocument(in: session)
    case .simulator(let simulator): try session.answer(document(of: report, onto: simulator))
    }
  }

  private func restore(
    _ report: PlanReport, onto held: RestoreTarget, _ target: FoundTarget, in session: Session
  ) throws {
    try Interruption.check()
    let end = RestoreSummaryText(report.plan, device: held.name)
    try session.progress(
      "Restoring \(HumanReadable.count(end.restored, "item"))", phase: "restore"
    ) { (progress) throws(CommandFailure) in
      try target.restore(report.plan, onto: held, end, in: session) { progress.update(done: $0, total: $1) }
    }
    if session.isJSON {
      switch target {
      case .simulator(let simulator): try session.answer(document(of: report, onto: simulator))
      case .device:
        let document = RestoreDocument(
          plan: report.document, restored: end.restored, overwritten: end.overwritten, newer: end.overwrittenNewer,
          revision: held.revision)
        try session.answer(document.json)
      }
      return
    }
    if session.common.verbose > 0 {
      for line in report.text(showsAll: true).lines(style: session.resultStyle) { try session.say(line) }
    }
    try session.say(end.sentence)
  }

  /// The changes made or planned for a Simulator's keychain, as JSON.
  private func document(of report: PlanReport, onto simulator: FoundSimulator) -> JSONValue {
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

/// What a restore does with the items that are on the target already.
struct ExistingItemOptions: ParsableArguments {
  @Option(
    name: .customLong("existing"),
    help: ArgumentHelp(
      "What to do with items that the device already has: replace (the default, as in iOS) or "
        + "merge.", valueName: "policy"))
  var given: ExistingItemPolicy?

  var policy: ExistingItemPolicy { given ?? .replace }
}

/// What `plan` and `restore` have in common: the two must decide alike.
struct MoveOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The device to restore to. Without it, plan shows the results for a new device and the erased source device. "
        + "The plan's views and --expect then apply to the new device, and --existing is not allowed.",
      valueName: "device"),
    completion: .deviceNames)
  var to: String?

  /// The device of a verb that has to have one.
  func target(of archive: String) throws(CommandFailure) -> String {
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
