import Basics
package import KeychainFormats
package import KeychainRules

/// The items of an archive that do not open, counted by as much as they say of themselves.
package struct SealedItems {
  /// Items of one kind and class that stay shut for one reason.
  package struct Group: Hashable, Sendable {
    package let kind: ItemKind
    /// `nil` where their blobs name no known class.
    package let protection: ProtectionClass?
    package let reason: Reason
    /// How many they are.
    package internal(set) var count = 0
  }

  /// In the order in which the archive has the first item of each.
  package let groups: [Group]

  /// Counts the items of an archive; of one that was not opened there are none.
  package init(_ opened: OpenedArchive?) {
    var groups: [Group] = []
    var places: [Group: Int] = [:]
    for item in opened?.items ?? [] {
      guard let reason = opened?.reason(of: item) else { continue }
      let key = Group(kind: item.kind, protection: item.protection, reason: reason)
      let place = places[key] ?? groups.count
      if place == groups.count {
        places[key] = place
        groups.append(key)
      }
      groups[place].count += 1
    }
    self.groups = groups
  }
}
