/// The app that an item belongs to, according to its access group and a list of apps.
package struct AppName: Sendable, Hashable {
  /// The kind of knowledge about the app.
  package enum Kind: Sendable, Hashable {
    /// An app, by the name or the identifier that a list of apps gives it.
    case app
    /// An access group of a team, which is not the identifier of an app in the list. Any app of the team may use it.
    case identifier
    /// An access group that is not an app's, such as the system's.
    case group
    /// The decrypted item has no access group. This is the case for items of iOS 4, which consist only of a secret.
    case unnamed
    /// The item is encrypted, including its access group.
    case unknown
  }

  /// The kind of knowledge about the app.
  package let kind: Kind
  /// Untrusted, because it comes from a backup. Empty if the app is unnamed or unknown.
  package let text: String
  /// The team whose prefix the access group has; `nil` unless the kind is `identifier`.
  package var team: String?

  /// Whether the item's owner is known.
  package var isKnown: Bool {
    switch kind {
    case .app, .identifier, .group: true
    case .unnamed, .unknown: false
    }
  }

  /// Whether it is an access group that only Apple's own code can be in. All other groups begin with a team's prefix or
  /// with "group.".
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  package var isAppleGroup: Bool {
    kind == .group && (text == "apple" || text == "lockdown-identities" || text.hasPrefix("com.apple."))
  }

  /// The common name of these groups in reports.
  package static let appleGroupDescription = "iOS, Apple\u{2019}s apps"

  /// The name in reports.
  package var displayName: String {
    switch kind {
    case .app: text
    case .identifier: team.map { "\(text) (team \($0))" } ?? text
    case .group: isAppleGroup ? "iOS (group \(text))" : "group \(text)"
    case .unnamed: "(names no app)"
    case .unknown: "(encrypted)"
    }
  }
}
