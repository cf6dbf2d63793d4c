import KeyhaulKit

@testable import DeviceServer

/// A virtual device that is served to a test.
final class ServedPhone: Sendable {
  let home: TemporaryDeviceSet
  let served: ServedDevice
  /// The lines of the log.
  let lines = LineRecorder()

  /// Creates and serves a device.
  ///
  /// - Parameter rounds: The number of iterations for the backup password.
  init(
    trust: TrustPolicy = .always, passcode: String = "", rounds: Int = 1,
    filledBy fill: (DeviceSession) throws(KeyhaulError) -> Void = { (_) throws(KeyhaulError) in }
  ) throws {
    home = try TemporaryDeviceSet()
    let device = try home.devices.create(
      DeviceName("phone"), DeviceOptions(), passcode: Secret(utf8: passcode), filledBy: fill)
    served = try ServedDevice(device, deviceID: 7, trust: trust, rounds: rounds) { [lines] in lines.add($0) }
  }
}

/// A list of lines to which several threads can add.
final class LineRecorder: Sendable {
  private let lines = Locked<[String]>([])
  func add(_ line: String) { lines.withLock { $0.append(line) } }
  var all: [String] { lines.withLock { $0 } }
}
