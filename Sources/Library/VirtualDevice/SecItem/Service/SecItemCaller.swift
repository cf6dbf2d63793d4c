/// Who makes a keychain call: the access groups that an app's entitlements give it.
package struct SecItemCaller: Sendable, Hashable {
  /// The group that stands for every group.
  package static let wildcard = "*"
  /// The group of items on a token: every app may ask for it by name, none may write to it.
  package static let tokenGroup = "com.apple.token"

  /// In their order: the first is the one that new items get.
  package let accessGroups: [String]
  /// App Clips may not add synchronized items, and what they add is marked.
  package let isAppClip: Bool
  /// Its own group where that is known; `nil` for a caller of whom only the groups are.
  private let applicationIdentifier: String?

  /// A caller with exactly these groups.
  package init(accessGroups: [String], isAppClip: Bool = false) {
    self.init(accessGroups, isAppClip, applicationIdentifier: nil)
  }

  private init(_ accessGroups: [String], _ isAppClip: Bool, applicationIdentifier: String?) {
    (self.accessGroups, self.isAppClip, self.applicationIdentifier) = (accessGroups, isAppClip, applicationIdentifier)
  }

  /// The groups of an app, in the order in which the system asks its entitlements, the group of tokens last. An app
  /// without any entitlement has no group at all.
  ///
  /// Source: Apple `SecTask` entitlement code (`SecTaskCopyAccessGroups`).
  package init(
    keychainAccessGroups: [String] = [], associatedApplicationIdentifiers: [String] = [],
    applicationIdentifier: String? = nil, applicationGroups: [String] = [], isAppClip: Bool = false
  ) {
    var groups = keychainAccessGroups + associatedApplicationIdentifiers
    if let applicationIdentifier { groups.append(applicationIdentifier) }
    groups += applicationGroups
    if !groups.isEmpty {
      groups.removeAll { $0 == Self.tokenGroup }
      groups.append(Self.tokenGroup)
    }
    self.init(groups, isAppClip, applicationIdentifier: applicationIdentifier)
  }

  /// True where `*` is among the groups: the caller reads, changes and deletes items of every group, as some of the
  /// system's processes do.
  var canUseWildcard: Bool { accessGroups.contains(Self.wildcard) }

  /// An App Clip may use its own group alone; one whose entitlements name others may make no call.
  ///
  /// Source: Apple `SecItemServer.c`.
  /// - Throws: `.restrictedAPI`.
  func checkAppClip() throws(SecItemError) {
    guard isAppClip else { return }
    let groups = Set(writableGroups)
    guard groups.count <= 1, applicationIdentifier.map({ groups.contains($0) }) ?? true else {
      throw SecItemError(.restrictedAPI, "an App Clip may have no access group but its own")
    }
  }

  /// Where the caller may add, change and delete.
  var writableGroups: [String] { accessGroups.filter { $0 != Self.tokenGroup } }

  /// Whether a group that the caller names may be used, for reading or for writing.
  func mayUse(_ group: String, writing: Bool) -> Bool {
    canUseWildcard || (writing ? writableGroups : accessGroups).contains(group)
  }
}
