public import KeychainRules

extension ItemFate {
  /// What becomes of an item, in the words of plans and of the expectations that a plan is checked against.
  public var explanation: Explanation {
    switch self {
    case .migrates:
      Explanation(
        id: rawValue, headline: "the item arrives on the device",
        rule: "An item arrives where the key of its class can be had: on any device out of a backup with a password, "
          + "unless its class is bound to the device; on its own device out of any backup that holds it.",
        effect:
          "It is there after the restore, or was there already; another word says which: new, replaces, identical, "
          + "keeps-existing.",
        action: "Nothing is needed.")
    case .staysBehind:
      Explanation(
        id: rawValue, headline: "the item does not arrive, by a rule",
        rule: "What keeps it is named with it: device-bound, backup-not-encrypted, passcode-only and others.",
        effect: "The device that it is on keeps it. iOS says nothing of it.",
        action: "Look up the reason that stands beside it, with \"\(Commands.explaining("REASON"))\".")
    case .absent:
      Explanation(
        id: rawValue, headline: "no such item is in the backup",
        rule: "A list of expectations may say of an item that the backup does not have it. What never enters one is "
          + "absent from a plan of it: \(UnseenItems.words).",
        effect: "The expectation is met where no item of the plan is meant by it.",
        action: "Plan for the device itself instead of its backup to see such items and their reasons.")
    case .unreadable:
      Explanation(
        id: rawValue, headline: "the item cannot be read, because it is damaged",
        rule: "An item is sealed with a tag, so that a changed byte of it is noticed.",
        effect: "A plan ends with 3. A restore asks first, and ends with 13 where nobody answers; with a yes, or "
          + "\(Commands.acceptingDamage), it leaves the item out, restores every other, and ends with 3.",
        action: "Use another copy of the backup, and \"\(Commands.verifying)\" to see what this one has lost.")
    case .ambiguous:
      Explanation(
        id: rawValue, headline: "several items are meant, and not all share a fate",
        rule: "A name may mean several items; only what they have in common is an answer.",
        effect: "The answer is equal to none of the others.", action: "Ask for one of the items.")
    }
  }
}
