import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A device that an argument means.
struct FoundDevice {
  /// As the user wrote it.
  let typed: String
  let directory: String
  let device: VirtualDevice
  private let session: Session

  var name: String { device.name.text }
  /// What a command says for it. Its directory that stands right here needs its `./` where only a device is meant.
  var word: String { directory == "./" + typed ? directory : session.lastingWord(ofDevice: typed) }

  init(
    typed: String, name: String, directory: String, _ session: Session
  ) throws(CommandFailure) {
    do throws(KeyhaulError) {
      let (home, deviceName) = try DeviceSet.locate(
        directory.contains("/") ? directory : "./\(directory)", home: DeviceSet(path: ".", environment: .interruptible)
      )
      device = try home.device(deviceName)
    } catch {
      throw CommandFailure(error, device: name)
    }
    self.typed = typed
    self.directory = directory
    self.session = session
    session.showHome(ofDeviceIn: directory)
  }

  /// Its directory and the files in it.
  var files: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return [directory] + names.map { directory + "/" + $0 }
  }

  /// Holds the device while the closure works with it.
  func hold<Value: ~Copyable>(
    _ access: DeviceAccess, _ body: (DeviceSession) throws -> Value
  ) throws -> Value {
    let openDevice: DeviceSession
    do throws(KeyhaulError) {
      openDevice = try device.openSession(access, verb: session.verb, wait: session.common.wait.duration)
    } catch {
      try Interruption.check()
      throw CommandFailure(error, device: name)
    }
    defer { openDevice.invalidate() }
    try Interruption.check()
    do {
      let value = try body(openDevice)
      try openDevice.close()
      return value
    } catch let error as KeyhaulError where error.isOfDevice {
      if error.isStopped { try Interruption.check() }
      throw CommandFailure(error, device: name)
    }
  }

  /// Holds two devices for reading while the closure works with them, as far as they are named.
  static func hold<Value>(
    _ first: FoundDevice?, _ second: FoundDevice?, _ body: (DeviceSession?, DeviceSession?) throws -> Value
  ) throws -> Value {
    guard let first else {
      guard let second else { return try body(nil, nil) }
      return try second.hold(.reading) { try body(nil, $0) }
    }
    return try first.hold(.reading) { device in try hold(nil, second) { try body(device, $1) } }
  }

  /// Deletes it, its directory and all that is in it.
  func delete() throws(CommandFailure) {
    do throws(KeyhaulError) {
      // The directory's path has a slash, so that the home is what stands before it.
      let (home, name) = try DeviceSet.locate(device.directory, home: DeviceSet(path: "."))
      try home.delete(name, wait: session.common.wait.duration)
    } catch {
      var failure = CommandFailure(error, device: name)
      if error.code == .deviceOccupied { (failure.message, failure.advice) = Self.words(ofForeignIn: name) }
      throw failure
    }
  }

  /// Refuses to delete with a device what somebody put into its folder.
  func requireNothingForeign() throws(CommandFailure) {
    let foreign: [String]
    do throws(KeyhaulError) {
      let (home, name) = try DeviceSet.locate(device.directory, home: DeviceSet(path: "."))
      foreign = try home.unrecognizedFiles(of: name)
    } catch {
      throw CommandFailure(error, device: name)
    }
    guard !foreign.isEmpty else { return }
    let names = foreign.prefix(3).joined(separator: ", ") + (foreign.count > 3 ? ", ..." : "")
    let (message, advice) = Self.words(ofForeignIn: name)
    throw .usage(
      message,
      why: "\(names) \(foreign.count == 1 ? "is" : "are") not part of the device and would be deleted with it",
      try: advice)
  }

  private static func words(ofForeignIn name: String) -> (message: String, advice: String) {
    ("the folder of \(name) contains more than a device", "move your own files elsewhere first")
  }
}

extension DeviceSet {
  /// The home directory's devices, made for this program's clock, randomness and file system.
  init(of session: Session) throws(CommandFailure) {
    self.init(path: try session.homeDirectory(), environment: .interruptible)
  }
}

extension DeviceEnvironment {
  /// The system's, but that Ctrl-C ends a wait: for a device in use, and for the key of a passcode.
  static var interruptible: DeviceEnvironment {
    DeviceEnvironment(
      clock: DeviceClock(
        now: DeviceClock.system.now, sleep: DeviceClock.system.sleep, shouldContinue: { Interruption.pending == nil }))
  }
}

extension DeviceSession {
  /// Makes sure that what a person agreed to is still what will happen.
  ///
  /// - Parameter revision: The device's revision when the question was asked.
  func requireUnchanged(since revision: String) throws(CommandFailure) {
    guard record.revision != revision else { return }
    throw CommandFailure(
      .failed, "\(name) was changed by another process in the meantime", why: "nothing was done", try: "run it again")
  }
}
