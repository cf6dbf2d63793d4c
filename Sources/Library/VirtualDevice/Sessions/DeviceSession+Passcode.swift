public import Basics
public import KeychainCrypto

extension DeviceSession {
  /// Sets the first passcode. This creates the key of class `akpu`, so that items of this class can be added.
  ///
  /// - Throws: `.passcodeSet`, `.emptyPasscode`, `.deviceIO`.
  public func setPasscode(_ passcode: borrowing Secret) throws(KeyhaulError) {
    try requireWriting()
    guard !isPasscodeSet else {
      throw KeyhaulError(.passcodeSet, name, "the set command works only on a device without a passcode")
    }
    try requireNonEmpty(passcode)
    let changed = try translatingErrors(about: name) { () throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: Secret(utf8: ""), to: passcode, hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    try install(changed, keychain: .keep)
  }

  /// Changes the passcode and nothing else.
  ///
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`, `.erased`, `.emptyPasscode`, `.deviceIO`.
  package func changePasscode(
    from old: borrowing Secret, to new: borrowing Secret
  ) throws(KeyhaulError) {
    try requireUnlockedWithPasscode()
    try requireNonEmpty(new)
    let changed = try makePasscodeAttempt { (keybag, hardware) throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: old, to: new, hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    try install(changed, keychain: .keep)
  }

  /// Removes the passcode and, permanently, the key and the items of class `akpu`.
  ///
  /// - Returns: The number of deleted items.
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`, `.erased`, `.deviceIO`.
  @discardableResult
  public func removePasscode(_ passcode: borrowing Secret) throws(KeyhaulError) -> Int {
    try requireUnlockedWithPasscode()
    let changed = try makePasscodeAttempt { (keybag, hardware) throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: passcode, to: Secret(utf8: ""), hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    return try install(changed, keychain: .dropPasscodeItems)
  }

  /// Checks that a passcode is set and the device is unlocked, as in the settings of a real device.
  private func requireUnlockedWithPasscode() throws(KeyhaulError) {
    try requireWriting()
    guard isPasscodeSet else { throw KeyhaulError(.noPasscode, name, "none is set") }
    guard state == .unlocked else {
      throw KeyhaulError(.locked, name, "the device must be unlocked to change its passcode")
    }
  }

  private func requireNonEmpty(_ passcode: borrowing Secret) throws(KeyhaulError) {
    if passcode.isEmpty { throw KeyhaulError(.emptyPasscode, name, "the new passcode has no characters") }
  }
}
