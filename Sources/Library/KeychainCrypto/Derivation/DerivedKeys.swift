package import Basics
package import KeychainFormats

/// The passcode keys of one password, each derived once, however many keybags have the same salts and rounds: copies of one
/// backup, and all backups that a device made with one keybag.
///
/// The password is not in it; whoever has several passwords has one of these for each.
package final class DerivedKeys: Sendable {
  /// How many keys are kept, 32 bytes each: however many backups there are, no more memory is taken.
  package static let capacity = 4_096

  private struct Work: Hashable, Sendable {
    let parameters: PasswordDerivation.Parameters
    let form: PasswordForm
  }

  private let keys = OnceEach<Work, SensitiveBytes>(capacity: capacity)

  package init() {}

  /// How many keys were derived.
  package var count: Int { keys.count }

  /// Begins to derive a keybag's key on a separate thread. A request for the key waits until the derivation has ended.
  ///
  /// - Parameters:
  ///   - keybag: The keybag whose key will be requested.
  ///   - password: The password as it was given. The work shares it and makes no copy.
  ///   - limit: The most rounds to accept.
  ///   - shouldContinue: Asked every few milliseconds, on the other thread.
  /// - Returns: The running work; keep it until the key has been requested. `nil` if the keybag has no key to derive,
  ///   or has more rounds than any device or than `limit`. The request for the key then reports the reason. Also `nil`
  ///   if no thread can be started; the request for the key then derives it.
  package func derivingAhead(
    of keybag: Keybag, password: HeldSecret, acceptingAtMost limit: Int,
    shouldContinue: @escaping @Sendable () -> Bool
  ) -> SideWork? {
    guard keybag.classKeys.contains(where: { $0.isPasswordWrapped }),
      let parameters = try? keybag.derivationParameters(), parameters.unusualRounds == nil,
      (try? parameters.check(acceptingAtMost: limit)) != nil
    else { return nil }
    return SideWork { [self] isWanted in
      // What comes of an error here is that the key is derived by whoever asks for it.
      _ = try? passcodeKey(for: parameters, in: .asGiven) { () throws(DataProtectionError) in
        try PasswordDerivation.passcodeKey(
          password: password.secret, parameters: parameters, acceptingAtMost: limit
        ) { _, _ in isWanted(0) && shouldContinue() }
      }
    }
  }

  /// The key of the password in one of its forms, derived where it was not yet.
  func passcodeKey(
    for parameters: PasswordDerivation.Parameters, in form: PasswordForm,
    derive: () throws(DataProtectionError) -> Secret
  ) throws(DataProtectionError) -> Secret {
    let key = try keys.value(for: Work(parameters: parameters, form: form)) { () throws(DataProtectionError) in
      try derive().withBytes { SensitiveBytes(copying: $0) }
    }
    return key.withBytes { Secret(copying: $0) }
  }
}

/// A secret that several owners hold without a copy of it.
package final class HeldSecret: Sendable {
  package let secret: Secret

  package init(_ secret: consuming Secret) { self.secret = secret }
}
