import KeyhaulKit

extension CommandFailure {
  /// An error of a device, told with the name that the user knows it by.
  init(_ error: VirtualDeviceError, device: String) {
    if error.isStopped, let signal = Interruption.pending {
      self = Interruption.failure(signal, state: "no item was changed")
      return
    }
    let message =
      switch error.code {
      case .notFound: "there is no device named \(device)"
      case .exists: "a device named \(device) already exists"
      case .occupied: "cannot create \(device): its path is in use"
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

extension VirtualDeviceError {
  /// Whether the derivation of a passcode's key, or a change of many items, was told to stop before it changed anything.
  var isStopped: Bool {
    (underlying as? DataProtectionError)?.code == .cancelled || (underlying as? KeychainStoreError)?.code == .cancelled
  }
}
