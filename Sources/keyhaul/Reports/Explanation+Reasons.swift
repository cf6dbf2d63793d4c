import ArchivedKeychain
import Migration

extension Explanation {
  /// Why an item stays behind, cannot be read, or changes on the target: every id that a report can show.
  static let reasons: [Explanation] = Reason.allCases.map(Explanation.init) + wholeArchive + changes

  private init(_ reason: Reason) {
    let explanation = reason.explanation
    self.init(
      id: reason.rawValue, title: explanation.headline, rule: explanation.rule, effect: explanation.effect,
      advice: explanation.action, source: explanation.source)
  }

  private static let restore = "Apple securityd, SecItemDb.c (SecServerImportItem, SecServerImportKeychainInPlist)"

  /// What is refused as a whole, by the name that errors give it.
  private static let wholeArchive: [Explanation] = [
    Explanation(
      id: "keybag-mismatch", title: "the keychain belongs to another keybag",
      rule: "The keychain file names its keybag by its identifier, and the backup's keybag has another one.",
      effect: "Nothing is restored: the two files come from different backups, or one was changed (exit code 13).",
      advice: "Try another copy of the backup.", source: restore)
  ]

  /// What a restore does to an item besides bringing it.
  private static let changes: [Explanation] = [
    Explanation(
      id: "inferred-synchronizable", title: "the item will sync once it is restored",
      rule:
        "An internet password in Safari's old group, with server, protocol and authentication type, is taken to sync.",
      effect: "It is restored with syncing on, which is part of what makes it unique.",
      advice: "Nothing, or turn off syncing for the account.", source: restore)
  ]
}
