public import KeyhaulKit

extension ItemFate {
  /// What becomes of an item, in the words of plans and of the expectations that a plan is checked against.
  public var explanation: Explanation {
    switch self {
    case .migrates:
      Explanation(
        id: rawValue, headline: "the item arrives on the device",
        rule: "An item arrives if the key of its class is available. From a backup with a password, that is on any "
          + "device, unless the class is bound to the source device. On the source device, it is from any backup that "
          + "contains the item.",
        effect:
          "It is there after the restore, or was there before. Another term says which: new, replaces, identical, "
          + "keeps-existing.",
        action: "Nothing is needed.")
    case .staysBehind:
      Explanation(
        id: rawValue, headline: "the item does not arrive, by a rule",
        rule: "The report gives the reason: device-bound, backup-not-encrypted, passcode-only and others.",
        effect: "The device that it is on keeps it. iOS does not report it.",
        action: "Look up the reason in the report with \"\(Commands.explaining("REASON"))\".")
    case .absent:
      Explanation(
        id: rawValue, headline: "no such item is in the backup",
        rule: "A list of expectations may state that the backup does not contain an item. A plan of a backup does not "
          + "list items that no backup contains: \(UnseenItems.words).",
        effect: "The expectation is met if it matches no item of the plan.",
        action: "Plan for the device itself instead of its backup to see such items and their reasons.")
    case .unreadable:
      Explanation(
        id: rawValue, headline: "the item cannot be read, because it is damaged",
        rule: "Each encrypted item has an authentication tag, which shows any changed byte.",
        effect: "A plan ends with exit code 3. A restore asks first, and ends with 13 if it cannot ask. After a yes, "
          + "or with \(Commands.acceptingDamage), it skips the item, restores all others, and ends with 3.",
        action: "Use another copy of the backup, and \"\(Commands.verifying)\" to see what this copy has lost.")
    case .ambiguous:
      Explanation(
        id: rawValue, headline: "several items match, and their results differ",
        rule: "A name may match several items. There is an answer only if they have the same result.",
        effect: "This answer equals no other answer.", action: "Ask for a single item.")
    }
  }
}
