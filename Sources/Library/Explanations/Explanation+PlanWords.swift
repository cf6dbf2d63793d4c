public import KeyhaulKit

extension GlossaryTerm {
  /// The explanation of the term.
  public var explanation: Explanation {
    switch self {
    case .reason(let reason): reason.explanation
    case .change(let change): change.explanation
    case .warning(let warning): warning.explanation
    case .inferredSynchronizable:
      Explanation(
        id: id, headline: "the item will sync with iCloud Keychain once it is restored",
        rule: "iOS assumes that an internet password syncs if it is in Safari's old group (com.apple.cfnetwork) and "
          + "stores server, protocol and authentication type as text.",
        effect: "The item is restored with the sync flag set. This flag is part of its primary key.",
        action: "Nothing. If the item should not sync, turn off iCloud Keychain.",
        source: "Apple securityd, SecItemDb.c (SecItemImportInferSyncable)")
    case .removed:
      Explanation(
        id: id, headline: "the restore removes an item from the target",
        rule: "A replacing restore first deletes the target's items, including this-device-only items. It keeps items "
          + "that sync, items in five system groups, and copies of a shared group's items.",
        effect: "Items that the backup does not restore are lost on the target. The plan lists them first.",
        action: "Back up the target first, or keep its items with \(SuggestedCommands.keepingExisting).",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .preserved:
      Explanation(
        id: id, headline: "an item of the target survives a replacing restore",
        rule: "The restore does not delete items that sync, copies of a shared group's items, and items of the groups "
          + "com.apple.security.sos, .sos-usercredential, .ckks, .egoIdentities and .octagon. It deletes the system's "
          + "own items and puts them back afterwards.",
        effect: "They are still there after the restore, unless the backup contains a newer item with the same "
          + "primary key.",
        action: "Nothing.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist, SecItemIsSystemBound)")
    case .keybagMismatch:
      Explanation(
        id: id, headline: "the keychain belongs to another keybag",
        rule: "The keychain file contains the identifier of its keybag, but the backup's keybag has a different "
          + "identifier.",
        effect: "Keyhaul restores nothing (exit code 13). The two files come from different backups, or one was "
          + "changed.",
        action: "Try another copy of the backup.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .sealBroken:
      Explanation(
        id: id, headline: "a file has changed since the backup was sealed",
        rule: "Keyhaul.seal lists the SHA-256 of every file. In a backup with a password, it also has an "
          + "authentication code that can be produced only with the password.",
        effect: "Keyhaul restores nothing (exit code 13). Since the seal was made, a file was changed, added or "
          + "removed, or the seal was changed.",
        action: "Try another copy of the backup; verify lists every such file.",
        source: "Keyhaul, docs/Format.md")
    }
  }
}

extension MigrationPlan.Change {
  private static let conflictSource =
    "Apple securityd, SecDbItem.c (SecDbItemInsertOrReplace), SecItemDb.c (SecServerImportItem)"

  /// The explanation of the change: its meaning, which of two items wins, and the reason.
  public var explanation: Explanation {
    switch self {
    case .new:
      Explanation(
        id: rawValue, headline: "the item is new on the target",
        rule: "No item on the target has the same identifying attributes (primary key). A password is identified by "
          + "its account, its service or server, its access group, and a few more.",
        effect: "The item is added with its original dates.",
        action: "Nothing.", source: Self.conflictSource)
    case .replaces:
      Explanation(
        id: rawValue, headline: "the item replaces an item with the same primary key",
        rule: "If two items have the same primary key, the one that was changed later is kept. If the dates are "
          + "equal, the one with the smaller digest is kept. A damaged item is always replaced, and so is an item "
          + "that \(SuggestedCommands.replacingExisting) removed first.",
        effect: "The target's item is replaced by the backup's item.",
        action:
          "If you need the target's item, restore with \(SuggestedCommands.keepingExisting). The target's item is then kept if "
          + "it is newer.",
        source: Self.conflictSource)
    case .keepsExisting:
      Explanation(
        id: rawValue, headline: "the target's own item with the same primary key is kept",
        rule: "If two items have the same primary key, the one that was changed later is kept. If the dates are "
          + "equal, the one with the smaller digest is kept. If only one of them has a date, that one is kept.",
        effect: "The target's item does not change. The backup's item is not restored.",
        action: "If you need the backup's item, delete the target's item first and restore again.",
        source: Self.conflictSource)
    case .identical:
      Explanation(
        id: rawValue, headline: "the target already has the same item",
        rule: "Two items with the same primary key, date and digest are the same item.",
        effect: "Nothing changes.", action: "Nothing.", source: Self.conflictSource)
    }
  }
}

extension ItemFate {
  /// The explanation of the outcome, for plans and expectations.
  public var explanation: Explanation {
    switch self {
    case .migrates:
      Explanation(
        id: rawValue, headline: "the item is on the device after the restore",
        rule: "An item is restored if the key of its class is available. If the backup has a password, the key is "
          + "available on any device, unless the class is bound to the source device. On the source device, the key is "
          + "available with any backup that contains the item.",
        effect:
          "The restore puts the item on the device, or the item was already there. The report says which: new, "
          + "replaces, identical or keeps-existing.",
        action: "Nothing.")
    case .staysBehind:
      Explanation(
        id: rawValue, headline: "a rule keeps the item from moving",
        rule: "The report gives the reason: device-bound, backup-not-encrypted, passcode-only and others.",
        effect: "The source device keeps the item. iOS does not report that it stayed behind.",
        action: "Look up the reason in the report with \"\(SuggestedCommands.explaining("REASON"))\".")
    case .absent:
      Explanation(
        id: rawValue, headline: "no such item is in the backup",
        rule: "A list of expectations can state that an item is not in the backup. A plan made from a backup never "
          + "lists the items that no backup contains: \(BackupBlindSpots.itemKinds).",
        effect: "The expectation is met if no item of the plan matches it.",
        action: "To see such items and their reasons, plan for the device itself instead of its backup.")
    case .unreadable:
      Explanation(
        id: rawValue, headline: "the item cannot be read, because it is damaged",
        rule: "Each encrypted item has an authentication tag, which shows any changed byte.",
        effect: "plan exits with 3. restore asks first, and exits with 13 if it cannot ask. After a yes, or with "
          + "\(SuggestedCommands.acceptingDamage), it skips the item, restores all others, and exits with 3.",
        action: "Use another copy of the backup. \"\(SuggestedCommands.verifying)\" shows what this copy has lost.")
    case .ambiguous:
      Explanation(
        id: rawValue, headline: "several items match, and their results differ",
        rule: "If a name matches several items, Keyhaul answers only if the result is the same for all of them.",
        effect: "An expectation that uses such a name always fails.", action: "Ask for a single item.")
    }
  }
}
