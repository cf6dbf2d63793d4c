public import KeyhaulKit

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
          + "authentication type as text, is assumed to sync.",
        effect: "It is restored with syncing on. This flag is part of its primary key.",
        action: "Nothing, or turn off syncing for the account.",
        source: "Apple securityd, SecItemDb.c (SecItemImportInferSyncable)")
    case .removed:
      Explanation(
        id: id, headline: "the restore removes an item of the target",
        rule: "A replacing restore first deletes the target's items, this-device-only items included. It keeps "
          + "synchronized items, items in five system groups, and a shared group's copies.",
        effect: "Items that the backup does not bring back are lost on the target. The plan lists them first.",
        action: "Back up the target first, or keep its items with \(Commands.keepingExisting).",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .preserved:
      Explanation(
        id: id, headline: "an item of the target survives a replacing restore",
        rule: "Synchronized items, shared copies and the groups com.apple.security.sos, .sos-usercredential, .ckks, "
          + ".egoIdentities and .octagon are not deleted. The system's own items are deleted and put back afterwards.",
        effect: "They stay after the restore, unless the backup contains a newer item with the same key.",
        action: "Nothing needs to be done.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist, SecItemIsSystemBound)")
    case .keybagMismatch:
      Explanation(
        id: id, headline: "the keychain belongs to another keybag",
        rule: "The keychain file names its keybag by identifier, but the backup's keybag has a different identifier.",
        effect: "Nothing is restored. The two files come from different backups, or one was changed (exit code 13).",
        action: "Try another copy of the backup.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .sealBroken:
      Explanation(
        id: id, headline: "a file has changed since it was sealed",
        rule: "Keyhaul.seal lists the SHA-256 of every file, with an authentication code that only the password can "
          + "produce.",
        effect: "Nothing is restored. A file was changed, added or removed since then, or the seal was changed (exit "
          + "code 13).",
        action: "Try another copy of the backup; verify lists every such file.",
        source: "Keyhaul, docs/Format.md")
    }
  }
}
