import KeyhaulKit

extension DeviceSession {
  /// Refuses, before anything is asked, what `changePasscode` and `removePasscode` would refuse.
  func requireChangeablePasscode() throws(VirtualDeviceError) {
    guard isPasscodeSet else { throw VirtualDeviceError(.noPasscode, name, "none is set") }
    guard state == .unlocked else {
      throw VirtualDeviceError(.locked, name, "a passcode is changed on an unlocked device")
    }
  }
}
