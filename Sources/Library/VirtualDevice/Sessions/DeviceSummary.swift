package import Basics

/// A device in a list of devices.
package struct DeviceSummary: Sendable {
  /// The device's identity and counters, which can be read even if another process is changing the device.
  package let record: DeviceRecord
  /// The lock state; `nil` if another process is changing the device.
  package let state: DeviceState?
  /// Whether a passcode is set; `nil` if another process is changing the device.
  package let isPasscodeSet: Bool?
  /// The number of items; `nil` if another process is changing the device.
  package let itemCount: Int?
  /// Whether anyone can compute the device key; `nil` if another process is changing the device.
  package let isDeviceKeyPublished: Bool?

  /// Whether another process was changing the device, so that only its record could be read.
  package var isBusy: Bool { state == nil }
}

extension VirtualDevice {
  /// Returns a summary of the device without waiting for other processes.
  ///
  /// - Parameters:
  ///   - command: The command of the caller, for the errors of other processes.
  ///   - seeds: The seeds of published fixtures, as for `DeviceSession.isDeviceKeyPublished`.
  /// - Throws: `.deviceDamaged`, `.deviceNotFound`, `.unsupportedVersion`, `.deviceIO`.
  package func summary(
    command: String, knownSeeds seeds: some Sequence<Int64> = []
  ) throws(KeyhaulError) -> DeviceSummary {
    do throws(KeyhaulError) {
      return try withSession(.reading, verb: command) { (session) throws(KeyhaulError) in
        DeviceSummary(
          record: session.record, state: session.state, isPasscodeSet: session.isPasscodeSet,
          itemCount: try session.itemCount,
          isDeviceKeyPublished: try session.isDeviceKeyPublished(knownSeeds: seeds))
      }
    } catch {
      guard error.code == .deviceBusy else { throw error }
    }
    return DeviceSummary(
      record: try storedRecord(), state: nil, isPasscodeSet: nil, itemCount: nil, isDeviceKeyPublished: nil)
  }

  /// Returns the device's stored record without acquiring its file lock. The file is replaced by a rename, so it is
  /// always complete.
  ///
  /// - Throws: `.deviceDamaged`, `.deviceNotFound`, `.unsupportedVersion`, `.deviceIO`.
  package func storedRecord() throws(KeyhaulError) -> DeviceRecord {
    guard let bytes = try environment.files.read(DeviceFile.record.path(in: directory), .record) else {
      throw KeyhaulError(.deviceNotFound, name.text, "its folder is missing")
    }
    return try DeviceRecord(decoding: bytes, of: name.text)
  }
}
