import CommandSession
import VirtualDevice

extension DeviceSession {
  /// Makes sure that what a person agreed to is still what will happen.
  ///
  /// - Parameter revision: The device's revision when the question was asked.
  func requireUnchanged(since revision: String) throws(CommandFailure) {
    guard record.revision != revision else { return }
    throw CommandFailure(
      .failed, "\(name) was changed by another process meanwhile", why: "nothing was done", try: "run it again")
  }

  /// Refuses, before anything is asked, what `changePasscode` and `removePasscode` would refuse.
  func requireChangeablePasscode() throws(VirtualDeviceError) {
    guard isPasscodeSet else { throw VirtualDeviceError(.noPasscode, name, "none is set") }
    guard state == .unlocked else {
      throw VirtualDeviceError(.locked, name, "a passcode is changed on an unlocked device")
    }
  }
}
