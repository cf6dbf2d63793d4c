import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A device that an argument names.
struct ResolvedDevice {
  /// The argument as the user typed it.
  private let argument: String
  let directory: String
  let device: VirtualDevice
  private let session: Session

  var name: String { device.name.text }
  /// The argument that names the device in suggested commands. A device folder in the working directory needs its "./",
  /// because a bare name would mean a device in the device folder.
  var suggestedArgument: String {
    directory == "./" + argument ? directory : session.stableArgument(ofDevice: argument)
  }

  init(
    argument: String, name: String, directory: String, _ session: Session
  ) throws(CommandError) {
    do throws(KeyhaulError) {
      let (deviceSet, deviceName) = try DeviceSet.locate(
        directory.contains("/") ? directory : "./\(directory)", in: DeviceSet(path: ".", environment: .interruptible)
      )
      device = try deviceSet.device(deviceName)
    } catch {
      throw CommandError(error, device: name)
    }
    self.argument = argument
    self.directory = directory
    self.session = session
    session.addHomeToSuggestions(forDeviceIn: directory)
  }

  /// The device's folder and the files in it.
  var files: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return [directory] + names.map { directory + "/" + $0 }
  }

  /// Runs a closure with an open session of the device.
  func withSession<Value: ~Copyable>(
    _ access: DeviceAccess, _ body: (DeviceSession) throws -> Value
  ) throws -> Value {
    let openDevice: DeviceSession
    do throws(KeyhaulError) {
      openDevice = try device.openSession(access, verb: session.commandName, wait: session.common.wait.duration)
    } catch {
      try Interruption.check()
      throw CommandError(error, device: name)
    }
    defer { openDevice.invalidate() }
    try Interruption.check()
    do {
      let value = try body(openDevice)
      try openDevice.close()
      return value
    } catch let error as KeyhaulError where error.concernsDevice {
      if error.isCancellation { try Interruption.check() }
      throw CommandError(error, device: name)
    }
  }

  /// Runs a closure with open sessions of a target and a source device, for reading. A device that was not named is `nil`.
  static func withSessions<Value>(
    target: ResolvedDevice?, sourceDevice: ResolvedDevice? = nil,
    _ body: (_ target: DeviceSession?, _ sourceDevice: DeviceSession?) throws -> Value
  ) throws -> Value {
    guard let target else {
      guard let sourceDevice else { return try body(nil, nil) }
      return try sourceDevice.withSession(.reading) { try body(nil, $0) }
    }
    return try target.withSession(.reading) { openTarget in
      try withSessions(target: nil, sourceDevice: sourceDevice) { try body(openTarget, $1) }
    }
  }

  /// Deletes the device's folder and all its contents.
  func delete() throws(CommandError) {
    do throws(KeyhaulError) {
      // The path contains a slash, so its parent is the device set.
      let (deviceSet, name) = try DeviceSet.locate(device.directory, in: DeviceSet(path: "."))
      try deviceSet.delete(name, wait: session.common.wait.duration)
    } catch {
      var failure = CommandError(error, device: name)
      if error.code == .deviceOccupied {
        (failure.message, failure.advice) = Self.unrelatedFilesMessage(in: name)
      }
      throw failure
    }
  }

  /// Rejects deleting a device whose folder contains unrelated files.
  func rejectUnrelatedFiles() throws(CommandError) {
    let unrelatedFiles: [String]
    do throws(KeyhaulError) {
      let (deviceSet, name) = try DeviceSet.locate(device.directory, in: DeviceSet(path: "."))
      unrelatedFiles = try deviceSet.unrecognizedFiles(of: name)
    } catch {
      throw CommandError(error, device: name)
    }
    guard !unrelatedFiles.isEmpty else { return }
    let names = unrelatedFiles.prefix(3).joined(separator: ", ") + (unrelatedFiles.count > 3 ? ", ..." : "")
    let (message, advice) = Self.unrelatedFilesMessage(in: name)
    throw .usage(
      message,
      why: "\(names) \(unrelatedFiles.count == 1 ? "is" : "are") not part of the device and would be deleted with it",
      try: advice)
  }

  private static func unrelatedFilesMessage(in name: String) -> (message: String, advice: String) {
    ("the folder of \(name) contains more than a device", "move your own files elsewhere first")
  }
}

extension DeviceSet {
  /// Creates the set of the devices in the device folder, for commands that Ctrl-C can interrupt.
  init(of session: Session) throws(CommandError) {
    self.init(path: try session.deviceFolder(), environment: .interruptible)
  }
}

extension DeviceEnvironment {
  /// The system's environment, except that Ctrl-C ends waiting for a device in use and the derivation of a passcode's
  /// key.
  static var interruptible: DeviceEnvironment {
    DeviceEnvironment(
      clock: DeviceClock(
        now: DeviceClock.system.now, sleep: DeviceClock.system.sleep, shouldContinue: { Interruption.pending == nil }))
  }
}

extension DeviceSession {
  /// Makes sure that the device has not changed since the user was asked.
  ///
  /// - Parameter revision: The device's revision when the user was asked.
  /// - Throws: `.failed` if it has changed.
  func requireUnchanged(since revision: String) throws(CommandError) {
    guard record.revision != revision else { return }
    throw CommandError(
      .failed, "\(name) was changed by another process in the meantime", why: "nothing was done", try: "run it again")
  }
}
