import KeyhaulKit

extension StepList {
  /// Creates the steps for a backup, according to its findings.
  init(_ page: InspectionPage) {
    let backup = page.backup
    let archive = ShellQuoting.argument(backup.argument, placeholder: "ARCHIVE")
    var steps: [Step] = []
    if page.missingCount > 0 || page.counts.damaged > 0 || backup.hiddenKeychain != nil || page.isKeybagUnusable {
      steps.append(
        Step(
          text: "Find out what is damaged. Look for another copy, which may still contain the lost items.",
          commands: [SuggestedCommands.verify(archive), SuggestedCommands.verify("COPY")]))
    }
    // Without a usable keybag, neither a password nor a device helps.
    if page.isKeybagUnusable {
      self.init(steps: steps)
      return
    }
    if backup.hasKeychain, backup.isEncrypted, backup.items == nil, backup.hiddenKeychain == nil {
      steps.append(
        Step(
          text: "List the items of the keychain. Keyhaul asks for the password, or reads it from a file:",
          commands: [SuggestedCommands.inspectionPage(of: archive)]))
    }
    if backup.unbound?.isRefused == true {
      self.init(
        steps: [
          Step(
            text: "Don't trust this backup: use the original from the source device, or make a new one.",
            commands: page.newBackupCommands)
        ])
      return
    }
    if page.counts.noDevice > 0 {
      steps.append(
        Step(
          text: "Save the secrets that have no names to a file, because they cannot be restored.",
          commands: [SuggestedCommands.secrets(of: archive)]))
    }
    if backup.hasKeychain, !backup.isEncrypted, page.movesMoreWithPassword {
      steps.append(
        Step(
          text: "To move the keychain to another device, make a new backup with a password.",
          commands: page.newBackupCommands)
      )
    }
    if backup.hasKeychain, page.isDecryptedCopy {
      steps.append(
        Step(
          text: "To restore items, use the backup that this copy was made from.",
          commands: [SuggestedCommands.plan("BACKUP", onto: "DEVICE")]))
    } else if backup.hasKeychain, page.hasRestorableItems {
      steps.append(
        Step(
          text: "See what a restore to a device would do, item by item. Nothing is changed.",
          commands: [SuggestedCommands.plan(archive, onto: "DEVICE")]))
    }
    if page.missingCount == 0, page.counts.damaged == 0 {
      steps.append(
        Step(text: "Check that every file and every item is intact.", commands: [SuggestedCommands.verify(archive)]))
    }
    self.init(steps: steps)
  }
}

extension InspectionPage {
  /// The steps to make a new backup with a password: a command for a virtual device, the published steps for a real
  /// one.
  fileprivate var newBackupCommands: [String] {
    guard backup.sourceDeviceItems != nil else { return [SuggestedCommands.explaining("backup-password")] }
    return [SuggestedCommands.backup(of: ShellQuoting.device(named: backup.device.name), to: "with-password.backup")]
  }

  /// Whether a restore may bring an item. `true` if the items are unknown.
  fileprivate var hasRestorableItems: Bool { backup.items == nil || counts.anyDevice + counts.sameDevice > 0 }

  /// Whether a backup with a password would move an item to another device. `true` if the items are unknown.
  fileprivate var movesMoreWithPassword: Bool {
    guard let items = backup.items else { return true }
    return items.contains { item in
      item.reason?.isDamage != true && !item.isSecretOnly && item.protection?.isThisDeviceOnly == false
    }
  }
}
