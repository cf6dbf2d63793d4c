import KeyhaulKit

extension StepList {
  /// Creates the steps for a backup, according to its findings.
  init(_ page: InspectionPage) {
    let steps = InspectionSteps(page: page)
    let applicable: [Step?] =
      if page.isKeybagUnusable {
        // Without a usable keybag, neither a password nor a device helps.
        [steps.findingCopy]
      } else if page.backup.unbound?.blocksRestore == true {
        [steps.replacingBackup]
      } else {
        [
          steps.findingCopy, steps.listingItems, steps.savingSecrets, steps.addingPassword, steps.planning,
          steps.verifying,
        ]
      }
    self.init(steps: applicable.compactMap(\.self))
  }
}

/// The steps for a backup. A step is `nil` if it does not apply.
private struct InspectionSteps {
  let page: InspectionPage

  private var backup: InspectionPage.BackupInfo { page.backup }
  private var archive: String { ShellQuoting.argument(backup.argument, placeholder: "ARCHIVE") }

  var findingCopy: StepList.Step? {
    guard page.missingCount > 0 || page.counts.damaged > 0 || backup.keychainReadFailure != nil || page.isKeybagUnusable
    else { return nil }
    return .init(
      text: "Find out what is damaged. Look for another copy, which may still contain the lost items.",
      commands: [SuggestedCommands.verify(archive), SuggestedCommands.verify("COPY")])
  }

  var listingItems: StepList.Step? {
    guard backup.hasKeychain, backup.isEncrypted, backup.items == nil, backup.keychainReadFailure == nil else {
      return nil
    }
    return .init(
      text: "List the items of the keychain. Keyhaul asks for the password, or reads it from a file:",
      commands: [SuggestedCommands.inspectionPage(of: archive)])
  }

  var replacingBackup: StepList.Step {
    .init(
      text: "Don't trust this backup: use the original from the source device, or make a new one.",
      commands: newBackupCommands)
  }

  var savingSecrets: StepList.Step? {
    guard page.counts.noDevice > 0 else { return nil }
    return .init(
      text: "Save the secrets that have no names to a file, because they cannot be restored.",
      commands: [SuggestedCommands.secrets(of: archive)])
  }

  var addingPassword: StepList.Step? {
    guard backup.hasKeychain, !backup.isEncrypted, movesMoreWithPassword else { return nil }
    return .init(
      text: "To move the keychain to another device, make a new backup with a password.", commands: newBackupCommands)
  }

  var planning: StepList.Step? {
    guard backup.hasKeychain else { return nil }
    if page.isDecryptedCopy {
      return .init(
        text: "To restore items, use the backup that this copy was made from.",
        commands: [SuggestedCommands.plan("BACKUP", onto: "DEVICE")])
    }
    guard hasRestorableItems else { return nil }
    return .init(
      text: "See what a restore to a device would do, item by item. Nothing is changed.",
      commands: [SuggestedCommands.plan(archive, onto: "DEVICE")])
  }

  var verifying: StepList.Step? {
    guard page.missingCount == 0, page.counts.damaged == 0 else { return nil }
    return .init(text: "Check that every file and every item is intact.", commands: [SuggestedCommands.verify(archive)])
  }

  /// The commands for a new backup with a password. If the source device is an available virtual device, the command backs
  /// it up. Otherwise, the command explains how to set a backup password.
  private var newBackupCommands: [String] {
    guard backup.sourceDeviceItems != nil else { return [SuggestedCommands.explaining("backup-password")] }
    return [SuggestedCommands.backup(of: ShellQuoting.device(named: backup.device.name), to: "with-password.backup")]
  }

  /// Whether a restore may bring an item. `true` if the items are unknown.
  private var hasRestorableItems: Bool {
    backup.items == nil || page.counts.anyDevice + page.counts.sameDevice > 0
  }

  /// Whether a backup with a password would move an item to another device. `true` if the items are unknown.
  private var movesMoreWithPassword: Bool {
    guard let items = backup.items else { return true }
    return items.contains { item in
      item.reason?.isDamage != true && !item.isSecretOnly && item.protection?.isThisDeviceOnly == false
    }
  }
}
