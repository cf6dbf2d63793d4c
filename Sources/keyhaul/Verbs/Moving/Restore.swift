import ArchivedKeychain
import ArgumentParser
import BackupArchive
import Foundation
import KeychainFormats
import Migration
import VirtualDevice

/// `keyhaul restore`: an archive's items onto a device, in one step.
struct Restore: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Restore a backup onto a device, in one step",
    usage: "keyhaul restore ARCHIVE --to DEVICE [-n] [--plan FILE] [--existing replace|merge]",
    examples: [
      "keyhaul restore family.backup --to new-phone -n",
      "keyhaul restore family.backup --to new-phone --plan move.plan",
    ],
    flags: [
      ("--to DEVICE", "the device to restore to"), ("--plan FILE", "do exactly what a saved plan says, or refuse"),
      ("--existing POLICY", "items already there: replace, or merge"), HelpScreen.dryRunFlag, HelpScreen.passwordFlag,
      HelpScreen.yesFlag,
    ])
  static let configuration = described(as: "restore")

  @Argument(help: "The backup: a folder, a file, or - for a tar stream.", completion: .file()) var archive: String
  @OptionGroup var move: MoveOptions
  @Option(
    help: ArgumentHelp("Do exactly what this saved plan says, or refuse.", valueName: "file"), completion: .file())
  var plan: String?
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: RoundLimitOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var wait: WaitOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let saved = try plan.map { path throws(CommandFailure) in try SavedPlan(path) }
    let policy = try policy(saved: saved)
    let named = try session.openArchive(archive, storage: opening.storage)
    return try session.withDevice(move.to, .writing, verb: "keyhaul restore", wait: wait.wait) { device in
      do throws(MigrationError) {
        try Restorer.checkReadable(device)
      } catch {
        throw CommandFailure(error, device: device.name)
      }
      try saved?.check(named, device)
      let opened = try session.unlock(named, password, onto: device, opening: opening)
      let plan = try session.plan(opened, of: named, onto: device, policy: policy)
      let report = try PlanReport(plan, of: named, onto: device, made: device.environment.clock.now())
      try saved?.check(against: report.document, target: device.name)
      if dryRun.dryRun {
        try say(report, in: session)
        session.note("Nothing was changed (--dry-run).")
      } else {
        try restore(report, onto: device, in: session)
      }
      if let damage = opened.keybagDamage { throw CommandFailure.damagedKeybag(of: named.name, report: damage) }
      return plan.summary.unreadable > 0 ? .partial : .ok
    }
  }

  private func policy(saved: SavedPlan?) throws(CommandFailure) -> ExistingItemPolicy {
    guard let saved else { return move.policy }
    guard move.existing == nil || move.policy == saved.document.policy else {
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
    let summary = report.plan.summary
    if let warning = report.warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    if summary.removed > 0 {
      let removal = "\(Amounts.count(summary.removed, "item")) from \(device.name)"
      let addition = summary.migrates == 0 ? "add none" : "add \(Amounts.grouped(summary.migrates))"
      try session.confirm("Remove \(removal) and \(addition)?", refusal: "removing \(removal)")
    }
    try Interruption.check()
    do throws(MigrationError) {
      try session.progress(
        "Restoring \(Amounts.count(summary.migrates, "item"))", phase: "restore"
      ) { (_) throws(MigrationError) in try Restorer.restore(report.plan, onto: device) }
    } catch {
      throw CommandFailure(error, doing: "nothing was restored to \(device.name)")
    }
    if session.isJSON {
      try session.writeRaw(PlanReport.encode(RestoreResult(report.document, revision: device.record.revision)))
      return
    }
    if session.common.verbose > 0 {
      for line in report.text(showsAll: true).lines(style: session.resultStyle) { try session.say(line) }
    }
    try session.say(sentence(summary, device: device.name))
  }

  /// "Restored 12 items to new-phone in one step; 3 stayed behind, 1 could not be read."
  private func sentence(_ summary: MigrationPlan.Summary, device: String) -> String {
    var rest: [String] = []
    if summary.staysBehind > 0 { rest.append("\(Amounts.grouped(summary.staysBehind)) stayed behind") }
    if summary.unreadable > 0 { rest.append("\(Amounts.grouped(summary.unreadable)) could not be read") }
    if summary.removed > 0 { rest.append("\(Amounts.grouped(summary.removed)) removed") }
    let head = "Restored \(Amounts.count(summary.migrates, "item")) to \(device) in one step"
    return rest.isEmpty ? head + "." : "\(head); \(rest.joined(separator: ", "))."
  }
}

/// What `restore --json` prints (format `restore-result/1`): the plan's outcome, and the revision after it.
private struct RestoreResult: Encodable {
  let format = "restore-result/1"
  let summary: PlanDocument.Summary
  let items: [PlanDocument.Item]
  let removed: [PlanDocument.Identity]
  let revision: String

  init(_ document: PlanDocument, revision: String) {
    summary = document.summary
    items = document.items
    removed = document.removed
    self.revision = revision
  }
}

/// A plan that was saved by `plan -o`.
struct SavedPlan {
  let path: String
  let document: PlanDocument

  /// The largest plan that is read, in bytes: more than one of 100,000 items takes.
  static let largestByteCount = 128 << 20

  init(_ path: String) throws(CommandFailure) {
    self.path = path
    let bytes = try InputFile.read(path, atMost: Self.largestByteCount, what: "the plan")
    do {
      document = try JSONDecoder().decode(PlanDocument.self, from: Data(bytes))
    } catch {
      throw CommandFailure(
        .refused, "\(path) is not a saved plan", why: "it is no document of the format \(PlanDocument.formatName)",
        try: "keyhaul plan ARCHIVE --to DEVICE -o FILE")
    }
    guard document.format == PlanDocument.formatName else {
      throw CommandFailure(
        .refused, "\(path) is of another format", why: "it says \(document.format); \(PlanDocument.formatName) is read",
        try: "plan again")
    }
  }

  /// Refuses at once where the archive or the device is another, before a password is asked for.
  func check(_ named: Session.NamedArchive, _ device: DeviceSession) throws(CommandFailure) {
    if document.source.digest != named.archive.digest {
      throw stale(device.name, "\(named.name) is another archive, or has changed since")
    }
    if document.target.revision != device.record.revision {
      throw stale(
        device.name,
        "it was made for revision \(document.target.revision), \(device.name) is at \(device.record.revision)")
    }
  }

  /// Refuses where anything is decided differently now.
  func check(against now: PlanDocument, target: String) throws(CommandFailure) {
    if let difference = document.difference(from: now) { throw stale(target, difference) }
  }

  private func stale(_ target: String, _ why: String) -> CommandFailure {
    CommandFailure(.stalePlan, "\(path) no longer fits \(target)", why: why, try: "plan again")
  }
}
