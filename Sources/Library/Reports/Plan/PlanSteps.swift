import KeyhaulKit

extension StepList {
  /// Creates the steps after a plan. The plan of a backup can be carried out. For a device, the backup comes first.
  init(_ page: PlanPage) {
    let steps = PlanSteps(page: page)
    self.init(
      steps: [steps.newBackup, steps.otherCopy, page.codesStep, steps.merging, steps.restoring, steps.keepingOldDevice]
        .compactMap(\.self))
  }
}

extension PlanPage {
  /// Whether neither a finding nor the condition of the backup prevents a restore.
  var isRestorable: Bool { document.findings.obstacle == nil && condition.isUsable }
  /// Whether the backup is a decrypted copy.
  var isDecryptedCopy: Bool { document.findings.contains(.decryptedCopy) }

  /// Whether a restore adds or replaces an item, from this backup or from a new one with a password.
  var isRestoreUseful: Bool {
    counts.byChange[.new, default: 0] + counts.byChange[.replaces, default: 0]
      + counts.byReason[.backupNotEncrypted, default: 0] > 0
  }
}

/// The steps after a plan. A step is `nil` if it would have no effect.
private struct PlanSteps {
  let page: PlanPage
  let placeholders: CommandPlaceholders

  init(page: PlanPage) {
    self.page = page
    placeholders = CommandPlaceholders(page.document, source: page.sourceArgument, target: page.targetArgument)
  }

  private var counts: MigrationPlan.Summary { page.counts }
  private var isDevice: Bool { page.source.kind == .device }
  private var policyOption: String { page.plan.policy == .replace ? "" : SuggestedCommands.keepingExisting }

  /// The number of items that move only if the backup has a password.
  private var gainedByPassword: Int { counts.byReason[.backupNotEncrypted, default: 0] }

  private var needsBackup: Bool { gainedByPassword > 0 || (isDevice && page.isRestoreUseful) }
  private var backup: String { needsBackup ? placeholders.newBackup : placeholders.source }

  var newBackup: StepList.Step? {
    guard needsBackup else { return nil }
    // The user asked for a backup without a password, and a password would not move more items.
    let omitsPassword = gainedByPassword == 0 && !page.source.encrypted
    let gainSentence =
      switch gainedByPassword {
      case 0: ""
      case 1: " The item that is held back only by the missing password can then move."
      default:
        " The \(HumanReadable.grouped(gainedByPassword)) items held back only by the missing password can then move."
      }
    let instruction = "Make a \(isDevice ? "" : "new ")backup \(omitsPassword ? "without" : "with") a password."
    guard isDevice || page.sourceDeviceItems != nil else {
      let steps = PublishedStep.passwordSteps.map(\.text).joined(separator: " ")
      return .init(
        text: "\(instruction)\(gainSentence) \(steps)", commands: [SuggestedCommands.explaining("backup-password")])
    }
    return .init(
      text: instruction + gainSentence,
      commands: [SuggestedCommands.backup(of: placeholders.oldDevice, to: backup, withoutPassword: omitsPassword)])
  }

  var otherCopy: StepList.Step? {
    let lostCount = counts.byReason.reduce(0) { $0 + ($1.key.isLostInThisCopy ? $1.value : 0) }
    guard lostCount > 0 || !page.isRestorable, !isDevice else { return nil }
    if page.isDecryptedCopy {
      return .init(
        text: "Plan with the backup that this decrypted copy was made from: the copy cannot be restored.",
        commands: [SuggestedCommands.plan("BACKUP", onto: placeholders.target)])
    }
    if lostCount == 0 {
      return .init(
        text:
          "Make a new backup while \(HTMLWriter.shortened(page.sourceDevice)) still works, or look for another copy: "
          + "this one cannot be restored as it is. This command shows whether a copy is intact:",
        commands: [SuggestedCommands.verify("COPY")])
    }
    return .init(
      text:
        "Look for another copy of the backup: \(HumanReadable.count(lostCount, "item")) cannot be read in this one. This "
        + "command shows whether a copy is intact:",
      commands: [SuggestedCommands.verify("COPY")])
  }

  /// The step to plan a restore that merges. `nil` if the restore already merges, if it removes no items, or if it would
  /// restore none.
  var merging: StepList.Step? {
    guard counts.removed > 0, page.plan.policy == .replace, page.isRestoreUseful else { return nil }
    // If items move only with a password, the new backup is merged instead.
    let source = isDevice && (gainedByPassword == 0 || page.source.encrypted) ? placeholders.source : backup
    return .init(
      text: "To keep the items on \(HTMLWriter.shortened(page.target.name)), plan a restore that merges:",
      commands: [SuggestedCommands.plan(source, onto: placeholders.target, policy: SuggestedCommands.keepingExisting)])
  }

  var restoring: StepList.Step? {
    guard page.isRestoreUseful, page.isRestorable || needsBackup else { return nil }
    let sentence =
      needsBackup
      ? "Plan with that backup, then restore exactly what the plan says."
      : "To restore exactly this, save the plan and then carry it out. Keyhaul refuses to restore if the backup or "
        + "\(HTMLWriter.shortened(page.target.name)) has changed since this plan."
    let isLocked = page.target.state != "unlocked"
    let name = HTMLWriter.shortened(page.target.name)
    return .init(
      text: isLocked ? "\(sentence) Unlock \(name) first." : sentence,
      commands: (isLocked ? [SuggestedCommands.unlock(placeholders.target)] : []) + [
        SuggestedCommands.plan(backup, onto: placeholders.target, policy: policyOption, savingTo: "move.plan"),
        SuggestedCommands.restore(backup, onto: placeholders.target, plan: "move.plan"),
      ])
  }

  /// The step to keep the source device; `nil` if the user would miss none of the lost items, or if the target is the
  /// source device.
  var keepingOldDevice: StepList.Step? {
    let missedCount = counts.byReason.reduce(0) { sum, reasonCount in
      sum
        + (reasonCount.key.requiresAction && reasonCount.key != .backupNotEncrypted ? reasonCount.value : 0)
    }
    guard missedCount > 0, page.target.sameDevice != true else { return nil }
    return .init(
      text: "Keep \(HTMLWriter.shortened(page.sourceDevice)) until the apps that matter to you are signed in on "
        + "\(HTMLWriter.shortened(page.target.name)).")
  }
}
