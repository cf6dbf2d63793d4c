import KeyhaulKit

extension StepList {
  /// Creates the steps for a backup, according to its findings.
  init(_ page: InspectionPage) {
    let facts = page.facts
    let archive = ShellQuoting.argument(facts.argument, placeholder: "ARCHIVE")
    var steps: [Step] = []
    if page.missingCount > 0 || page.counts.damaged > 0 || facts.hiddenKeychain != nil || page.isKeybagUnusable {
      steps.append(
        Step(
          words: "Find out what is damaged. Look for another copy, which may still contain the lost items.",
          commands: [SuggestedCommands.verify(archive), SuggestedCommands.verify("COPY")]))
    }
    // Without a usable keybag, neither a password nor a device helps.
    if page.isKeybagUnusable {
      self.init(steps: steps)
      return
    }
    if facts.hasKeychain, facts.isEncrypted, facts.items == nil, facts.hiddenKeychain == nil {
      steps.append(
        Step(
          words: "List the items of the keychain. Keyhaul asks for the password, or reads it from a file:",
          commands: [SuggestedCommands.inspectionPage(of: archive)]))
    }
    if facts.unbound?.isRefused == true {
      self.init(
        steps: [
          Step(
            words: "Don't trust this backup: use the original from the source device, or make a new one.",
            commands: page.newBackup)
        ])
      return
    }
    if page.counts.nowhere > 0 {
      steps.append(
        Step(
          words: "Save the secrets that have no names to a file, because they cannot be restored.",
          commands: [SuggestedCommands.secrets(of: archive)]))
    }
    if facts.hasKeychain, !facts.isEncrypted, page.gainsByPassword {
      steps.append(
        Step(
          words: "To move the keychain to another device, make a new backup with a password.", commands: page.newBackup)
      )
    }
    if facts.hasKeychain, page.isCopyInClear {
      steps.append(
        Step(
          words: "To restore items, use the backup that this copy was made from.",
          commands: [SuggestedCommands.plan("BACKUP", onto: "DEVICE")]))
    } else if facts.hasKeychain, page.holdsRestorable {
      steps.append(
        Step(
          words: "See what a restore to a device would do, item by item. Nothing is changed.",
          commands: [SuggestedCommands.plan(archive, onto: "DEVICE")]))
    }
    if page.missingCount == 0, page.counts.damaged == 0 {
      steps.append(
        Step(words: "Check that every file and every item is intact.", commands: [SuggestedCommands.verify(archive)]))
    }
    self.init(steps: steps)
  }
}

extension InspectionPage {
  /// The steps to make a new backup with a password: a command for a virtual device, the published steps for a real
  /// one.
  fileprivate var newBackup: [String] {
    guard facts.sourceDeviceItems != nil else { return [SuggestedCommands.explaining("backup-password")] }
    return [SuggestedCommands.backup(of: ShellQuoting.device(named: facts.device.name), to: "with-password.backup")]
  }

  /// Whether a restore may bring an item. `true` if the items are unknown.
  fileprivate var holdsRestorable: Bool { facts.items == nil || counts.anyDevice + counts.sameDevice > 0 }

  /// Whether a backup with a password would move an item to another device. `true` if the items are unknown.
  fileprivate var gainsByPassword: Bool {
    guard let items = facts.items else { return true }
    return items.contains { item in
      item.reason?.isDamage != true && !item.isSecretOnly && item.protection?.isThisDeviceOnly == false
    }
  }
}
