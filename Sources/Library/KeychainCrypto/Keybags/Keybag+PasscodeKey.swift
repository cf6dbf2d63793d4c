import Basics
package import KeychainFormats

extension Keybag {
  /// Derives the passcode key from a password, 32 bytes. The key can unlock the keybag again without another derivation.
  ///
  /// - Throws: The errors of `unlock` except `.wrongPassword`, because nothing is unwrapped.
  package func passcodeKey(
    password: borrowing Secret, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    let parameters = try derivationParameters()
    guard classKeys.contains(where: { $0.isPasswordWrapped }) else {
      throw DataProtectionError(.damagedKeybag, "none of its class keys is wrapped with a password")
    }
    return try PasswordDerivation.passcodeKey(
      password: password, parameters: parameters, acceptingAtMost: limit, progress: progress)
  }

  /// A passcode key that unlocks the keybag, with the form of the password from which it was derived.
  package struct MatchedPasscodeKey: ~Copyable {
    /// The passcode key, 32 bytes.
    package let passcodeKey: Secret
    /// The matching form of the password, usually the form that was typed.
    package let form: PasswordNormalization
  }

  /// Derives the key of the password as it was typed. If this key does not match, derives the keys of the password's
  /// other forms: without a byte order mark, and in other Unicode forms if it is not ASCII. Each form costs a derivation.
  ///
  /// - Throws: The errors of `unlock`; `.wrongPassword` if no form matches.
  package func matchedPasscodeKey(
    password: borrowing Secret, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> MatchedPasscodeKey {
    try matchedPasscodeKey(password: password, acceptingAtMost: limit, remembering: nil, progress: progress)
  }

  /// Derives the key of the matching form of the password, unless the key is cached already.
  ///
  /// - Parameter keys: The cached keys of this password, to which new ones are added.
  package func matchedPasscodeKey(
    password: borrowing Secret, acceptingAtMost limit: Int, remembering keys: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> MatchedPasscodeKey {
    var firstError: DataProtectionError?
    for form in PasswordNormalization.allCases {
      guard let text = form == .asTyped ? password.copy() : password.normalized(form) else { continue }
      let key = try passcodeKey(
        password: text, in: form, acceptingAtMost: limit, remembering: keys, progress: progress)
      do throws(DataProtectionError) {
        _ = try unlock(passcodeKey: key.copy(), deviceKey: nil)
        return MatchedPasscodeKey(passcodeKey: key, form: form)
      } catch {
        guard error.code == .wrongPassword else { throw error }
        firstError = firstError ?? error
      }
    }
    throw firstError ?? DataProtectionError(.wrongPassword, "no password was given")
  }

  func passcodeKey(
    password: borrowing Secret, in form: PasswordNormalization, acceptingAtMost limit: Int,
    remembering keys: DerivedKeyCache?,
    progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Secret {
    guard let keys else { return try passcodeKey(password: password, acceptingAtMost: limit, progress: progress) }
    // The cache does not check the limit, because its callers may have different limits.
    let parameters = try derivationParameters()
    try parameters.check(acceptingAtMost: limit)
    var isCached = true
    let key = try keys.passcodeKey(for: parameters, in: form) { () throws(DataProtectionError) in
      isCached = false
      return try passcodeKey(password: password, acceptingAtMost: limit, progress: progress)
    }
    // Makes a progress display show the derivation of a cached key as complete.
    if isCached { _ = progress(Int(clamping: parameters.totalIterations), Int(clamping: parameters.totalIterations)) }
    return key
  }

  /// Returns the derivation parameters in the header. There are two steps if both `DPIC` and `DPSL` are present.
  package func derivationParameters() throws(DataProtectionError) -> PasswordDerivation.Parameters {
    if let fault = derivationFault { throw DataProtectionError(.damagedKeybag, fault) }
    guard let salt else { throw DataProtectionError(.missingField, "it has no SALT") }
    guard let iterations else { throw DataProtectionError(.missingField, "it has no ITER") }
    return PasswordDerivation.Parameters(
      salt: salt, iterations: iterations,
      sha256Step: secondStep.map { .init(salt: $0.salt, iterations: $0.iterations) })
  }
}
