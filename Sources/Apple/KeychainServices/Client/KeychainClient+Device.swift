import Basics
public import Foundation
import KeychainCrypto
public import VirtualDevice

extension Notification.Name {
  /// The device is about to lock. UIKit's `UIApplication.protectedDataWillBecomeUnavailableNotification`.
  public static let protectedDataWillBecomeUnavailable = Notification.Name(
    "UIApplicationProtectedDataWillBecomeUnavailable")
  /// The device was unlocked. UIKit's `UIApplication.protectedDataDidBecomeAvailableNotification`.
  public static let protectedDataDidBecomeAvailable = Notification.Name(
    "UIApplicationProtectedDataDidBecomeAvailable")
  /// The app is no longer in front. UIKit's `UIApplication.didEnterBackgroundNotification`.
  public static let applicationDidEnterBackground = Notification.Name("UIApplicationDidEnterBackgroundNotification")
}

extension ProtectedDataEvent {
  /// As UIKit calls it; `nil` for what it has no name for.
  var notificationName: Notification.Name? {
    switch self {
    case .willBecomeUnavailable: .protectedDataWillBecomeUnavailable
    case .didBecomeAvailable: .protectedDataDidBecomeAvailable
    case .didBecomeUnavailable: nil
    }
  }
}

/// What the person who holds the device does, with the announcements that apps hear of it.
extension KeychainClient {
  /// Presses the device's side button: apps hear that protected data will become unavailable, and it does ten seconds
  /// later by the device's clock.
  ///
  /// Until then this process holds the device for itself.
  /// - Throws: `.noPasscode` where nothing would keep anyone from unlocking it.
  public func pressSideButton() throws(VirtualDeviceError) {
    gate.enter()
    defer { gate.leave() }
    guard try gate.lockingSession == nil else { return }
    try gate.lock(through: device.openSession(.writing, verb: "lock", wait: Self.lockTimeout))
  }

  /// Presses the side button and waits, by the device's clock, until the keys are gone.
  ///
  /// - Throws: What `pressSideButton` throws.
  public func lock() throws(VirtualDeviceError) {
    try pressSideButton()
    guard isLocking else {
      gate.enter()
      defer { gate.leave() }
      return try gate.finishLock()
    }
    // Other threads may use the device meanwhile.
    device.environment.clock.sleep(DeviceSession.lockGrace)
    gate.enter()
    defer { gate.leave() }
    try gate.finishLock()
  }

  /// Whether the side button was pressed and the keys are still there.
  public var isLocking: Bool {
    gate.enter()
    defer { gate.leave() }
    return gate.isLocking
  }

  /// Unlocks the device, which apps hear of.
  ///
  /// - Throws: `.wrongPasscode`; `.erased` where it was the last attempt.
  public func unlock(passcode: String) throws(VirtualDeviceError) {
    let wasLocking = isLocking
    try withSession { (session) throws(VirtualDeviceError) in try session.unlock(passcode: Secret(utf8: passcode)) }
    // The device tells of keys that come back. These never went, but the app was told that they would.
    if wasLocking, !isLocking { notificationCenter.post(name: .protectedDataDidBecomeAvailable, object: nil) }
  }

  /// Sets the first passcode.
  ///
  /// - Throws: `.passcodeSet`, `.emptyPasscode`.
  public func setPasscode(_ passcode: String) throws(VirtualDeviceError) {
    try withSession { (session) throws(VirtualDeviceError) in try session.setPasscode(Secret(utf8: passcode)) }
  }

  /// Removes the passcode, and with it the items that need one, for good.
  ///
  /// - Returns: How many items were destroyed.
  /// - Throws: `.noPasscode`, `.locked`, `.wrongPasscode`.
  @discardableResult
  public func removePasscode(_ passcode: String) throws(VirtualDeviceError) -> Int {
    try withSession { (session) throws(VirtualDeviceError) in
      try session.removePasscode(Secret(utf8: passcode))
    }
  }

  /// Erases all content and settings. The hardware stays, so that a backup of the device restores to it as to itself.
  public func erase() throws(VirtualDeviceError) {
    try withSession { (session) throws(VirtualDeviceError) in try session.erase() }
  }

  /// Turns the device off and on again. The app does not live through it, so nobody is told.
  public func restart() throws(VirtualDeviceError) {
    try withSession { (session) throws(VirtualDeviceError) in try session.restart() }
  }

  /// Puts another app in front of this one.
  public func enterBackground() {
    notificationCenter.post(name: .applicationDidEnterBackground, object: nil)
  }
}
