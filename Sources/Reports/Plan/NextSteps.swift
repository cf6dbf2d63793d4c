import ArchivedKeychain
import KeychainFormats
import KeychainRules
import Migration
import VirtualDevice

extension StepList {
  /// What to do after a plan: of a backup, carry it out; of a device, make the backup first.
  init(_ page: PlanPage) {
    let steps = PlanSteps(page: page)
    self.init(
      steps: [steps.newBackup, steps.otherCopy, steps.merging, steps.restoring, steps.keepingOldDevice]
        .compactMap(\.self))
  }
}

/// The steps that a plan asks for. Names that were taken out of it are not in its commands either.
private struct PlanSteps {
  let page: PlanPage

  private var counts: MigrationPlan.Summary { page.counts }
  private var isDevice: Bool { page.source.kind == .device }
  private var source: String {
    ShellWord.typed(page.isRedacted ? nil : page.sourceArgument, else: page.source.kind.rawValue.uppercased())
  }
  private var target: String { ShellWord.typed(page.isRedacted ? nil : page.targetArgument, else: "TARGET") }
  private var policy: String { page.plan.policy == .replace ? "" : Commands.keepingExisting }

  /// Items that arrive only with a backup that has a password.
  private var closed: Int { counts.byReason[.backupNotEncrypted, default: 0] }
  private var needsBackup: Bool { closed > 0 || (isDevice && counts.migrates > 0) }

  /// The device to back up, and the backup that is to be made of it.
  private var oldDevice: String {
    isDevice ? source : ShellWord.device(named: page.isRedacted ? nil : page.source.deviceName)
  }
  private var backup: String {
    guard needsBackup else { return source }
    guard isDevice, !page.isRedacted, let device = try? DeviceName(page.source.name) else {
      return "with-password.backup"
    }
    return device.text + ".backup"
  }

  var newBackup: StepList.Step? {
    guard needsBackup else { return nil }
    let carries =
      switch closed {
      case 0: ""
      case 1: " It carries the item that needs nothing else."
      default: " It carries the \(Amounts.grouped(closed)) items that need nothing else."
      }
    return .init(
      words: (isDevice ? "Make a backup with a password." : "Make a new backup with a password.") + carries,
      commands: [Commands.backup(of: oldDevice, to: backup)])
  }

  var otherCopy: StepList.Step? {
    let lost = counts.byReason.reduce(0) { $0 + ($1.key.isLostInThisCopy ? $1.value : 0) }
    guard lost > 0, !isDevice else { return nil }
    return .init(
      words: "Look for another copy of the backup: \(Amounts.count(lost, "item")) cannot be read in this one. This "
        + "tells whether a copy is whole:",
      commands: [Commands.verify("COPY")])
  }

  var merging: StepList.Step? {
    guard counts.removed > 0, page.plan.policy == .replace else { return nil }
    return .init(
      words: "To keep what is on \(Markup.shortened(page.target.name)), plan to merge:",
      commands: [Commands.plan(source, onto: target, Commands.keepingExisting)])
  }

  var restoring: StepList.Step? {
    guard needsBackup || counts.migrates > 0 else { return nil }
    let words =
      needsBackup
      ? "Plan with that backup, then restore exactly what the plan says."
      : "Restore exactly this: save the plan, then carry it out. It is refused if the backup or the device has changed."
    return .init(
      words: words,
      commands: [
        Commands.plan(backup, onto: target, policy, savingTo: "move.plan"),
        Commands.restore(backup, onto: target, plan: "move.plan"),
      ])
  }

  var keepingOldDevice: StepList.Step? {
    guard counts.staysBehind > closed, page.target.sameDevice != true else { return nil }
    return .init(
      words: "Keep \(Markup.shortened(page.sourceDevice)) until the apps that matter to you are signed in on "
        + "\(Markup.shortened(page.target.name)).")
  }
}
