import Basics
package import KeychainFormats

/// The keybag of a device: its wrapped class keys and a signature that only this device can make.
///
/// The device key wraps every class key. The keys of classes 4, 8 and 11 have no other wrap, so they are available
/// before the first unlock. All other class keys are also wrapped with the passcode, or with the empty passcode if none is
/// set. Class 12 exists only while a passcode is set.
///
/// Source: iphone-dataprotection, `keystore/keybag.py`; Apple Platform Security, "Keybags for Data Protection".
package struct SystemKeybag: Sendable, Equatable {
  /// The number of iterations in a new keybag. A real device chooses a number that takes its chip about 80 ms.
  package static let standardRounds: UInt32 = 50_000
  /// The size of a salt, in bytes.
  private static let saltSize = 20

  /// The keybag with its signature.
  let signed: SignedKeybag

  /// The keybag without its signature.
  package var keybag: Keybag { signed.keybag }

  /// Whether a passcode is set: class 12 exists only then.
  package var isPasscodeSet: Bool { keybag.classKey(.whenPasscodeSetThisDeviceOnly) != nil }

  /// Reads the bytes of `serialized()`. The signature is checked when the keybag is unlocked.
  package init(parsing bytes: [UInt8]) throws(FormatError) { signed = try SignedKeybag(parsing: bytes) }

  /// Creates a keybag with a new signature.
  private init(signing keybag: Keybag, deviceKey: DeviceKey) throws(DataProtectionError) {
    let signature = try KeybagSignature.make(keybag, deviceKey: deviceKey)
    do throws(FormatError) {
      signed = try SignedKeybag(keybag, signature: signature)
    } catch {
      throw DataProtectionError(.damagedKeybag, error.reason)
    }
  }

  /// Returns the bytes of the file `keybag`: the keybag with its signature.
  package func serialized() -> [UInt8] { signed.serialized() }

  /// Creates the keybag of a new or erased device, and unlocks it.
  ///
  /// - Parameters:
  ///   - passcode: The passcode, or an empty one for a device without a passcode.
  ///   - hardware: The UID of the device's chip, from which the device key and the passcode key are derived.
  ///   - rounds: The number of iterations for deriving the passcode key.
  ///   - random: The source of the keys, the salt and the identifiers.
  ///   - progress: Called during each of the two derivations, one for wrapping and one for unlocking. If it returns
  ///     `false`, the method ends with `.cancelled`.
  /// - Throws: `.unsupported` if the passcode consists of NUL bytes; `.roundsOverLimit`, `.damagedKeybag` (0
  ///   iterations), `.cancelled`.
  package static func make(
    passcode: borrowing Secret, hardware: borrowing HardwareUID, rounds: UInt32 = standardRounds,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> UnlockedSystemKeybag {
    try rejectAllZeros(passcode)
    let deviceKey = try hardware.deviceKey()
    let uuid = try random.bytes(16)
    let salt = try random.bytes(saltSize)
    let passcodeKey = try hardware.passcodeKey(passcode: passcode, salt: salt, iterations: rounds, progress: progress)
    let hmacKey = try KeybagSignature.makeWrappedKey(deviceKey: deviceKey, random: random)
    var records: [Keybag.ClassKey] = []
    for policy in wrapPolicies(hasPasscode: !passcode.isEmpty) {
      records.append(try policy.makeRecord(passcodeKey: passcodeKey, deviceKey: deviceKey, random: random))
    }
    let keybag = try Keybag.building { () throws(FormatError) in
      try Keybag(
        type: .system, uuid: uuid, hmacKey: hmacKey, wrap: .device, salt: salt, iterations: rounds,
        classKeys: records)
    }
    let systemKeybag = try SystemKeybag(signing: keybag, deviceKey: deviceKey)
    return UnlockedSystemKeybag(
      keybag: systemKeybag,
      classKeys: try systemKeybag.unlock(passcode: passcode, hardware: hardware, progress: progress))
  }

  /// Unwraps all class keys.
  ///
  /// - Parameters:
  ///   - passcode: The passcode, or an empty one if none is set.
  ///   - hardware: The UID of the device's chip.
  ///   - limit: The maximum number of iterations to accept.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.wrongPasscode`; `.damagedKeybag` if the signature was not made with this UID.
  package func unlock(
    passcode: borrowing Secret, hardware: borrowing HardwareUID, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> ClassKeys {
    let deviceKey = try hardware.deviceKey()
    let passcodeKey = try derivePasscodeKey(
      passcode, hardware: hardware, deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
    return try keybag.unwrapClassKeys(
      passcodeKey: consume passcodeKey, deviceKey: consume deviceKey, errorIfNoneUnwraps: .wrongPasscode)
  }

  /// Unwraps the class keys that a device has before the first unlock after a start: those without a passcode wrap.
  ///
  /// - Returns: The class keys. Keys that require the passcode are marked as locked.
  /// - Throws: `.damagedKeybag` if the signature was not made with this UID.
  package func unlockBeforeFirstUnlock(hardware: borrowing HardwareUID) throws(DataProtectionError) -> ClassKeys {
    let deviceKey = try hardware.deviceKey()
    try KeybagSignature.verify(signed, deviceKey: deviceKey)
    return try keybag.unwrapClassKeys(
      passcodeKey: nil, deviceKey: consume deviceKey, errorIfNoneUnwraps: .wrongPasscode)
  }

  /// Returns the keybag with a new passcode and a new salt. The class keys stay the same, but their wraps are new.
  ///
  /// Only class 12 may appear or disappear. Setting a first passcode creates its key. Removing the passcode deletes its
  /// key, so the items of class 12 can never be decrypted again.
  ///
  /// - Parameters:
  ///   - old: The current passcode, or an empty one if none is set.
  ///   - new: The new passcode, or an empty one to remove the passcode.
  ///   - hardware: The UID of the device's chip.
  ///   - random: The source of the salt, and of the key and identifier of class 12.
  ///   - progress: Called during the derivation for each passcode. If it returns `false`, the method ends with
  ///     `.cancelled`.
  /// - Throws: `.wrongPasscode` if `old` is wrong; `.unsupported` if `new` consists of NUL bytes; `.damagedKeybag` if
  ///   the signature was not made with this UID; `.cancelled`.
  package func changingPasscode(
    from old: borrowing Secret, to new: borrowing Secret, hardware: borrowing HardwareUID,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> UnlockedSystemKeybag {
    try Self.rejectAllZeros(new)
    let deviceKey = try hardware.deviceKey()
    let oldKey = try derivePasscodeKey(
      old, hardware: hardware, deviceKey: deviceKey, acceptingAtMost: IterationLimit.standard, progress: progress)
    var newKeybag = keybag
    let salt = try random.bytes(Self.saltSize)
    newKeybag.salt = salt
    let iterations = newKeybag.iterations ?? Self.standardRounds
    let newKey = try hardware.passcodeKey(passcode: new, salt: salt, iterations: iterations, progress: progress)
    try newKeybag.replacePasswordWrap(oldKey, with: newKey, errorIfNoneUnwraps: .wrongPasscode)
    let passcodeClass = KeyClass.whenPasscodeSetThisDeviceOnly
    if new.isEmpty {
      newKeybag.classKeys.removeAll { $0.keyClass == passcodeClass }
    } else if newKeybag.classKey(passcodeClass) == nil {
      let policy = ClassKeyWrapPolicy(keyClass: passcodeClass, wrap: [.device, .password])
      newKeybag.classKeys.append(try policy.makeRecord(passcodeKey: newKey, deviceKey: deviceKey, random: random))
    }
    let systemKeybag = try SystemKeybag(signing: newKeybag, deviceKey: deviceKey)
    let classKeys = try systemKeybag.keybag.unwrapClassKeys(
      passcodeKey: consume newKey, deviceKey: consume deviceKey, errorIfNoneUnwraps: .wrongPasscode)
    return UnlockedSystemKeybag(keybag: systemKeybag, classKeys: classKeys)
  }

  /// Returns the wrap policies of a new keybag, in the order of the classes.
  static func wrapPolicies(hasPasscode: Bool) -> [ClassKeyWrapPolicy] {
    let classesWithoutPasscode: Set<KeyClass> = [.fileNone, .always, .alwaysThisDeviceOnly]
    return (UInt32(1)...(hasPasscode ? 12 : 11)).map { number in
      let keyClass = KeyClass(rawValue: number)
      return ClassKeyWrapPolicy(
        keyClass: keyClass, wrap: classesWithoutPasscode.contains(keyClass) ? .device : [.device, .password])
    }
  }

  /// Checks the keybag's signature, and derives the passcode key.
  ///
  /// The signature does not show whether the passcode is correct. A wrong one is noticed when no class key unwraps.
  private func derivePasscodeKey(
    _ passcode: borrowing Secret, hardware: borrowing HardwareUID, deviceKey: DeviceKey,
    acceptingAtMost limit: Int, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Secret {
    try KeybagSignature.verify(signed, deviceKey: deviceKey)
    guard let salt = keybag.salt else { throw DataProtectionError(.missingField, "it has no SALT") }
    guard let iterations = keybag.iterations else { throw DataProtectionError(.missingField, "it has no ITER") }
    return try hardware.passcodeKey(
      passcode: passcode, salt: salt, iterations: iterations, acceptingAtMost: limit, progress: progress)
  }

  /// Rejects a passcode of NUL bytes. HMAC pads its key with NUL bytes, so such a passcode would equal the empty one.
  private static func rejectAllZeros(_ passcode: borrowing Secret) throws(DataProtectionError) {
    guard passcode.isEmpty || !passcode.isAllZero else {
      throw DataProtectionError(.unsupported, "a passcode of NUL bytes gives no protection")
    }
  }
}

/// A device's keybag with its unwrapped keys.
package struct UnlockedSystemKeybag: Sendable {
  /// The keybag with its wrapped keys.
  package let keybag: SystemKeybag
  /// The class keys, unwrapped with the passcode and the device key.
  package let classKeys: ClassKeys
}
