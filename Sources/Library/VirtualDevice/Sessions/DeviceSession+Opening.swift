import Basics
import KeychainCrypto
import KeychainFormats

extension DeviceSession {
  /// Acquires the device's file lock and completes an interrupted change.
  static func acquireLock(
    of device: VirtualDevice, _ access: DeviceAccess, command: String, wait: Duration
  ) throws(KeyhaulError) -> DeviceFileLock {
    let files = device.environment.files
    let name = device.name.text
    func acquire(_ access: DeviceAccess) throws(KeyhaulError) -> DeviceFileLock {
      try DeviceFileLock.acquire(
        device.directory, device: name, access: access, command: command, wait: wait, clock: device.environment.clock,
        files)
    }
    func completeChange() throws(KeyhaulError) {
      try DeviceChange.finish(in: device.directory, device: name, files)
      try DeviceChange.discardStaged(in: device.directory, files)
    }
    switch access {
    case .writing:
      let lock = try acquire(.writing)
      try completeChange()
      return lock
    case .reading:
      // Completing a change requires an exclusive lock. Before this process has the lock for reading again, another
      // process may start and not finish a further change, so the check is repeated.
      while true {
        let lock = try acquire(.reading)
        guard try DeviceChange.isPending(in: device.directory, files) else { return lock }
        _ = consume lock
        let exclusiveLock = try acquire(.writing)
        try completeChange()
        _ = consume exclusiveLock
      }
    }
  }

  static func record(of device: VirtualDevice) throws(KeyhaulError) -> DeviceRecord {
    let name = device.name.text
    let path = DeviceFile.record.path(in: device.directory)
    guard let bytes = try device.environment.files.read(path, .record) else {
      throw KeyhaulError(.deviceDamaged, name, "device.json is missing")
    }
    return try DeviceRecord(decoding: bytes, of: name)
  }

  static func keybag(of device: VirtualDevice) throws(KeyhaulError) -> SystemKeybag {
    let name = device.name.text
    let path = DeviceFile.keybag.path(in: device.directory)
    guard let bytes = try device.environment.files.read(path, .keybag) else {
      throw KeyhaulError(.deviceDamaged, name, "its keybag is missing")
    }
    do throws(FormatError) {
      return try SystemKeybag(parsing: bytes)
    } catch {
      throw KeyhaulError(.deviceDamaged, name, "its keybag: \(error.reason)")
    }
  }

  /// Returns the class keys in memory. After a restart, these are the keys that require only the device key, or all
  /// keys if no passcode is set.
  static func keys(
    of device: VirtualDevice, _ keybag: SystemKeybag, _ hardware: borrowing HardwareUID
  ) throws(KeyhaulError) -> ClassKeys {
    let name = device.name.text
    let memory = try device.environment.files.read(DeviceFile.memory.path(in: device.directory), .memory)
    do throws(DataProtectionError) {
      // This needs no passcode, and fails if the keybag does not belong to the device key.
      let keysBeforeUnlock = try keybag.unlockBeforeFirstUnlock(hardware: hardware)
      if let memory, let keys = DeviceMemory.unwrapped(memory, with: hardware, keybagUUID: keysBeforeUnlock.keybagUUID)
      {
        return keys
      }
      guard !keybag.isPasscodeSet else { return keysBeforeUnlock }
      return try keybag.unlock(passcode: Secret(utf8: ""), hardware: hardware, progress: device.environment.derivation)
    } catch {
      switch error.code {
      case .damagedKeybag, .missingField, .wrongPasscode, .malformed:
        throw KeyhaulError(.deviceDamaged, name, "its keybag does not match its device key: \(error.reason)")
      default: throw KeyhaulError(error).with(subject: name)
      }
    }
  }
}
