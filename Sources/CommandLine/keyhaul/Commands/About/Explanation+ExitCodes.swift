import KeyhaulKit
import Reports

extension Explanation {
  /// The pages of all exit codes, in order. All signals share one page.
  static let exitCodes: [Explanation] =
    CommandExitStatus.fixed.flatMap { $0 == .wrongPassword ? [page($0), page(.needsPassword)] : [page($0)] }
    + [page(.signal(2))]

  private static func page(_ status: CommandExitStatus) -> Explanation {
    switch status {
    case .ok:
      page(
        status, headline: "done",
        rule: "The work is done. Items that a rule leaves behind are reported, but are not an error.",
        effect: "The result is on standard output.",
        action: "Nothing.")
    case .failed:
      page(
        status, headline: "an error that has no exit code of its own",
        rule: "The work stopped for a reason that no other code covers.",
        effect: "Nothing was changed. No partial output file is left.",
        action: "Read the message.")
    case .differs:
      page(
        status, headline: "a difference was found",
        rule: "With --exit-code, diff found a difference, or plan found items that do not move. With --expect, an "
          + "expectation was not met.",
        effect: "The report is complete.",
        action: "Read the report.")
    case .partial:
      page(
        status, headline: "done, but something is damaged or missing",
        rule: "Keyhaul finished, but some items or files could not be read, or the backup is not what its device "
          + "wrote. Items that a rule leaves behind are not an error. With --exit-code, diff found no difference but "
          + "could not compare everything.",
        effect: "Everything else is done.",
        action: "Read the report.")
    case .noMatch:
      page(
        status, headline: "nothing matched",
        rule: "No item has the requested attributes.",
        effect: "Nothing was changed.",
        action: "Use fewer attributes.")
    case .doneBut:
      page(
        status, headline: "done, but a later step failed",
        rule: "The change was made and is final, but a later step failed. For example, the result could not be "
          + "printed, the disk did not confirm the write, or the replaced backup could not be removed. Keyhaul also "
          + "exits with this code if a device erases itself after too many wrong passcodes.",
        effect: "The change is in effect. The message says what was done.",
        action: "Read the message; do not run the command again.")
    case .notFound:
      page(
        status, headline: "the device or backup does not exist",
        rule: "There is no device with this name in the device folder, or no file or folder at this path.",
        effect: "Nothing was changed.",
        action: "Check the name; \"keyhaul device list\" shows the devices.")
    case .busy:
      page(
        status, headline: "another process is using the device or backup",
        rule: "Only one process at a time can use a device or change a backup. Several processes can read a backup, "
          + "but not while another process changes it.",
        effect: "Nothing was changed.",
        action: "Try again, or add --wait 30s.")
    case .wrongPassword:
      page(
        status, headline: "the password or passcode is wrong",
        rule: "The password unwraps no key. If the keybag's salt or iteration count is damaged, every password looks "
          + "wrong.",
        effect: "Nothing was changed, except that a device counts wrong passcodes.",
        action: "Use the password that was set when the backup was made, or the passcode of the device.")
    case .needsPassword:
      page(
        status, headline: "a password or passcode is needed, and none was given",
        rule: "The backup is encrypted, or the device is locked. Keyhaul asks on a terminal, except when --no-input "
          + "forbids it. For many backups it asks once, and tries that password on all of them.",
        effect: "Nothing was changed.",
        action: "Give the password with --password-file, or run the command on a terminal. If backups have different "
          + "passwords, --passwords FILE says where each one is.")
    case .damaged:
      page(
        status, headline: "the backup does not match what was written",
        rule: "A check of the backup failed, or the backup is cut short. restore asks before it uses a damaged "
          + "backup, and needs --accept-damage if it cannot ask. It refuses a backup with a broken seal, a manifest "
          + "that is cut off, or an unreadable keychain.",
        effect: "Nothing was changed.",
        action: "Use another copy.")
    case .refused:
      page(
        status, headline: "not a backup, malicious, unsupported or against a rule",
        rule: "The file contains something that no real backup contains, exceeds a limit, or has an unknown version. "
          + "Or a rule forbids the request, such as a restore that would restore no item.",
        effect: "No device was changed and nothing was written.",
        action: "Read the message: it states the cause. Do not trust a file that no device writes.")
    case .locked:
      page(
        status, headline: "the device must be unlocked first",
        rule: "The keys of some classes are in memory only while the device is unlocked.",
        effect: "Nothing was changed.",
        action: "Unlock it with \"keyhaul device unlock\".")
    case .stalePlan:
      page(
        status, headline: "the backup or the device changed since the plan",
        rule: "A saved plan records the backup's digest and the device's revision. One of them has changed, or "
          + "planning again would now give a different result.",
        effect: "Nothing was changed.",
        action: "Plan again.")
    case .usage:
      page(
        status, headline: "wrong arguments",
        rule: "A command, flag or value is not valid, or Keyhaul needs --yes because it cannot ask.",
        effect: "Nothing was changed.",
        action: "Correct the command; -h shows its usage.")
    case .signal:
      Explanation(
        id: status.id, headline: "ended by a signal",
        rule: "The exit code is 128 plus the signal's number: 130 is Ctrl-C.",
        effect: "After the first Ctrl-C, Keyhaul stops and undoes what it began. After the second, it exits "
          + "immediately. Both are safe.",
        action: "Run it again.")
    }
  }

  private static func page(
    _ status: CommandExitStatus, headline: String, rule: String, effect: String, action: String
  ) -> Explanation {
    Explanation(id: status.id, code: status.code, headline: headline, rule: rule, effect: effect, action: action)
  }
}
