/// The owner of an item in reports: an app, or the item's access group if no listed app uses it.
package struct AppName: Sendable, Hashable {
  /// The level of knowledge about the owner.
  package enum Kind: Sendable, Hashable {
    /// A listed app. `text` is its name or identifier in the list.
    case app
    /// A team's access group that matches no app in the list. Any app of that team may use it.
    case teamGroup
    /// An access group without a team, such as a group of the system.
    case group
    /// The decrypted item has no access group. This is the case for items of iOS 4, which consist only of a secret.
    case withoutGroup
    /// The item is encrypted, including its access group.
    case encrypted
  }

  /// The level of knowledge about the owner.
  package let kind: Kind
  /// The name of the app, or the access group without a team's prefix. Untrusted, because it comes from a backup. Empty
  /// if neither is known.
  package let text: String
  /// The team identifier at the start of the access group; `nil` unless the kind is `teamGroup`.
  package var team: String?

  /// Whether an app or an access group is known.
  package var isKnown: Bool {
    switch kind {
    case .app, .teamGroup, .group: true
    case .withoutGroup, .encrypted: false
    }
  }

  /// Whether the owner is an access group that only Apple's own code can be in. All other groups begin with a team's
  /// prefix or with "group.".
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  package var isAppleGroup: Bool {
    kind == .group && (text == "apple" || text == "lockdown-identities" || text.hasPrefix("com.apple."))
  }

  /// The name under which reports combine all groups of Apple.
  package static let appleGroupDescription = "iOS, Apple\u{2019}s apps"

  /// The name in reports.
  package var displayName: String {
    switch kind {
    case .app: text
    case .teamGroup: team.map { "\(text) (team \($0))" } ?? text
    case .group: isAppleGroup ? "iOS (group \(text))" : "group \(text)"
    case .withoutGroup: "(names no app)"
    case .encrypted: "(encrypted)"
    }
  }
}
