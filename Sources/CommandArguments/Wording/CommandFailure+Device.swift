package import CommandSession
import KeychainFormats
package import VirtualDevice

extension CommandFailure {
  /// An error of a device, told with the name that the user knows it by.
  package init(_ error: VirtualDeviceError, device: String) {
    let message =
      switch error.code {
      case .notFound: "there is no device named \(device)"
      case .exists: "there is a device named \(device) already"
      case .occupied: "cannot make \(device): something else is in its place"
      case .busy: "\(device) is in use"
      case .wrongPasscode: "cannot unlock \(device): the passcode is wrong"
      case .locked: "\(device) is locked"
      case .damaged: "\(device) is damaged"
      case .noPasscode: "\(device) has no passcode"
      case .passcodeSet: "\(device) has a passcode already"
      case .erased: "\(device) has erased itself"
      default: "\(device): \(error.summary)"
      }
    self.init(CommandStatus(error.category), message, why: error.reason, try: error.call)
    stage = error.stage
    // Nothing was unlocked, and the device is another one than before.
    if error.code == .erased { (status, done) = (.doneBut, message) }
  }
}
