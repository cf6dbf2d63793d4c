public import ArchivedKeychain
public import KeychainRules

/// A word that reports of a move use and that has a page of its own: why an item does not arrive, what an arriving item
/// does, what happens to the target's own items, and why an archive is refused.
///
/// The one table behind `explain`, the reports and docs/Rules.md. Source of the rules: Apple `SecItemDb.c`
/// (`SecServerImportItem`, `SecServerImportKeychainInPlist`), `SecDbItem.c` (`SecDbItemInsertOrReplace`).
public enum ReportTerm: Sendable, Hashable, CaseIterable {
  /// Why an item does not arrive.
  case reason(Reason)
  /// What an arriving item does on the target.
  case change(MigrationPlan.Change)
  /// An arriving item starts to sync.
  case inferredSynchronizable
  /// An item of the target is gone after a restore that replaces.
  case removed
  /// An item of the target is there after a restore that replaces.
  case preserved
  /// The archive's keychain was sealed for another keybag.
  case keybagMismatch

  /// Every word there is, in the order in which `explain` lists them.
  public static let allCases: [ReportTerm] =
    Reason.allCases.map(ReportTerm.reason) + MigrationPlan.Change.allCases.map(ReportTerm.change)
    + [.inferredSynchronizable, .removed, .preserved, .keybagMismatch]

  /// The word itself, as reports, JSON and `explain` use it.
  public var id: String {
    switch self {
    case .reason(let reason): reason.rawValue
    case .change(let change): change.rawValue
    case .inferredSynchronizable: "inferred-synchronizable"
    case .removed: "removed"
    case .preserved: "preserved"
    case .keybagMismatch: "keybag-mismatch"
    }
  }

  /// The words on it, the same in `explain`, the reports and docs/Rules.md.
  public var explanation: Reason.Explanation {
    switch self {
    case .reason(let reason): reason.explanation
    case .change(let change): change.explanation
    case .inferredSynchronizable:
      Reason.Explanation(
        headline: "the item will sync once it is restored",
        rule: "An internet password in Safari's old group (com.apple.cfnetwork), with server, protocol and "
          + "authentication type as text, is taken to sync.",
        effect: "It is restored with syncing on, which is part of what makes it unique.",
        action: "Nothing, or turn off syncing for the account.",
        source: "Apple securityd, SecItemDb.c (SecItemImportInferSyncable)")
    case .removed:
      Reason.Explanation(
        headline: "an item of the target is gone after the restore",
        rule: "A restore that replaces first deletes every item that is not synchronized, is in none of five groups of "
          + "the system and is no shared group's copy; items of this device only among them.",
        effect: "What the backup does not bring back is lost on the target; the plan lists it first.",
        action: "Back up the target first, or keep its items with --existing merge.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    case .preserved:
      Reason.Explanation(
        headline: "an item of the target survives a restore that replaces",
        rule: "Synchronized items, shared copies and the groups com.apple.security.sos, .sos-usercredential, .ckks, "
          + ".egoIdentities and .octagon are not deleted; the system's own items are, and are put back afterwards.",
        effect: "They are there after the restore as before, unless the backup holds a newer item with the same key.",
        action: "Nothing needs to be done.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist, SecItemIsSystemBound)")
    case .keybagMismatch:
      Reason.Explanation(
        headline: "the keychain belongs to another keybag",
        rule: "The keychain file names its keybag by its identifier, and the backup's keybag has another one.",
        effect: "Nothing is restored: the two files come from different backups, or one was changed (exit code 13).",
        action: "Try another copy of the backup.",
        source: "Apple securityd, SecItemDb.c (SecServerImportKeychainInPlist)")
    }
  }
}

extension MigrationPlan.Change {
  fileprivate static let conflictSource =
    "Apple securityd, SecDbItem.c (SecDbItemInsertOrReplace), SecItemDb.c (SecServerImportItem)"

  /// What the change means, which of two items wins, and why.
  public var explanation: Reason.Explanation {
    switch self {
    case .new:
      Reason.Explanation(
        headline: "the item arrives, and nothing was in its place",
        rule: "No item of the target has the same primary key: for a password its account, service or server, access "
          + "group and the like.",
        effect: "The item is added with the dates that it had.",
        action: "Nothing needs to be done.", source: Self.conflictSource)
    case .replaces:
      Reason.Explanation(
        headline: "the item arrives in the place of one with the same key",
        rule: "Of two items with the same key the one that was changed later wins; with equal dates the one with the "
          + "smaller digest. A damaged item always loses, and so does one that --existing replace has removed first.",
        effect: "The target's item is gone; the backup's takes its place.",
        action: "If the target's item is the one you need, keep it with --existing merge; it stays where it is newer.",
        source: Self.conflictSource)
    case .keepsExisting:
      Reason.Explanation(
        headline: "an item with the same key is there and wins",
        rule: "Of two items with the same key the one that was changed later wins; with equal dates the one with the "
          + "smaller digest, and one with a date over one without.",
        effect: "The item that is there stays as it is; the backup's is not stored.",
        action: "If the backup's item is the one you need, delete the target's first and restore again.",
        source: Self.conflictSource)
    case .identical:
      Reason.Explanation(
        headline: "the very same item is there",
        rule: "Two items with the same key, date and digest are the same item.",
        effect: "Nothing changes.", action: "Nothing needs to be done.", source: Self.conflictSource)
    }
  }
}
