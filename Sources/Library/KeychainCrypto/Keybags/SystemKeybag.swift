import Basics
package import KeychainFormats

/// The keybag of a device: its class keys, wrapped with the passcode and the device key, and a signature.
///
/// Classes 4, 8 and 11 require only the device key and are available after a start; all others also require the
/// passcode. A device without a passcode uses the empty one. Class 12 exists only while a passcode is set.
/// Source: iphone-dataprotection, `keystore/keybag.py`; Apple Platform Security, "Keybags for Data Protection".
package struct SystemKeybag: Sendable, Equatable {
  /// The iterations of a new keybag, instead of the 80 ms to which a chip is calibrated.
  package static let standardRounds: UInt32 = 50_000
  private static let saltSize = 20

  let signed: SignedKeybag

  /// The keybag without its signature.
  package var keybag: Keybag { signed.keybag }

  /// Whether a passcode is set, according to the class that exists only then.
  package var isPasscodeSet: Bool { keybag.classKey(.whenPasscodeSetThisDeviceOnly) != nil }

  /// Reads the bytes of `serialized()`. The signature is checked when the keybag is unlocked.
  package init(parsing bytes: [UInt8]) throws(FormatError) { signed = try SignedKeybag(parsing: bytes) }

  private init(_ keybag: Keybag, deviceKey: DeviceKey) throws(DataProtectionError) {
    let signature = try KeybagSignature.make(keybag, deviceKey: deviceKey)
    do throws(FormatError) {
      signed = try SignedKeybag(keybag, signature: signature)
    } catch {
      throw DataProtectionError(.damagedKeybag, error.reason)
    }
  }

  /// Returns the bytes of the file `keybag`: the keybag with its signature.
  package func serialized() -> [UInt8] { signed.serialized() }

  /// Creates the keybag of a new or erased device.
  ///
  /// - Parameters:
  ///   - passcode: The passcode, empty for none.
  ///   - hardware: The UID of the device.
  ///   - rounds: The iterations of the passcode derivation.
  ///   - random: The source of keys, salts and identifiers.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  package static func make(
    passcode: borrowing Secret, hardware: borrowing HardwareUID, rounds: UInt32 = standardRounds,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> UnlockedSystemKeybag {
    try rejectAllZeros(passcode)
    let deviceKey = try hardware.deviceKey()
    let uuid = try random.bytes(16)
    let salt = try random.bytes(saltSize)
    let passcodeKey = try hardware.passcodeKey(passcode: passcode, salt: salt, rounds: rounds, progress: progress)
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
    let systemKeybag = try SystemKeybag(keybag, deviceKey: deviceKey)
    return UnlockedSystemKeybag(
      keybag: systemKeybag,
      classKeys: try systemKeybag.unlock(passcode: passcode, hardware: hardware, progress: progress))
  }

  /// Unwraps all class keys.
  ///
  /// - Parameters:
  ///   - passcode: The passcode, empty if none is set.
  ///   - hardware: The UID of the device.
  ///   - limit: The maximum number of iterations to accept.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws: `.wrongPasscode`; `.damagedKeybag` if the signature is not from this hardware.
  package func unlock(
    passcode: borrowing Secret, hardware: borrowing HardwareUID, acceptingAtMost limit: Int = IterationLimit.standard,
    progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> ClassKeys {
    let deviceKey = try hardware.deviceKey()
    let passcodeKey = try verifiedPasscodeKey(
      passcode, hardware: hardware, deviceKey: deviceKey, acceptingAtMost: limit, progress: progress)
    return try keybag.unwrapClassKeys(
      passcodeKey: consume passcodeKey, deviceKey: consume deviceKey, errorIfNoneUnwraps: .wrongPasscode)
  }

  /// Unwraps the class keys that a device has between its start and the first unlock: those that require only the
  /// device key. The others are `.locked`.
  package func unlockBeforeFirstUnlock(hardware: borrowing HardwareUID) throws(DataProtectionError) -> ClassKeys {
    let deviceKey = try hardware.deviceKey()
    try KeybagSignature.verify(signed, deviceKey: deviceKey)
    return try keybag.unwrapClassKeys(
      passcodeKey: nil, deviceKey: consume deviceKey, errorIfNoneUnwraps: .wrongPasscode)
  }

  /// Returns the keybag with another passcode and a new salt. The class keys stay the same, except that of class 12.
  ///
  /// Setting the first passcode creates class 12. Removing the passcode (an empty `new`) destroys class 12 and everything
  /// it protects.
  ///
  /// - Parameters:
  ///   - old: The current passcode, empty if none is set.
  ///   - new: The new passcode, empty to remove it.
  ///   - hardware: The UID of the device.
  ///   - random: The source of keys, salts and identifiers.
  ///   - progress: Called during each of the two derivations, which end with `.cancelled` if it returns `false`.
  package func changingPasscode(
    from old: borrowing Secret, to new: borrowing Secret, hardware: borrowing HardwareUID,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> UnlockedSystemKeybag {
    try Self.rejectAllZeros(new)
    let deviceKey = try hardware.deviceKey()
    let oldKey = try verifiedPasscodeKey(
      old, hardware: hardware, deviceKey: deviceKey, acceptingAtMost: IterationLimit.standard, progress: progress)
    var newKeybag = keybag
    let salt = try random.bytes(Self.saltSize)
    newKeybag.salt = salt
    let rounds = newKeybag.iterations ?? Self.standardRounds
    let newKey = try hardware.passcodeKey(passcode: new, salt: salt, rounds: rounds, progress: progress)
    try newKeybag.replacePasswordWrap(oldKey, with: newKey, errorIfNoneUnwraps: .wrongPasscode)
    let passcodeClass = KeyClass.whenPasscodeSetThisDeviceOnly
    if new.isEmpty {
      newKeybag.classKeys.removeAll { $0.keyClass == passcodeClass }
    } else if newKeybag.classKey(passcodeClass) == nil {
      let policy = ClassKeyWrapPolicy(keyClass: passcodeClass, wrap: [.device, .password])
      newKeybag.classKeys.append(try policy.makeRecord(passcodeKey: newKey, deviceKey: deviceKey, random: random))
    }
    let systemKeybag = try SystemKeybag(newKeybag, deviceKey: deviceKey)
    let classKeys = try systemKeybag.keybag.unwrapClassKeys(
      passcodeKey: consume newKey, deviceKey: consume deviceKey, errorIfNoneUnwraps: .wrongPasscode)
    return UnlockedSystemKeybag(keybag: systemKeybag, classKeys: classKeys)
  }

  static func wrapPolicies(hasPasscode: Bool) -> [ClassKeyWrapPolicy] {
    let deviceKeyOnly: Set<UInt32> = [4, 8, 11]
    return (UInt32(1)...(hasPasscode ? 12 : 11)).map { number in
      ClassKeyWrapPolicy(
        keyClass: KeyClass(rawValue: number), wrap: deviceKeyOnly.contains(number) ? .device : [.device, .password])
    }
  }

  /// Checks the keybag's signature, and derives the key of the passcode.
  private func verifiedPasscodeKey(
    _ passcode: borrowing Secret, hardware: borrowing HardwareUID, deviceKey: DeviceKey,
    acceptingAtMost limit: Int, progress: PasswordDerivation.Progress
  ) throws(DataProtectionError) -> Secret {
    try KeybagSignature.verify(signed, deviceKey: deviceKey)
    guard let salt = keybag.salt else { throw DataProtectionError(.missingField, "it has no SALT") }
    guard let rounds = keybag.iterations else { throw DataProtectionError(.missingField, "it has no ITER") }
    return try hardware.passcodeKey(
      passcode: passcode, salt: salt, rounds: rounds, acceptingAtMost: limit, progress: progress)
  }

  /// Rejects a passcode of NUL bytes, which derives the same key as no passcode and would protect nothing.
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
  /// The keys that the passcode and the device key unwrapped.
  package let classKeys: ClassKeys
}
