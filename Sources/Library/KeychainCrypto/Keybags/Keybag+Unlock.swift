import Basics
public import KeychainFormats

extension Keybag {
  /// Unwraps the class keys that the password and the device key can unwrap.
  ///
  /// - Parameters:
  ///   - password: The backup's password, or an empty password for a backup without one. With `nil`, no key is derived, and
  ///     class keys that require the password are not unwrapped.
  ///   - deviceKey: The device key of the source device, or `nil` if it is not available.
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

  /// Unwraps the class keys with a passcode key that was derived before.
  public func unlock(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?
  ) throws(DataProtectionError) -> ClassKeys {
    try unwrapClassKeys(passcodeKey: passcodeKey, deviceKey: deviceKey, errorIfNoneUnwraps: .wrongPassword)
  }

  /// Unwraps every class key. `code` is the error if the passcode key unwraps no class key.
  func unwrapClassKeys(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?, errorIfNoneUnwraps code: DataProtectionError.Code
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
  /// The key was unwrapped with the device key, without an integrity check. Only a decrypted item proves that it is right.
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
