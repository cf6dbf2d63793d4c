import CommandSession
import DataProtection
import Foundation
import KeychainFormats
import VirtualDevice

/// A device that an argument means.
struct FoundDevice {
  /// As the user wrote it.
  let typed: String
  let folder: String
  let device: VirtualDevice
  private let wait: WaitTime
  private let session: Session

  var name: String { device.name.text }

  init(
    typed: String, name: String, folder: String, wait: WaitTime, _ session: Session
  ) throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      let (home, deviceName) = try DeviceHome.locate(
        folder.contains("/") ? folder : "./\(folder)", home: DeviceHome(path: ".", environment: .interruptible))
      device = try home.device(deviceName)
    } catch {
      throw CommandFailure(error, device: name)
    }
    self.typed = typed
    self.folder = folder
    self.wait = wait
    self.session = session
  }

  /// Its folder and the files in it.
  var files: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return [folder] + names.map { folder + "/" + $0 }
  }

  /// Holds the device while the closure works with it.
  func hold<Value>(_ access: DeviceAccess, _ body: (DeviceSession) throws -> Value) throws -> Value {
    let held: DeviceSession
    do throws(VirtualDeviceError) {
      held = try device.openSession(access, verb: session.verb, wait: wait.duration)
    } catch {
      try Interruption.check()
      throw CommandFailure(error, device: name)
    }
    defer { held.end() }
    try Interruption.check()
    do {
      let value = try body(held)
      try held.finish()
      return value
    } catch let error as VirtualDeviceError {
      if error.isStopped { try Interruption.check() }
      throw CommandFailure(error, device: name)
    }
  }

  /// Deletes it, its folder and all that is in it.
  func delete() throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      // The folder's path has a slash, so that the home is what stands before it.
      let (home, name) = try DeviceHome.locate(device.folder, home: DeviceHome(path: "."))
      try home.delete(name, wait: wait.duration)
    } catch {
      throw CommandFailure(error, device: name)
    }
  }
}

extension DeviceHome {
  /// The home folder's devices, made for this program's clock, randomness and file system.
  init(of session: Session) throws(CommandFailure) {
    self.init(path: try session.homeFolder(), environment: .interruptible)
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
