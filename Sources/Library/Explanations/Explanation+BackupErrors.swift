import KeyhaulKit

extension Explanation {
  /// The errors that a device reports to the computer during a backup or a restore (`MBErrorDomain`).
  package static let backupErrors = (protocolErrors + deviceErrors).sorted { ($0.number ?? 0) < ($1.number ?? 0) }

  /// Returns the name of an error of `MBErrorDomain`, as devices write it.
  package static func backupErrorName(_ number: some BinaryInteger) -> String { "MBErrorDomain/\(number)" }

  private static let agentSource = "iOS, the text that BackupAgent2 sends with the number"

  /// - Parameter issues: The numbers of issues of libimobiledevice that are about the error.
  private static func makePage(
    _ number: Int32, _ headline: String, rule: String, effect: String, action: String, issues: [Int] = []
  ) -> Explanation {
    let issueList = HumanReadable.list(issues.map(String.init))
    let issueSource = "libimobiledevice, issue\(issues.count == 1 ? "" : "s") \(issueList)"
    let source = issues.isEmpty ? agentSource : "\(agentSource); \(issueSource)"
    return Explanation(
      id: backupErrorName(number), number: number, headline: headline, rule: rule, effect: effect, action: action,
      source: source)
  }

  private static let stopped = "The backup or restore stopped before it finished."

  /// Errors of the protocol between the device and the computer, and of the computer's files.
  private static let protocolErrors = [
    makePage(
      1, "the device gives no more specific number",
      rule:
        "The device uses 1 for failures without a number of their own, such as a request that it does not know, or a "
        + "keychain that it cannot copy. The text before the number says what failed.",
      effect: stopped,
      action: "Read the text before the number. Unlock the device, keep it unlocked, and try again.", issues: [12]),
    makePage(
      3, "the device cannot make its snapshot",
      rule:
        "Before a backup, the device makes a snapshot of its file system. A snapshot left over from an interrupted backup "
        + "can block it (\"File exists\").",
      effect: "No backup was made.",
      action: "Restart the device, and back up again.", issues: [1257]),
    makePage(
      4, "a file does not exist",
      rule: "A file that was asked for is not in the backup.",
      effect: stopped,
      action:
        "Check the file's name. \"\(SuggestedCommands.verifying)\" finds files that the backup lists but does not contain."
    ),
    makePage(
      11, "a property list cannot be read",
      rule:
        "The device reads Status.plist and Manifest.plist of the earlier backup. One of them is empty or damaged. This "
        + "error appears as the cause of another, such as 205.",
      effect: stopped,
      action: "Follow the advice of \"\(SuggestedCommands.explaining(backupErrorName(205)))\".", issues: [1582]),
    makePage(
      100, "the connection between the device and the computer failed",
      rule: "The connection ended, or the computer answered in a way that the device does not understand.",
      effect: stopped,
      action: "Use another cable or port, update the program on the computer, and start again.", issues: [1361]),
    makePage(
      102, "the device cannot move the restored files to their place",
      rule: "A restore puts its files into a folder and moves them at the end. An earlier restore left such a folder, "
        + "because the device was not restarted after it.",
      effect: "The restore stopped before it finished.",
      action: "Restart the device, and restore again. Let the device restart at the end.", issues: [787]),
    makePage(
      103, "the device cannot read a file from the computer",
      rule:
        "The device asks the computer for files of the earlier backup, first for Status.plist. The computer reported an "
        + "error for one of them.",
      effect: stopped,
      action: "Check that you may read every file of the backup's folder, or back up to another folder.", issues: [153]),
    makePage(
      104, "files cannot be sent to the computer",
      rule:
        "The computer could not write a file, or the device could not read one of its own (\"Input/output error\").",
      effect: "The backup is unfinished.",
      action:
        "Check the free space on the drive and the permissions of the folder. If iTunes or Finder fail too, the device "
        + "has a file that it cannot read.", issues: [1361]),
    makePage(
      105, "the computer's drive has too little space",
      rule: "Before it sends files, the device compares their size with the free space of the drive.",
      effect: "The backup stopped.",
      action: "Free space on the drive, or back up to another one."),
  ]

  /// Errors of the backup itself and of the device's state.
  private static let deviceErrors = [
    makePage(
      22, "a policy forbids backups",
      rule: "A configuration profile or the management of the device does not allow backups.",
      effect: "No backup was made.",
      action: "Ask the organization that manages the device."),
    makePage(
      25, "a restore from iCloud is running",
      rule: "A device cannot be backed up while a restore from iCloud is not finished.",
      effect: "No backup was made.",
      action: "Wait until Settings no longer shows the restore, and back up then."),
    makePage(
      202, "the backup or restore was canceled",
      rule: "It was canceled on the device or on the computer.",
      effect: stopped,
      action: "Start it again."),
    makePage(
      203, "the device does not know the version of the backup",
      rule: "Status.plist and Manifest.plist state the version of their layout. It is newer than the device's iOS.",
      effect: stopped,
      action: "Update iOS on the device, or use another folder for a new backup."),
    makePage(
      205, "the backup is missing, incomplete or damaged",
      rule:
        "The device first reads Status.plist and Manifest.plist, and in a restore then each file of the manifest. One "
        + "of them is empty or missing, or does not match the manifest. This is typical of an interrupted backup.",
      effect: stopped,
      action:
        "For a backup: choose another folder, or move the broken backup away, so that the device starts again. For a "
        + "restore: find what is damaged with \"\(SuggestedCommands.verifying)\", and use another copy.",
      issues: [801, 1582]),
    makePage(
      207, "the backup password is wrong, or was not given",
      rule:
        "The keys of an encrypted backup can be unwrapped only with its password. This is neither the passcode nor the "
        + "password of the Apple Account.",
      effect: "Nothing was restored or changed.",
      action: "Enter the password that was set for backups of this device. See also "
        + "\"\(SuggestedCommands.explaining(PublishedStep.backupPassword.id))\"."),
    makePage(
      208, "the device is locked",
      rule: "A backup or a restore starts only on an unlocked device.",
      effect: stopped,
      action: "Unlock the device, enter its passcode if it asks, and start again."),
    makePage(
      211, "Find My is turned on",
      rule: "iOS does not restore a backup while Find My iPhone is on.",
      effect: "Nothing was restored.",
      action: "Turn it off in Settings > your name > Find My, restore the backup, and turn it on again."),
    makePage(
      212, "the device is not set up yet",
      rule: "A device can be backed up only after its setup is finished.",
      effect: "No backup was made.",
      action: "Finish the setup on the device, and start again.", issues: [187]),
  ]
}
