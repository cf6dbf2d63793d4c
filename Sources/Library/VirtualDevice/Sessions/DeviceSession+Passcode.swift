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

extension DeviceSession {
  /// Counts and makes a passcode attempt, and erases the device if the last allowed attempt fails.
  ///
  /// If the last allowed attempt was started but never finished, it counts as failed. An attempt that was stopped
  /// during the key derivation reveals nothing about the passcode and does not count.
  func makePasscodeAttempt<Value: ~Copyable>(
    _ body: (SystemKeybag, borrowing HardwareUID) throws(DataProtectionError) -> Value
  ) throws(KeyhaulError) -> Value {
    try eraseIfExhausted()
    let uncountedRecord = record
    var countedRecord = record
    countedRecord.failedAttempts = min(record.failedAttempts, Int(Int32.max)) + 1
    try files.beforeCommit { () throws(KeyhaulError) in try store(countedRecord) }
    do throws(DataProtectionError) {
      return try body(keybag, hardware)
    } catch {
      if error.code == .cancelled { try store(uncountedRecord) }
      guard error.code == .wrongPasscode else { throw KeyhaulError(error).with(subject: name) }
      try eraseIfExhausted()
      throw KeyhaulError(.wrongPasscode, name, wrongPasscodeReason)
    }
  }

  private func eraseIfExhausted() throws(KeyhaulError) {
    guard let limit = record.eraseAfterFailures, record.failedAttempts >= limit else { return }
    let reason = "it is set to do so after \(limit) wrong passcodes in a row"
    do throws(KeyhaulError) {
      try erase()
    } catch {
      // The device was erased, even if a later step failed.
      guard error.stage == .afterCommit else { throw error }
      throw KeyhaulError(.erased, name, "\(reason); \(error.reason)")
    }
    throw KeyhaulError(.erased, name, reason)
  }

  private var wrongPasscodeReason: String {
    let count = record.failedAttempts
    let attempts = "\(count) wrong passcode\(count == 1 ? "" : "s") in a row"
    guard let limit = record.eraseAfterFailures else { return attempts }
    return "\(attempts); after \(limit) the device erases itself"
  }
}
