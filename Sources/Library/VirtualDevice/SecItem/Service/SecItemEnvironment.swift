package import Basics
package import KeychainCrypto
package import KeychainFormats

/// The context of a keychain call, in addition to the class keys.
package struct SecItemEnvironment {
  /// The date for new and changed items.
  package var now: KeychainDate
  /// The source of keys and identifiers for new items.
  package var random: any RandomSource
  /// Whether iCloud Keychain is on. Only then does a deleted synchronized item leave a tombstone.
  package var isSyncing: Bool
  /// The default protection class, except for certificates and the push service. In iOS 4 it was `always`.
  package var defaultProtection: ProtectionClass
  /// Asks the user of the device. Called after reading and before any change.
  package var authenticate: (AuthenticationRequest) -> AuthenticationOutcome

  /// Creates the context of a call.
  ///
  /// - Parameters:
  ///   - now: The date for new and changed items.
  ///   - random: The source of keys and identifiers for new items.
  ///   - isSyncing: Whether a deleted synchronized item leaves a tombstone.
  ///   - defaultProtection: The default protection class.
  ///   - authenticate: Asks the user. By default, no user is present.
  package init(
    now: KeychainDate, random: any RandomSource = SystemRandomSource(), isSyncing: Bool = false,
    defaultProtection: ProtectionClass = .whenUnlocked,
    authenticate: @escaping (AuthenticationRequest) -> AuthenticationOutcome = { _ in .unavailable }
  ) {
    self.now = now
    self.random = random
    self.isSyncing = isSyncing
    self.defaultProtection = defaultProtection
    self.authenticate = authenticate
  }
}
