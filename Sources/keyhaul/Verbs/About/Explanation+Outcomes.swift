import ArchivedKeychain
import Migration

extension Explanation {
  /// What becomes of an item, in the words of plans and of the expectations that a plan is checked against.
  static let outcomes: [Explanation] = [
    Explanation(
      id: "migrates", title: "the item arrives on the device",
      rule: "An item arrives where the key of its class can be had: on any device out of a backup with a password, "
        + "unless its class is bound to the device; on its own device out of any backup that holds it.",
      effect: "It is there after the restore, or was there already; another word says which: new, replaces, identical, "
        + "keeps-existing.",
      advice: "Nothing is needed."),
    Explanation(
      id: "stays-behind", title: "the item does not arrive, by a rule",
      rule: "What keeps it is named with it: device-bound, backup-not-encrypted, passcode-only and others.",
      effect: "The device that it is on keeps it. iOS says nothing of it.",
      advice: "Look up the reason that stands beside it, with \"keyhaul explain REASON\"."),
    Explanation(
      id: PlanExpectation.Fate.absent.rawValue, title: "no such item is in the backup",
      rule: "A list of expectations may say of an item that the backup does not have it. What never enters one is "
        + "absent from a plan of it: \(UnseenItems.words).",
      effect: "The expectation is met where no item of the plan is meant by it.",
      advice: "Plan for the device itself instead of its backup to see such items and their reasons."),
    Explanation(
      id: "unreadable", title: "the item cannot be read, because it is damaged",
      rule: "An item is sealed with a tag, so that a changed byte of it is noticed.",
      effect: "It is left out; every other item is restored. The program ends with 3.",
      advice: "Use another copy of the backup, and \"keyhaul verify\" to see what this one has lost."),
  ]
}
