import ArchivedKeychain
import ArgumentParser
import BackupArchive
import CommandSession
import Foundation
import KeychainFormats
import Migration
import VirtualDevice

/// `keyhaul restore`: an archive's items onto a device, in one step.
struct Restore: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Restore a backup onto a device, in one step",
    usage: "keyhaul restore ARCHIVE --to DEVICE [-n] [--plan FILE] [--only FILE] [--existing replace|merge]",
    examples: [
      "keyhaul restore family.backup --to new-phone -n",
      "keyhaul restore family.backup --to new-phone --plan move.plan",
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
    help: ArgumentHelp("Bring only the items that this list names: {\"indexes\": [0, 3]}.", valueName: "file"),
    completion: .file())
  var only: String?
  @Flag(help: "Restore what is left of a backup that is known to be damaged; --yes does not answer that.")
  var acceptDamage = false
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: OpeningOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var wait: WaitOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }

  func perform(in session: Session) throws -> CommandStatus {
    let saved = try plan.map { path throws(CommandFailure) in try SavedPlan(path, in: session) }
    let policy = try policy(saved: saved)
    let selection = try only.map { path throws(CommandFailure) in try RestoreSelection(path, in: session) }
    let finder = try ArgumentFinder(session)
    let found = try finder.archive(archive)
    let target = try finder.device(move.to, wait: wait.time)
    let named = try found.open(storage: unlocking.storage, isRestored: true, in: session)
    return try target.hold(.writing) { device in
      do throws(MigrationError) {
        try Restorer.checkReadable(device)
      } catch {
        throw CommandFailure(error, device: device.name)
      }
      try saved?.check(named, device)
      let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
      let opened = try unlocker.open(with: unlocking.password, onto: device)
      let damage = BackupDamageNotice(opened: opened.archive, name: named.name)
      damage.warn(in: session, isAsked: !dryRun.isOn && !acceptDamage)
      let source = MoveSource(named, namesFrom: opened)
      var plan = try opened.plan(onto: device, policy: policy)
      if let saved {
        let now = try PlanReport(plan, of: source, onto: device, made: device.environment.clock.now())
        try saved.check(against: now.document, target: device.name)
      }
      if let selection {
        try selection.check(against: plan, named, in: session)
        plan = try opened.plan(onto: device, policy: policy, only: selection.indexes)
      }
      let report = try PlanReport(plan, of: source, onto: device, made: device.environment.clock.now())
      if dryRun.isOn {
        try say(report, in: session)
        session.note("Nothing was changed (--dry-run).")
      } else {
        try damage.accept(onto: device.name, isAccepted: acceptDamage, in: session)
        try restore(report, onto: device, in: session)
      }
      return plan.summary.unreadable > 0 || !opened.archive.damage.isEmpty ? .partial : .ok
    }
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

  private func say(_ report: PlanReport, in session: Session) throws {
    if session.isJSON { try session.writeRaw(report.encoded()) } else { try report.say(in: session) }
  }

  private func restore(_ report: PlanReport, onto device: DeviceSession, in session: Session) throws {
    if let warning = report.warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    let losses = RestoreLosses(report)
    if !losses.isEmpty {
      try session.confirm(
        losses.question, refusal: losses.refusal,
        showing: losses.lines(style: session.messageStyle, showsAll: session.common.verbose > 0))
    }
    try Interruption.check()
    let end = RestoreEnd(report.plan, device: device.name)
    do throws(MigrationError) {
      try session.progress(
        "Restoring \(Amounts.count(end.restored, "item"))", phase: "restore"
      ) { (_) throws(MigrationError) in
        guard !report.plan.changesNothing else { return try Restorer.restore(report.plan, onto: device) }
        try session.changing(DoneChange(end.clause, of: device.name)) { () throws(MigrationError) in
          try Restorer.restore(report.plan, onto: device)
        }
      }
    } catch {
      throw CommandFailure(error, doing: "nothing was restored to \(device.name)")
    }
    if session.isJSON {
      try session.answer(Self.result(report.document, end, revision: device.record.revision))
      return
    }
    if session.common.verbose > 0 {
      for line in report.text(showsAll: true).lines(style: session.resultStyle) { try session.say(line) }
    }
    try session.say(end.sentence)
  }

  /// What `--json` prints (format `restore-result/1`): the plan's outcome, and the revision after it.
  private static func result(_ document: PlanDocument, _ end: RestoreEnd, revision: String) -> JSONValue {
    [
      "format": "restore-result/1", "summary": document.summary.json, "restored": .count(end.restored),
      "items": .array(document.items.map(\.json)), "removed": .array(document.removed.map(\.json)),
      "revision": .string(revision),
    ]
  }
}
