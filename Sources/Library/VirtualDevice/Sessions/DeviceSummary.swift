package import Basics

/// What a listing shows of a device.
package struct DeviceSummary: Sendable {
  /// Identity and counters, read without the lock.
  package let record: DeviceRecord
  /// `nil` if another process is changing the device.
  package let state: DeviceState?
  /// Whether a passcode is set; `nil` if another process is changing the device.
  package let isPasscodeSet: Bool?
  /// How many rows the keychain has; `nil` if another process is changing the device.
  package let itemCount: Int?
  /// Whether everybody can compute its hardware key; `nil` if another process is changing the device.
  package let isHardwareKeyPublished: Bool?

  /// Whether another process was changing the device, so that only its record could be read.
  package var isBusy: Bool { state == nil }
}

extension VirtualDevice {
  /// What a listing shows of the device, without waiting for whoever holds it.
  ///
  /// - Parameters:
  ///   - verb: What the caller is doing, told to whoever finds the device busy.
  ///   - seeds: As `DeviceSession.isHardwareKeyPublished` takes them.
  /// - Throws: `.deviceDamaged`, `.deviceNotFound`, `.unsupportedVersion`, `.deviceIO`.
  package func summary(
    verb: String, knownSeeds seeds: some Sequence<Int64> = []
  ) throws(KeyhaulError) -> DeviceSummary {
    do throws(KeyhaulError) {
      return try withSession(.reading, verb: verb) { (session) throws(KeyhaulError) in
        DeviceSummary(
          record: session.record, state: session.state, isPasscodeSet: session.isPasscodeSet,
          itemCount: try session.itemCount,
          isHardwareKeyPublished: try session.isHardwareKeyPublished(knownSeeds: seeds))
      }
    } catch {
      guard error.code == .deviceBusy else { throw error }
    }
    return DeviceSummary(
      record: try storedRecord(), state: nil, isPasscodeSet: nil, itemCount: nil, isHardwareKeyPublished: nil)
  }

  /// The device's record as it is stored, whoever holds the device. It is replaced by a rename, so that one that is read
  /// without the lock is whole.
  ///
  /// - Throws: `.deviceDamaged`, `.deviceNotFound`, `.unsupportedVersion`, `.deviceIO`.
  package func storedRecord() throws(KeyhaulError) -> DeviceRecord {
    guard let bytes = try environment.files.read(DeviceFile.record.path(in: directory), .record) else {
      throw KeyhaulError(.deviceNotFound, name.text, "its folder is missing")
    }
    return try DeviceRecord(decoding: bytes, of: name.text)
  }
}
