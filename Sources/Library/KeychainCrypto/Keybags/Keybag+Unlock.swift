import Basics
public import KeychainFormats

extension Keybag {
  /// Opens the class keys as far as the password and the device key go.
  ///
  /// - Parameters:
  ///   - password: The backup's password, empty for a backup without one, or `nil` to leave its layer closed: nothing is
  ///     derived then.
  ///   - deviceKey: The hardware key of the device that made the bag, where it is available.
  ///   - limit: The most PBKDF2 rounds to accept; a hostile archive may ask for any number.
  ///   - progress: Told how far the derivation is; where it answers `false` it ends with `.cancelled`.
  /// - Throws: `.wrongPassword` where no class key unwraps with the password, `.roundsOverLimit`, `.missingField` and
  ///   `.damagedKeybag` before any work is done. One class that does not unwrap though others do is no error: it is
  ///   `.damaged`.
  ///
  /// Source: Apple Platform Security, "Keybags for Data Protection"; iphone-dataprotection, `keystore/keybag.py`.
  public func unlock(
    password: borrowing Secret?, deviceKey: DeviceKey?, acceptingAtMost limit: Int = RoundLimit.standard,
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

  /// The key that the password stands for, 32 bytes: all it takes to open the bag again without the wait.
  ///
  /// - Throws: As `unlock` does, but for `.wrongPassword`: nothing is opened here.
  public func passcodeKey(
    password: borrowing Secret, acceptingAtMost limit: Int = RoundLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Secret {
    let parameters = try derivationParameters()
    guard classKeys.contains(where: { $0.isPasswordWrapped }) else {
      throw DataProtectionError(.damagedKeybag, "none of its class keys is wrapped with a password")
    }
    return try PasswordDerivation.passcodeKey(
      password: password, parameters: parameters, acceptingAtMost: limit, progress: progress)
  }

  /// A passcode key that opens the bag, and the form of the password that it was derived from.
  public struct FittingKey: ~Copyable {
    /// 32 bytes.
    public let passcodeKey: Secret
    /// The form of the password that fits, which is most often the one that was typed.
    public let form: PasswordForm
  }

  /// Derives the key of the password as it is given, and if that does not fit, of the same text in its other forms:
  /// without a byte order mark, and if it is not all ASCII, in its other Unicode forms.
  ///
  /// - Throws: As `unlock` does, `.wrongPassword` where none of the forms fits. Each form costs a derivation.
  public func fittingKey(
    password: borrowing Secret, acceptingAtMost limit: Int = RoundLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> FittingKey {
    try fittingKey(password: password, acceptingAtMost: limit, remembering: nil, progress: progress)
  }

  /// The same, but that no key is derived which is known already.
  ///
  /// - Parameter keys: Those of this password that were derived before; new ones are added.
  package func fittingKey(
    password: borrowing Secret, acceptingAtMost limit: Int, remembering keys: DerivedKeys?,
    progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> FittingKey {
    var first: DataProtectionError?
    for form in PasswordForm.allCases {
      guard let text = form == .asGiven ? password.copy() : password.inForm(form) else { continue }
      let key = try passcodeKey(
        password: text, in: form, acceptingAtMost: limit, remembering: keys, progress: progress)
      do throws(DataProtectionError) {
        _ = try unlock(passcodeKey: key.copy(), deviceKey: nil)
        return FittingKey(passcodeKey: key, form: form)
      } catch {
        guard error.code == .wrongPassword else { throw error }
        first = first ?? error
      }
    }
    throw first ?? DataProtectionError(.wrongPassword, "no password was given")
  }

  func passcodeKey(
    password: borrowing Secret, in form: PasswordForm, acceptingAtMost limit: Int, remembering keys: DerivedKeys?,
    progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Secret {
    guard let keys else { return try passcodeKey(password: password, acceptingAtMost: limit, progress: progress) }
    // A limit that another keybag is under is none of this one's.
    let parameters = try derivationParameters()
    try parameters.check(acceptingAtMost: limit)
    var isKnown = true
    let key = try keys.passcodeKey(for: parameters, in: form) { () throws(DataProtectionError) in
      isKnown = false
      return try passcodeKey(password: password, acceptingAtMost: limit, progress: progress)
    }
    // Whoever shows how far it is sees it done.
    if isKnown { _ = progress(Int(clamping: parameters.totalRounds), Int(clamping: parameters.totalRounds)) }
    return key
  }

  /// Opens the class keys with a passcode key that was derived before.
  public func unlock(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?
  ) throws(DataProtectionError) -> ClassKeys {
    try openClassKeys(passcodeKey: passcodeKey, deviceKey: deviceKey, wrong: .wrongPassword)
  }

  /// What the header says about the derivation. Two rounds where both `DPIC` and `DPSL` are present.
  public func derivationParameters() throws(DataProtectionError) -> PasswordDerivation.Parameters {
    if let fault = derivationFault { throw DataProtectionError(.damagedKeybag, fault) }
    guard let salt else { throw DataProtectionError(.missingField, "it has no SALT") }
    guard let iterations else { throw DataProtectionError(.missingField, "it has no ITER") }
    return PasswordDerivation.Parameters(
      salt: salt, iterations: iterations,
      first: secondRound.map { .init(salt: $0.salt, iterations: $0.rounds) })
  }

  /// Opens every class by its own rules; `code` says what it means that none unwraps.
  func openClassKeys(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?, wrong code: DataProtectionError.Code
  ) throws(DataProtectionError) -> ClassKeys {
    guard let uuid else { throw DataProtectionError(.missingField, "it has no UUID of 16 bytes") }
    var entries: [KeyClass: ClassKeys.Entry] = [:]
    var triedCount = 0
    var unwrappedCount = 0
    for record in classKeys {
      guard let keyClass = record.keyClass else { continue }
      let opened = try record.open(passcodeKey: passcodeKey, deviceKey: deviceKey)
      if opened.triedPassword { triedCount += 1 }
      if opened.unwrapped { unwrappedCount += 1 }
      if record.isAmbiguous {
        entries[keyClass] = ClassKeys.Entry(unusable: "its wrapped key occurs twice with different values")
      } else if entries[keyClass] == nil {
        entries[keyClass] = opened.entry
      } else {
        entries[keyClass] = ClassKeys.Entry(unusable: "it occurs twice")
      }
    }
    if passcodeKey != nil, unwrappedCount == 0 {
      guard triedCount > 0 else {
        throw DataProtectionError(.damagedKeybag, "none of its class keys can be tried with a password")
      }
      throw DataProtectionError(code, Self.noneUnwraps(of: triedCount))
    }
    return ClassKeys(
      keybagUUID: uuid, entries: entries, wrappedCount: classKeys.count { $0.isPasswordWrapped },
      unwrappedCount: unwrappedCount)
  }

  private static func noneUnwraps(of count: Int) -> String {
    count == 1 ? "it does not unlock the only class key" : "it unlocks none of the \(count) class keys"
  }
}

/// What unlocking a keybag has found out about one class key.
public enum ClassKeyAvailability: UInt8, Sendable, Hashable, CaseIterable {
  /// It unwrapped, and its check value proves it.
  case available = 1
  /// It went through the device key, whose layer has no check value: only an item that opens proves it.
  case availableThroughDevice = 2
  /// It needs a device key, and none was given.
  case deviceBound = 3
  /// It needs a password or passcode that was not given, or a lock has dropped it.
  case locked = 4
  /// It does not unwrap though others do, or its record cannot be used.
  case damaged = 5
  /// The keybag has no such class.
  case absent = 6
}

/// What is wrong with one item, to switch on.
public enum ItemFault: Error, Sendable, Equatable {
  /// The keybag has no key of the item's class.
  case noClassKey
  /// The class key needs a password or passcode that was not given, or a lock has dropped it.
  case locked
  /// The class key needs a device key, and none was given.
  case deviceBound
  /// The keybag has the class, but its key does not unwrap.
  case classKeyDamaged
  /// The item's own key does not unwrap: changed bytes, or for a class that went through a device key, another device.
  case keyUnwrapFailed
  /// Changed bytes.
  case tagMismatch
  /// The key opens it, and what is inside follows no format of an item.
  case malformed(FormatError)
  /// The blob is of a version that is not opened here.
  case unsupportedVersion(UInt32)
  /// Not the item's fault.
  case failed(DataProtectionError)
}
