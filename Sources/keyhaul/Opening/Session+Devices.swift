import CommandSession
import DataProtection
import KeychainFormats
import KeychainRules
import VirtualDevice

extension Session {
  /// The home folder's devices, made for this program's clock, randomness and file system.
  func deviceHome() throws(CommandFailure) -> DeviceHome {
    DeviceHome(path: try homeFolder(), environment: .interruptible)
  }

  /// A device that must exist.
  ///
  /// - Throws: `.notFound` with the near name, `.usage` for what cannot be a name.
  func virtualDevice(_ argument: String) throws(CommandFailure) -> VirtualDevice {
    let home = try homeFolder()
    guard case .device(let name, let folder) = try resolver().device(argument) else {
      throw .usage("\(argument) is not a device", try: "keyhaul device list")
    }
    do throws(VirtualDeviceError) {
      let isPath = argument.contains("/") && !argument.hasPrefix("device:")
      let (home, deviceName) = try DeviceHome.locate(
        isPath ? folder : name, home: DeviceHome(path: home, environment: .interruptible))
      return try home.device(deviceName)
    } catch {
      throw CommandFailure(error, device: name)
    }
  }

  /// Holds a device while the closure works with it.
  func withDevice<Value>(
    _ target: TargetDevice, _ access: DeviceAccess, _ body: (DeviceSession) throws -> Value
  ) throws -> Value {
    try withDevice(target.device, access, wait: target.wait.time, body)
  }

  /// The same of a device that is not the verb's only argument.
  func withDevice<Value>(
    _ argument: String, _ access: DeviceAccess, wait: WaitTime, _ body: (DeviceSession) throws -> Value
  ) throws -> Value {
    let device = try virtualDevice(argument)
    let session: DeviceSession
    do throws(VirtualDeviceError) {
      session = try device.openSession(access, verb: verb, wait: wait.duration)
    } catch {
      try Interruption.check()
      throw CommandFailure(error, device: device.name.text)
    }
    defer { session.end() }
    try Interruption.check()
    do {
      let value = try body(session)
      try session.finish()
      return value
    } catch let error as VirtualDeviceError {
      if error.isStopped { try Interruption.check() }
      throw CommandFailure(error, device: device.name.text)
    }
  }
}

extension DeviceEnvironment {
  /// The system's, but that Ctrl-C ends a wait: for a device in use, and for the key of a passcode.
  static var interruptible: DeviceEnvironment {
    DeviceEnvironment(
      clock: DeviceClock(
        now: DeviceClock.system.now, sleep: DeviceClock.system.sleep, goesOn: { Interruption.pending == nil }))
  }
}

extension VirtualDeviceError {
  /// Whether a derivation was told to stop, before anything was changed.
  fileprivate var isStopped: Bool { (underlying as? DataProtectionError)?.code == .cancelled }
}
