package import KeychainFormats
package import KeychainRules

/// The items of a backup that cannot be decrypted, grouped by kind, class and reason.
package struct UndecryptedItems {
  /// Items of a kind and class that cannot be decrypted for the same reason.
  package struct Group: Hashable, Sendable {
    package let kind: ItemKind
    /// The class, or `nil` if the items' data contains no known class.
    package let protection: ProtectionClass?
    package let reason: Reason
    /// The number of items.
    package internal(set) var count = 0
  }

  /// The groups in the order of their first items.
  package let groups: [Group]

  /// Counts the items that cannot be decrypted. There are no groups if the backup was not opened.
  package init(_ opened: UnlockedBackup?) {
    var groups: [Group] = []
    var indices: [Group: Int] = [:]
    for item in opened?.items ?? [] {
      guard let reason = opened?.reason(of: item) else { continue }
      let emptyGroup = Group(kind: item.kind, protection: item.protection, reason: reason)
      let index = indices[emptyGroup] ?? groups.count
      if index == groups.count {
        indices[emptyGroup] = index
        groups.append(emptyGroup)
      }
      groups[index].count += 1
    }
    self.groups = groups
  }
}
