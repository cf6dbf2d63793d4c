package import KeychainFormats

/// Adds and removes a backup's password. Both require the device key, which protects the migratable classes of a backup
/// without a password.
extension BackupKeybag {
  /// The migratable classes. A backup with a password wraps them only with the password. A backup without a password also
  /// wraps them with the device key.
  static let migratable: Set<KeyClass> = [.whenUnlocked, .afterFirstUnlock, .always]

  /// Adds a password to the keybag of an unencrypted backup, and returns the new keybag. The class keys stay the same.
  ///
  /// The caller must already have decrypted an item with the device key. The keybag shows whether the device key is right
  /// only if a class has a public key.
  ///
  /// - Parameters:
  ///   - keybag: The current keybag of the backup.
  ///   - oldKey: The key of the empty password, from `Keybag.passcodeKey`.
  ///   - password: The new password, not empty.
  ///   - deviceKey: The device key of the source device.
  ///   - rounds: The iterations of the SHA-256 step, or `nil` to leave out this step, as in iOS 10.1 and earlier.
  ///   - random: The source of the salts.
  ///   - progress: Called with the iterations so far; the derivation ends with `.cancelled` if it returns `false`.
  /// - Throws:
  ///   - `.damagedKeybag` if a class key cannot be unwrapped with `oldKey`.
  ///   - `.keyUnavailable` if a public key shows that the device key is wrong.
  ///   - `.hardwareLayerMissing` if device wraps are missing, so no device wrote the keybag. After a password is added,
  ///     this could not be detected.
  ///   - `.unsupported` for an empty password or a number of iterations that readers reject.
  package static func addingPassword(
    _ keybag: Keybag, passcodeKey oldKey: borrowing Secret, with password: borrowing Secret,
    deviceKey: DeviceKey, rounds: Int?,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try rejectEmptyPassword(password)
    try requireDeviceWraps(in: keybag, hasPassword: false)
    var result = keybag
    result.salt = try random.bytes(saltSize)
    result.iterations = lastRounds
    result.secondStep = nil
    if let rounds {
      result.secondStep = Keybag.SecondStep(iterations: try validIterations(rounds), salt: try random.bytes(saltSize))
    }
    let newKey = try result.passcodeKey(password: password, progress: progress)
    // The migratable classes lose the device wrap.
    try result.replacePasswordWrap(oldKey, with: newKey, errorIfNoneUnwraps: .damagedKeybag) {
      (record, inner) throws(DataProtectionError) in
      guard let keyClass = record.keyClass, migratable.contains(keyClass), record.wrap == [.device, .password] else {
        return inner
      }
      let key = try inner.withBytes { (bytes) throws(DataProtectionError) in try deviceKey.unwrap(bytes) }
      if let publicKey = record.publicKey, try X25519.publicKey(of: key) != publicKey {
        throw DataProtectionError(.keyUnavailable, "the device key is not the source device's")
      }
      record.wrap = .password
      return key
    }
    return result
  }

  /// Removes the password from the keybag of an encrypted backup, and returns the new keybag. It is as a device would have
  /// written it: only the device key can unwrap the keychain's class keys. The class keys stay the same.
  ///
  /// - Parameters:
  ///   - keybag: The current keybag of the backup.
  ///   - oldKey: The key of the password, from `Keybag.matchedPasscodeKey`.
  ///   - deviceKey: The device key of the source device.
  ///   - random: The source of the salt.
  /// - Throws:
  ///   - `.wrongPassword`.
  ///   - `.damagedKeybag` if a class key cannot be unwrapped.
  ///   - `.hardwareLayerMissing` if a this-device-only class lacks its device wrap. Without a password, anyone could
  ///     decrypt its items.
  package static func removingPassword(
    _ keybag: Keybag, passcodeKey oldKey: borrowing Secret, deviceKey: DeviceKey,
    random: some RandomSource = SystemRandomSource()
  ) throws(DataProtectionError) -> Keybag {
    try requireDeviceWraps(in: keybag, hasPassword: true)
    var result = keybag
    result.salt = try random.bytes(saltSize)
    result.iterations = lastRounds
    result.secondStep = nil
    let newKey = try result.passcodeKey(password: .empty)
    // The migratable classes get the device wrap, as on a device.
    try result.replacePasswordWrap(oldKey, with: newKey, errorIfNoneUnwraps: .wrongPassword) {
      (record, inner) throws(DataProtectionError) in
      guard let keyClass = record.keyClass, migratable.contains(keyClass), record.wrap == .password else {
        return inner
      }
      record.wrap = [.device, .password]
      return try deviceKey.wrap(inner)
    }
    return result
  }
}
