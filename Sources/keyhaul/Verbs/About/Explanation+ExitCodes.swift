import CommandArguments
import CommandSession
import Reports

extension Explanation {
  /// Every exit code, in their order. Unknown codes mean failure.
  static let exitCodes: [Explanation] = CommandStatus.fixed.map(page) + [page(.signal(2))]

  private static func page(_ status: CommandStatus) -> Explanation {
    switch status {
    case .ok:
      of(
        status, "done", "The work is done. Items that stay behind by a rule are announced, and are no error.",
        "The result is on standard output.", "Go on.")
    case .failed:
      of(
        status, "an error without a code of its own", "Something stopped the work that no other code stands for.",
        "Nothing was changed. No partial output file is left.", "Read the message.")
    case .differs:
      of(
        status, "a difference was found",
        "With --exit-code, diff found a difference, or plan items that do not migrate.",
        "The report is complete.", "Read the report.")
    case .partial:
      of(
        status, "done, but something is damaged or missing",
        "The work was carried through; some items or files could "
          + "not be read, or the backup is known not to be what its device wrote. Items that stay behind by a rule do "
          + "not count. With --exit-code, diff also found no difference and could not compare everything.",
        "The rest is safe.", "Read the report.")
    case .noMatch:
      of(
        status, "nothing matched", "No item has the attributes that were asked for.", "Nothing was changed.",
        "Ask for less.")
    case .doneBut:
      of(
        status, "done, but something after it failed",
        "The change was made and is final; what came after it was not: the result could not be printed, the disk did "
          + "not confirm what was written, or the backup that was replaced could not be removed. A device "
          + "that erases itself after too many wrong passcodes ends so too.",
        "The change stands. The message says what was done.", "Read the message; do not run it again.")
    case .notFound:
      of(
        status, "the device or archive does not exist",
        "There is nothing of that name in the home folder, or at that "
          + "path.", "Nothing was changed.", "Check the name; \"keyhaul device list\" shows the devices.")
    case .busy:
      of(
        status, "another process holds the device", "One process at a time works on a device.",
        "Nothing was changed.", "Try again, or let --wait 30s do so.")
    case .wrongPassword:
      of(
        status, "the password or passcode is wrong, or there is none",
        "No key opens with what was given; or nothing "
          + "was given, and there is no terminal to ask on. A keybag whose salt or counts are damaged looks the same.",
        "Nothing was changed, but that a device counts wrong passcodes.",
        "Give the password that was set when the backup was made, or the passcode of the device.")
    case .damaged:
      of(
        status, "the archive's bytes are not what was written",
        "A check inside the archive failed, or it is cut short. A restore of a backup that is known to be damaged asks "
          + "first, and needs --accept-damage where nobody can be asked; one whose seal is broken, whose list of files is cut "
          + "or whose keychain cannot be read is not restored.",
        "Nothing was changed.", "Use another copy.")
    case .refused:
      of(
        status, "not a backup, hostile, unsupported or against a rule",
        "The file asks for something that no real backup does, is over a limit, or has an unknown version; or a rule "
          + "stands against what was asked for, such as a restore in which nothing would arrive.",
        "Nothing was read into a device, nothing was written.",
        "Read the message, which says which of them it is; a file that no device writes is not to be trusted.")
    case .locked:
      of(
        status, "the device must be unlocked first",
        "The keys of some classes exist in memory only while the device is "
          + "unlocked.", "Nothing was changed.", "Unlock it with \"keyhaul device unlock\".")
    case .stalePlan:
      of(
        status, "the archive or the device changed since the plan",
        "A saved plan names the archive's digest and the "
          + "device's revision; one of them is another now, or a decision would be.", "Nothing was changed.",
        "Plan again.")
    case .usage:
      of(
        status, "wrong arguments",
        "A verb, a flag or a value is not what the program takes, or a question needed --yes.",
        "Nothing was changed.", "Correct the call; -h shows how a command is called.")
    case .signal:
      Explanation(
        id: status.id, headline: "ended by a signal",
        rule: "The exit code is 128 and the signal's number: 130 is Ctrl-C.",
        effect: "The first Ctrl-C stops and rolls back; the second leaves at once. Both are safe.",
        action: "Run it again.")
    }
  }

  private static func of(
    _ status: CommandStatus, _ headline: String, _ rule: String, _ effect: String, _ action: String
  ) -> Explanation {
    Explanation(id: status.id, code: status.code, headline: headline, rule: rule, effect: effect, action: action)
  }
}
