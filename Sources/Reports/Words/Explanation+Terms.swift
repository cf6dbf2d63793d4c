public import Migration

extension ReportTerm {
  /// What the word means.
  public var explanation: Explanation {
    switch self {
    case .reason(let reason): reason.explanation
    case .change(let change): change.explanation
    case .warning(let warning): warning.explanation
    case .inferredSynchronizable:
      Explanation(
        id: id, headline: "the item will sync once it is restored",
        rule: "An internet password in Safari's old group (com.apple.cfnetwork), with server, protocol and "
          + "authentication type as text, is taken to sync.",
        effect: "It is restored with syncing on, which is part of what makes it unique.",
        action: "Nothing, or turn off syncing for the account.",
        source: "Apple securityd, SecItemDb.c (SecItemImportInferSyncable)")
    case .removed:
      Explanation(
        id: id, headline: "an item of the target is gone after the restore",
        rule: "A restore that replaces first deletes every item that is not synchronized, is in none of five groups of "
          + "the system and is no shared group's copy; items of this device only among them.",
        effect: "What the backup does not bring back is lost on the target; the plan lists it first.",
        action: "Back up the target first, or keep its items with \(Commands.keepingExisting).",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .preserved:
      Explanation(
        id: id, headline: "an item of the target survives a restore that replaces",
        rule: "Synchronized items, shared copies and the groups com.apple.security.sos, .sos-usercredential, .ckks, "
          + ".egoIdentities and .octagon are not deleted; the system's own items are, and are put back afterwards.",
        effect: "They are there after the restore as before, unless the backup holds a newer item with the same key.",
        action: "Nothing needs to be done.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist, SecItemIsSystemBound)")
    case .keybagMismatch:
      Explanation(
        id: id, headline: "the keychain belongs to another keybag",
        rule: "The keychain file names its keybag by its identifier, and the backup's keybag has another one.",
        effect: "Nothing is restored: the two files come from different backups, or one was changed (exit code 13).",
        action: "Try another copy of the backup.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .sealBroken:
      Explanation(
        id: id, headline: "a file is not what was sealed",
        rule: "Keyhaul.seal lists the SHA-256 of every file, under a code that only the password leads to.",
        effect: "Nothing is restored: a file was changed, added or removed since, or the seal was (exit code 13).",
        action: "Try another copy of the backup; verify names every such file.",
        source: "Keyhaul, docs/Format.md")
    }
  }
}
