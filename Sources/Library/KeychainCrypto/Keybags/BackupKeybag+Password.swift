import Basics
public import KeychainFormats

/// Setting a backup's password and taking it off. Both need the hardware's key: without a password it is that key which
/// protects what may migrate.
extension BackupKeybag {
  /// The classes that a password lets migrate: with one they are wrapped with it alone, without one with the hardware too.
  static let migratable: Set<KeyClass> = [.whenUnlocked, .afterFirstUnlock, .always]

  /// The keybag of a backup without a password under a new one. The class keys stay.
  ///
  /// Nothing in the bag tells whether `deviceKey` is the right one, unless a class has a public key: an item has to have
  /// been opened with it before.
  /// - Parameters:
  ///   - keybag: The bag of the backup as it is now.
  ///   - oldKey: The key of the empty password, as `Keybag.passcodeKey` derives it.
  ///   - password: The new one, not empty.
  ///   - deviceKey: The hardware key of the device that made the backup.
  ///   - rounds: Of the slow round; `nil` makes a bag with one round, as iOS 10.1 and earlier have it.
  ///   - random: The source of the new salts and of the bag's identifier.
  ///   - progress: Told how far the new password's derivation is; where it answers `false` it ends with `.cancelled`.
  /// - Throws: `.damagedKeybag` where a class key does not unwrap with that key; `.keyUnavailable` where a
  ///   public key shows that the hardware is another; `.hardwareLayerMissing` for a bag that no device wrote, which a
  ///   password would make look like any other; `.unsupported` for an empty password or a count of rounds that readers
  ///   refuse.
  public static func protect(
    _ keybag: Keybag, passcodeKey oldKey: borrowing Secret, with password: borrowing Secret,
    deviceKey: borrowing DeviceKey, rounds: Int?,
    random: some RandomSource = SystemRandomSource(), progress: PasswordDerivation.Progress = { _, _ in true }
  ) throws(DataProtectionError) -> Keybag {
    try check(password)
    try requireHardwareLayers(of: keybag, hasPassword: false)
    var result = keybag
    result.salt = try random.bytes(saltSize)
    result.iterations = lastRounds
    result.secondRound = nil
    if let rounds {
      result.secondRound = Keybag.SecondRound(rounds: try checked(rounds), salt: try random.bytes(saltSize))
    }
    let newKey = try result.passcodeKey(password: password, progress: progress)
    try result.replacePasswordLayer(oldKey, with: newKey, wrong: .damagedKeybag) {
      (record, inner) throws(DataProtectionError) in
      guard let keyClass = record.keyClass, migratable.contains(keyClass), record.wrap == [.device, .password] else {
        return inner
      }
      let key = try inner.withBytes { (bytes) throws(DataProtectionError) in try deviceKey.unwrap(bytes) }
      if let publicKey = record.publicKey, try X25519.publicKey(of: key) != publicKey {
        throw DataProtectionError(.keyUnavailable, "the hardware key is not the source device's")
      }
      record.wrap = .password
      return key
    }
    return result
  }

  /// The keybag of a backup with a password without one, as a device would have made it: only its own hardware opens the
  /// keychain's class keys then. The class keys stay.
  ///
  /// - Parameters:
  ///   - keybag: The bag of the backup as it is now.
  ///   - oldKey: The key of the password, as `Keybag.fittingKey` gives it.
  ///   - deviceKey: The hardware key of the device that made the backup.
  ///   - random: The source of the new salts and of the bag's identifier.
  /// - Throws: `.wrongPassword`; `.damagedKeybag` where a class key does not unwrap; `.hardwareLayerMissing` for a bag
  ///   whose this-device-only classes lack that layer, which without a password would be open to everybody.
  public static func unprotect(
    _ keybag: Keybag, passcodeKey oldKey: borrowing Secret, deviceKey: borrowing DeviceKey,
    random: some RandomSource = SystemRandomSource()
  ) throws(DataProtectionError) -> Keybag {
    try requireHardwareLayers(of: keybag, hasPassword: true)
    var result = keybag
    result.salt = try random.bytes(saltSize)
    result.iterations = lastRounds
    result.secondRound = nil
    let newKey = try result.passcodeKey(password: .empty)
    try result.replacePasswordLayer(oldKey, with: newKey, wrong: .wrongPassword) {
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
