public import KeyhaulKit

extension MigrationPlan.Change {
  fileprivate static let conflictSource =
    "Apple securityd, SecDbItem.c (SecDbItemInsertOrReplace), SecItemDb.c (SecServerImportItem)"

  /// What the change means, which of two items wins, and why.
  public var explanation: Explanation {
    switch self {
    case .new:
      Explanation(
        id: rawValue, headline: "the item arrives, and the target had no item with its key",
        rule: "No item of the target has the same primary key. A password's key is its account, service or server, "
          + "access group and similar attributes.",
        effect: "The item is added with its original dates.",
        action: "Nothing needs to be done.", source: Self.conflictSource)
    case .replaces:
      Explanation(
        id: rawValue, headline: "the item replaces an item with the same key",
        rule: "If two items have the same key, the one that was changed later wins. If the dates are equal, the one "
          + "with the smaller digest wins. A damaged item always loses, and so does an item that "
          + "\(Commands.replacingExisting) removed first.",
        effect: "The target's item is replaced by the backup's item.",
        action:
          "If the target's item is the one you need, keep it with \(Commands.keepingExisting). It stays if it is "
          + "newer.",
        source: Self.conflictSource)
    case .keepsExisting:
      Explanation(
        id: rawValue, headline: "the target has an item with the same key, which wins",
        rule: "If two items have the same key, the one that was changed later wins. If the dates are equal, the one "
          + "with the smaller digest wins. An item with a date wins over one without.",
        effect: "The target's item stays as it is. The backup's item is not stored.",
        action: "If the backup's item is the one you need, delete the target's item first and restore again.",
        source: Self.conflictSource)
    case .identical:
      Explanation(
        id: rawValue, headline: "the target already has the same item",
        rule: "Two items with the same key, date and digest are the same item.",
        effect: "Nothing changes.", action: "Nothing needs to be done.", source: Self.conflictSource)
    }
  }
}
