/// The caller of a keychain call, defined by the access groups of an app's entitlements.
package struct SecItemCaller: Sendable, Hashable {
  /// The entry in `accessGroups` that stands for all groups.
  package static let wildcard = "*"
  /// The group of items on a token. Every app may search this group by name, and no app may write to
  /// it.
  package static let tokenGroup = "com.apple.token"

  /// The groups in order. New items get the first group.
  package let accessGroups: [String]
  /// Whether the caller is an App Clip. App Clips must not add synchronized items, and their items are flagged.
  package let isAppClip: Bool
  /// The app's identifier, or `nil` if only its groups are known.
  private let applicationIdentifier: String?

  /// Creates a caller with exactly these groups.
  package init(accessGroups: [String], isAppClip: Bool = false) {
    self.init(accessGroups, isAppClip, applicationIdentifier: nil)
  }

  private init(_ accessGroups: [String], _ isAppClip: Bool, applicationIdentifier: String?) {
    (self.accessGroups, self.isAppClip, self.applicationIdentifier) = (accessGroups, isAppClip, applicationIdentifier)
  }

  /// Creates a caller with the groups of an app, in the order in which the system reads its entitlements, and the group
  /// of tokens at the end. An app without entitlements has no groups.
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

  /// Whether `*` is among the groups. Such a caller can use items of every group, like some processes of the system.
  var canUseWildcard: Bool { accessGroups.contains(Self.wildcard) }

  /// Checks that an App Clip uses only its own group. An App Clip with other groups in its entitlements cannot make
  /// calls.
  ///
  /// Source: Apple `SecItemServer.c`.
  ///
  /// - Throws: `.restrictedAPI`.
  func checkAppClip() throws(SecItemError) {
    guard isAppClip else { return }
    let groups = Set(writableGroups)
    guard groups.count <= 1, applicationIdentifier.map({ groups.contains($0) }) ?? true else {
      throw SecItemError(.restrictedAPI, "an App Clip may have no access group but its own")
    }
  }

  /// The groups in which the caller may add, change and delete items.
  var writableGroups: [String] { accessGroups.filter { $0 != Self.tokenGroup } }

  /// Returns whether the caller may read or write items of a group.
  func canUse(_ group: String, writing: Bool) -> Bool {
    canUseWildcard || (writing ? writableGroups : accessGroups).contains(group)
  }
}
