public import Migration

extension MigrationPlan.Change {
  fileprivate static let conflictSource =
    "Apple securityd, SecDbItem.c (SecDbItemInsertOrReplace), SecItemDb.c (SecServerImportItem)"

  /// What the change means, which of two items wins, and why.
  public var explanation: Explanation {
    switch self {
    case .new:
      Explanation(
        id: rawValue, headline: "the item arrives, and nothing was in its place",
        rule: "No item of the target has the same primary key: for a password its account, service or server, access "
          + "group and the like.",
        effect: "The item is added with the dates that it had.",
        action: "Nothing needs to be done.", source: Self.conflictSource)
    case .replaces:
      Explanation(
        id: rawValue, headline: "the item arrives in the place of one with the same key",
        rule: "Of two items with the same key the one that was changed later wins; with equal dates the one with the "
          + "smaller digest. A damaged item always loses, and so does one that \(Commands.replacingExisting) has removed first.",
        effect: "The target's item is gone; the backup's takes its place.",
        action:
          "If the target's item is the one you need, keep it with \(Commands.keepingExisting); it stays where it is newer.",
        source: Self.conflictSource)
    case .keepsExisting:
      Explanation(
        id: rawValue, headline: "an item with the same key is there and wins",
        rule: "Of two items with the same key the one that was changed later wins; with equal dates the one with the "
          + "smaller digest, and one with a date over one without.",
        effect: "The item that is there stays as it is; the backup's is not stored.",
        action: "If the backup's item is the one you need, delete the target's first and restore again.",
        source: Self.conflictSource)
    case .identical:
      Explanation(
        id: rawValue, headline: "the very same item is there",
        rule: "Two items with the same key, date and digest are the same item.",
        effect: "Nothing changes.", action: "Nothing needs to be done.", source: Self.conflictSource)
    }
  }
}
