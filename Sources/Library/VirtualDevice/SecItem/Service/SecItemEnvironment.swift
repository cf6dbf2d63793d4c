package import Basics
package import KeychainCrypto
package import KeychainFormats

/// What a keychain call takes from its device, beside the keys in memory.
package struct SecItemEnvironment {
  /// The date that new and changed items get.
  package var now: KeychainDate
  /// The source of new items' keys and identifiers.
  package var random: any RandomSource
  /// Whether iCloud keychain is on: only then does a deleted synchronized item leave a tombstone.
  package var isSyncing: Bool
  /// What an item without a class gets that is not a certificate and not the push service's; iOS 4 had `always`.
  package var defaultProtection: ProtectionClass
  /// Asks the person at the device. Called after all reading is done and before anything is changed.
  package var authenticate: (AuthenticationRequest) -> AuthenticationOutcome

  /// Creates the surroundings of one call.
  ///
  /// - Parameters:
  ///   - now: The date that new and changed items get.
  ///   - random: The source of new items' keys and identifiers.
  ///   - isSyncing: Whether a deleted synchronized item leaves a tombstone.
  ///   - defaultProtection: The class of an item that asks for none.
  ///   - authenticate: By default nobody is there to ask.
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
