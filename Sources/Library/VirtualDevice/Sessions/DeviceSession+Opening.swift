import Basics
import KeychainCrypto

extension DeviceSession {
  /// Takes the lock and leaves no change half done.
  static func acquireLock(
    of device: VirtualDevice, _ access: DeviceAccess, verb: String, wait: Duration
  ) throws(VirtualDeviceError) -> DeviceFileLock {
    let files = device.environment.files
    let name = device.name.text
    func take(_ access: DeviceAccess) throws(VirtualDeviceError) -> DeviceFileLock {
      try DeviceFileLock.acquire(
        device.directory, device: name, access: access, verb: verb, wait: wait, clock: device.environment.clock, files)
    }
    func finish() throws(VirtualDeviceError) {
      try DeviceChange.finish(in: device.directory, device: name, files)
      try DeviceChange.discardStaged(in: device.directory, files)
    }
    switch access {
    case .writing:
      let lock = try take(.writing)
      try finish()
      return lock
    case .reading:
      while true {
        let lock = try take(.reading)
        guard try DeviceChange.isPending(in: device.directory, files) else { return lock }
        _ = consume lock
        let alone = try take(.writing)
        try finish()
        _ = consume alone
      }
    }
  }

  /// What is in memory; after a restart, what the hardware alone opens; without a passcode, everything.
  static func keys(
    memory: [UInt8]?, _ keybag: SystemKeybag, _ hardware: borrowing HardwareUID, device: String,
    _ environment: DeviceEnvironment
  ) throws(VirtualDeviceError) -> ClassKeys {
    do throws(DataProtectionError) {
      // Opens without the passcode, to learn whether keybag and hardware belong together at all.
      let boot = try keybag.unlockBeforeFirstUnlock(hardware: hardware)
      if let memory, let keys = DeviceMemory.opened(memory, with: hardware, keybagUUID: boot.keybagUUID) { return keys }
      guard !keybag.isPasscodeSet else { return boot }
      return try keybag.unlock(passcode: Secret(utf8: ""), hardware: hardware, progress: environment.derivation)
    } catch {
      switch error.code {
      case .damagedKeybag, .missingField, .wrongPasscode, .malformed:
        throw VirtualDeviceError(.damaged, device, "its keybag does not match its hardware key: \(error.reason)")
      default: throw VirtualDeviceError(device, error)
      }
    }
  }
}
