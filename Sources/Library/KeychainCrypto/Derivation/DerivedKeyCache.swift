package import Basics
package import KeychainFormats

/// The passcode keys of one password, each derived only once. Keybags with the same salts and iterations share a key,
/// such as the keybags in copies of one backup.
///
/// The cache does not contain the password; each password needs its own cache.
package final class DerivedKeyCache: Sendable {
  /// The maximum number of keys to keep, 32 bytes each, so that any number of backups takes limited memory.
  package static let capacity = 4_096

  private struct CacheKey: Hashable, Sendable {
    let parameters: PasswordDerivation.Parameters
    let form: PasswordNormalization
  }

  private let keys = SingleFlightCache<CacheKey, SensitiveBytes>(capacity: capacity)

  package init() {}

  /// The number of keys that were derived.
  package var count: Int { keys.count }

  /// Begins to derive a keybag's key on a separate thread. A request for the key waits until the derivation has ended.
  ///
  /// - Parameters:
  ///   - keybag: The keybag whose key will be requested.
  ///   - password: The password as it was typed. The work shares it and makes no copy.
  ///   - limit: The maximum number of iterations to accept.
  ///   - shouldContinue: Called every few milliseconds on the separate thread. If it returns `false`, the derivation ends.
  /// - Returns: The running work; keep it until the key has been requested. `nil` if nothing was started:
  ///   - The keybag has no key to derive, or has more iterations than any device or than `limit`. The request for the key
  ///     reports this reason.
  ///   - No thread can be started. The request for the key derives it.
  package func prefetchKey(
    of keybag: Keybag, password: SecretBox, acceptingAtMost limit: Int,
    shouldContinue: @escaping @Sendable () -> Bool
  ) -> BackgroundThread? {
    guard keybag.classKeys.contains(where: { $0.isPasswordWrapped }),
      let parameters = try? keybag.derivationParameters(), parameters.excessiveIterations == nil,
      (try? parameters.check(acceptingAtMost: limit)) != nil
    else { return nil }
    return BackgroundThread { [self] isNeeded in
      // After an error, the request derives the key again and reports it.
      _ = try? passcodeKey(for: parameters, in: .asTyped) { () throws(DataProtectionError) in
        try PasswordDerivation.passcodeKey(
          password: password.secret, parameters: parameters, acceptingAtMost: limit
        ) { _, _ in isNeeded(0) && shouldContinue() }
      }
    }
  }

  /// Returns the key of one form of the password, and derives it if necessary.
  func passcodeKey(
    for parameters: PasswordDerivation.Parameters, in form: PasswordNormalization,
    derive: () throws(DataProtectionError) -> Secret
  ) throws(DataProtectionError) -> Secret {
    let key = try keys.value(for: CacheKey(parameters: parameters, form: form)) { () throws(DataProtectionError) in
      try derive().withBytes { SensitiveBytes(copying: $0) }
    }
    return key.withBytes { Secret(copying: $0) }
  }
}
