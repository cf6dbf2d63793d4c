import KeychainServices
import VirtualDevice

/// What the person who holds the phone does with it.
extension Phone {
  /// Locks the phone and lets ten seconds pass, after which the keys of items "when unlocked" are gone.
  ///
  /// - Throws: `.noPasscode` where nothing would keep anyone from unlocking it.
  public func lock() throws(PhoneError) {
    try telling { () throws(VirtualDeviceError) in try owner.lock() }
  }

  /// Unlocks the phone with its passcode; the first time after a restart too.
  public func unlock() throws(PhoneError) { try unlock(passcode: passcode ?? "") }

  /// Unlocks the phone.
  ///
  /// - Throws: `.wrongPasscode`, `.noPasscode`.
  public func unlock(passcode: String) throws(PhoneError) {
    try telling { () throws(VirtualDeviceError) in try owner.unlock(passcode: passcode) }
  }

  /// Turns the phone off and on again. Until its first unlock, keychain calls reach items "always" alone.
  public func restart() throws(PhoneError) {
    try telling { () throws(VirtualDeviceError) in try owner.restart() }
  }

  /// Sets the phone's first passcode.
  ///
  /// - Throws: `.underlying` where it has one, or for an empty one.
  public func setPasscode(_ new: String) throws(PhoneError) {
    try telling { () throws(VirtualDeviceError) in try owner.setPasscode(new) }
    passcode = new
  }

  /// Removes the phone's passcode, and with it the items that need one, for good.
  ///
  /// - Throws: `.noPasscode`, `.locked`.
  public func removePasscode() throws(PhoneError) {
    try telling { () throws(VirtualDeviceError) in _ = try owner.removePasscode(passcode ?? "") }
    passcode = nil
  }

  /// Erases all content and settings; the passcode is among them. The hardware stays, so that the phone remains the
  /// same one to a backup of it.
  public func erase() throws(PhoneError) {
    try telling { () throws(VirtualDeviceError) in try owner.erase() }
    passcode = nil
  }
}
