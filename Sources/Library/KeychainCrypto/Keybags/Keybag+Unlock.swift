import Basics
public import KeychainFormats

extension Keybag {
  /// Unwraps the class keys that the password and the device key can unwrap.
  ///
  /// - Parameters:
  ///   - password: The backup's password, empty for a backup without one, or `nil` to unwrap nothing that requires it.
  ///     No key is derived then.
  ///   - deviceKey: The hardware key of the source device, or `nil` if it is not available.
  ///   - limit: The maximum number of iterations to accept, because a malicious backup may require any number.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.wrongPassword` if no class key can be unwrapped with the password; `.roundsOverLimit`, `.missingField`
  ///   or `.damagedKeybag` before any work is done. A single class key that cannot be unwrapped is not an error. It
  ///   counts as damaged, and its items cannot be decrypted.
  ///
  /// Source: Apple Platform Security, "Keybags for Data Protection"; iphone-dataprotection, `keystore/keybag.py`.
  public func unlock(
    password: borrowing Secret?, deviceKey: DeviceKey?, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> ClassKeys {
    switch password {
    case .some(let password):
      return try unlock(
        passcodeKey: try passcodeKey(password: password, acceptingAtMost: limit, progress: progress),
        deviceKey: deviceKey)
    case .none:
      return try unlock(passcodeKey: nil, deviceKey: deviceKey)
    }
  }

  /// Derives the key of the password, 32 bytes, with which the keybag can be unlocked again without the wait.
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
    /// The matching form of the password, usually the one that was typed.
    package let form: PasswordNormalization
  }

  /// Derives the key of the password as it was typed, and if it does not match, of its other forms: without a byte
  /// order mark, and in other Unicode forms if it is not ASCII.
  ///
  /// - Throws: The errors of `unlock`; `.wrongPassword` if no form matches. Each form costs a derivation.
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
    // The cache does not check the limit, because keybags of other callers may have other limits.
    let parameters = try derivationParameters()
    try parameters.check(acceptingAtMost: limit)
    var isCached = true
    let key = try keys.passcodeKey(for: parameters, in: form) { () throws(DataProtectionError) in
      isCached = false
      return try passcodeKey(password: password, acceptingAtMost: limit, progress: progress)
    }
    // A progress display then shows the derivation as complete.
    if isCached { _ = progress(Int(clamping: parameters.totalRounds), Int(clamping: parameters.totalRounds)) }
    return key
  }

  /// Unwraps the class keys with a passcode key that was derived before.
  public func unlock(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?
  ) throws(DataProtectionError) -> ClassKeys {
    try unwrapClassKeys(passcodeKey: passcodeKey, deviceKey: deviceKey, wrong: .wrongPassword)
  }

  /// Returns the derivation parameters in the header. There are two steps if both `DPIC` and `DPSL` are present.
  package func derivationParameters() throws(DataProtectionError) -> PasswordDerivation.Parameters {
    if let fault = derivationFault { throw DataProtectionError(.damagedKeybag, fault) }
    guard let salt else { throw DataProtectionError(.missingField, "it has no SALT") }
    guard let iterations else { throw DataProtectionError(.missingField, "it has no ITER") }
    return PasswordDerivation.Parameters(
      salt: salt, iterations: iterations,
      sha256Step: secondRound.map { .init(salt: $0.salt, iterations: $0.rounds) })
  }

  /// Unwraps every class key. `code` is the error if none can be unwrapped.
  func unwrapClassKeys(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?, wrong code: DataProtectionError.Code
  ) throws(DataProtectionError) -> ClassKeys {
    guard let uuid else { throw DataProtectionError(.missingField, "it has no UUID of 16 bytes") }
    var entries: [KeyClass: ClassKeys.Entry] = [:]
    var attemptCount = 0
    var unwrappedCount = 0
    for record in classKeys {
      guard let keyClass = record.keyClass else { continue }
      let result = try record.open(passcodeKey: passcodeKey, deviceKey: deviceKey)
      if result.hasTriedPassword { attemptCount += 1 }
      if result.isPasswordUnwrapped { unwrappedCount += 1 }
      if record.isAmbiguous {
        entries[keyClass] = ClassKeys.Entry(unusable: "its wrapped key occurs twice with different values")
      } else if entries[keyClass] == nil {
        entries[keyClass] = result.entry
      } else {
        entries[keyClass] = ClassKeys.Entry(unusable: "it occurs twice")
      }
    }
    if passcodeKey != nil, unwrappedCount == 0 {
      guard attemptCount > 0 else {
        throw DataProtectionError(.damagedKeybag, "none of its class keys can be tried with a password")
      }
      throw DataProtectionError(code, Self.noneUnwraps(of: attemptCount))
    }
    return ClassKeys(
      keybagUUID: uuid, entries: entries, wrappedCount: classKeys.count { $0.isPasswordWrapped },
      unwrappedCount: unwrappedCount)
  }

  private static func noneUnwraps(of count: Int) -> String {
    count == 1 ? "it does not unlock the only class key" : "it unlocks none of the \(count) class keys"
  }
}

/// The result of unwrapping a class key.
public enum ClassKeyAvailability: UInt8, Sendable, Hashable, CaseIterable {
  /// The key was unwrapped, and its integrity check proves it.
  case available = 1
  /// The key was unwrapped with the device key, without an integrity check. Only a decrypted item proves it.
  case availableThroughDevice = 2
  /// The key requires a device key that was not given.
  case deviceBound = 3
  /// The key requires a password or passcode that was not given, or was dropped when the device was locked.
  case locked = 4
  /// The key cannot be unwrapped although others can, or its record is not usable.
  case damaged = 5
  /// The keybag does not have the class.
  case absent = 6
}

/// A reason why an item cannot be decrypted or encrypted.
package enum ItemFault: Error, Sendable, Equatable {
  /// The keybag has no key of the item's class.
  case noClassKey
  /// The class key requires a password or passcode that was not given, or was dropped when the device was locked.
  case locked
  /// The class key requires a device key that was not given.
  case deviceBound
  /// The keybag has the class, but its key cannot be unwrapped.
  case classKeyDamaged
  /// The item's key cannot be unwrapped: the bytes were changed, or the class key was unwrapped with a wrong device
  /// key.
  case keyUnwrapFailed
  /// The authentication tag does not match: the bytes were changed.
  case tagMismatch
  /// The item was decrypted, but its content does not follow the format of an item.
  case malformed(FormatError)
  /// The version of the blob is not supported.
  case unsupportedVersion(UInt32)
  /// An error that is not caused by the item.
  case failed(DataProtectionError)
}
