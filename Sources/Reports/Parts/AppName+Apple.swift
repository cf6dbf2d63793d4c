import Migration

extension AppName {
  /// Whether it is an access group that only Apple's own code can be in: any other begins with its team's prefix, or with
  /// "group.".
  ///
  /// Source: Apple, "Sharing access to keychain items among a collection of apps".
  var isApples: Bool {
    kind == .group && (text == "apple" || text == "lockdown-identities" || text.hasPrefix("com.apple."))
  }

  /// What a page calls all of these together.
  static let applesWords = "iOS, Apple\u{2019}s apps"
}
