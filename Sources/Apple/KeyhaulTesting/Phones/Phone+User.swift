import Basics
import KeychainServices
import VirtualDevice

/// The actions of the phone's user.
extension Phone {
  /// Locks the phone and waits ten seconds by its clock. Items of the class "when unlocked" are then not accessible.
  ///
  /// - Throws: `.noPasscode` if the phone has no passcode.
  public func lock() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.lock() }
  }

  /// Unlocks the phone with its passcode, also after a restart. A phone without a passcode is always unlocked.
  ///
  /// - Throws: `.wrongPasscode` if a client has changed the passcode; `.underlying` if a file operation fails.
  public func unlock() throws(PhoneError) { try unlock(passcode: passcode ?? "") }

  /// Unlocks the phone with a passcode.
  ///
  /// - Throws: `.wrongPasscode`; `.noPasscode` if the phone has no passcode and the given one is not empty; `.underlying`
  ///   if a file operation fails.
  public func unlock(passcode: String) throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.unlock(passcode: passcode) }
  }

  /// Restarts the phone. If it has a passcode, keychain calls can access only items of the class "always" until it is
  /// unlocked. Otherwise, it is unlocked afterwards.
  ///
  /// - Throws: `.underlying` if a file operation fails.
  public func restart() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.restart() }
  }

  /// Sets the phone's first passcode.
  ///
  /// - Throws: `.underlying` if it already has one or the passcode is empty.
  public func setPasscode(_ newPasscode: String) throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.setPasscode(newPasscode) }
    passcode = newPasscode
  }

  /// Removes the phone's passcode and, permanently, the items that require one.
  ///
  /// - Throws: `.noPasscode`; `.locked`; `.wrongPasscode` if a client has changed the passcode; `.underlying` if a file
  ///   operation fails.
  public func removePasscode() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in _ = try owner.removePasscode(passcode ?? "") }
    passcode = nil
  }

  /// Erases all content and settings, including the passcode. The device key stays, so a restore of the phone's own
  /// backup is still a restore to the same phone.
  ///
  /// - Throws: `.underlying` if a file operation fails.
  public func erase() throws(PhoneError) {
    try translatingErrors { () throws(KeyhaulError) in try owner.erase() }
    passcode = nil
  }
}

extension Phone {
  /// The reaction of the phone's user to an authentication request.
  public enum User: Sendable, Hashable, CaseIterable {
    /// No user is present, or the dialog cannot be shown.
    case isAway
    /// Authenticates.
    case allows
    /// Presents a wrong finger, face or passcode until the system gives up.
    case fails
    /// Dismisses the dialog.
    case cancels
  }

  /// The reaction of the phone's user, who is away by default.
  public var user: User {
    get {
      switch device.user.answer {
      case .unavailable: .isAway
      case .allow: .allows
      case .deny: .fails
      case .cancel: .cancels
      }
    }
    set {
      device.user.answer =
        switch newValue {
        case .isAway: .unavailable
        case .allows: .allow
        case .fails: .deny
        case .cancels: .cancel
        }
    }
  }
}
