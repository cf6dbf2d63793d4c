import Basics
public import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// Sets the first passcode. Items of class `akpu` can be added from now on, under a key made now.
  ///
  /// - Throws: `.passcodeSet`, `.emptyPasscode`, `.io`.
  public func setPasscode(_ passcode: borrowing Secret) throws(VirtualDeviceError) {
    try requireWriting()
    guard !isPasscodeSet else {
      throw VirtualDeviceError(.passcodeSet, name, "set works only on a device without a passcode")
    }
    try refuseEmpty(passcode)
    let changed = try reporting { () throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: Secret(utf8: ""), to: passcode, hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    try adopt(changed, keychain: .keep)
  }

  /// Changes the passcode; nothing else changes.
  ///
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`, `.erased`, `.emptyPasscode`, `.io`.
  public func changePasscode(
    from old: borrowing Secret, to new: borrowing Secret
  ) throws(VirtualDeviceError) {
    try requireUnlockedWithPasscode()
    try refuseEmpty(new)
    let changed = try attempt(old) { (keybag, hardware) throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: old, to: new, hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    try adopt(changed, keychain: .keep)
  }

  /// Removes the passcode, and with it the key and the items of class `akpu`, for good.
  ///
  /// - Returns: How many items were destroyed.
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`, `.erased`, `.io`.
  @discardableResult
  public func removePasscode(_ passcode: borrowing Secret) throws(VirtualDeviceError) -> Int {
    try requireUnlockedWithPasscode()
    let changed = try attempt(passcode) { (keybag, hardware) throws(DataProtectionError) in
      try keybag.changingPasscode(
        from: passcode, to: Secret(utf8: ""), hardware: hardware, random: environment.random,
        progress: environment.derivation)
    }
    return try adopt(changed, keychain: .dropPasscodeItems)
  }

  /// Whoever holds a phone reaches its settings only after unlocking it.
  private func requireUnlockedWithPasscode() throws(VirtualDeviceError) {
    try requireWriting()
    guard isPasscodeSet else { throw VirtualDeviceError(.noPasscode, name, "none is set") }
    guard state == .unlocked else {
      throw VirtualDeviceError(.locked, name, "a passcode is changed on an unlocked device")
    }
  }

  private func refuseEmpty(_ passcode: borrowing Secret) throws(VirtualDeviceError) {
    if passcode.isEmpty { throw VirtualDeviceError(.emptyPasscode, name, "the new passcode has no characters") }
  }

  /// Puts a new keybag and its keys in the place of the old ones. Whoever got here knew the passcode or erases the
  /// device, so failures are forgotten.
  ///
  /// - Parameter edit: What else changes in the record.
  @discardableResult
  func adopt(
    _ unlocked: consuming UnlockedSystemKeybag, keychain: DeviceChange.KeychainAction,
    edit: (inout DeviceRecord) -> Void = { _ in }
  ) throws(VirtualDeviceError) -> Int {
    var changed = record
    changed.failedAttempts = 0
    changed.raiseRevision()
    edit(&changed)
    let keybag = unlocked.keybag
    var change = DeviceChange()
    change.keychain = keychain
    change.replace(.keybag, with: keybag.serialized())
    change.replace(.memory, with: try memory(of: unlocked.classKeys))
    change.replace(.record, with: changed.encoded())
    let count = try carryOut(change)
    record = changed
    self.keybag = keybag
    classKeys = unlocked.takeClassKeys()
    lockDeadline = nil
    return count
  }
}
