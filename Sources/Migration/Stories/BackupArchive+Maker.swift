public import BackupArchive
public import VirtualDevice

extension BackupArchive {
  /// The virtual device that calls itself as the backup calls its maker, held for reading; the caller ends its session.
  /// It is the backup's word alone: that the device made it is for the items to prove (`HardwareProof`).
  ///
  /// Nobody who uses a device is waited for; what cannot be read is passed over.
  ///
  /// - Parameters:
  ///   - home: The devices that are at hand.
  ///   - target: A device that is held already, and so is not asked.
  ///   - verb: What whoever finds the device busy is told.
  public func maker(in home: DeviceHome, besides target: DeviceSession?, verb: String) -> DeviceSession? {
    guard let identifier = device.identifier?.lowercased(), identifier != target?.record.udid.lowercased(),
      let devices = try? home.devices()
    else { return nil }
    for device in devices {
      // Only the one whose record fits is held at all.
      guard let record = try? device.storedRecord(), record.udid.lowercased() == identifier,
        let openDevice = try? device.openSession(.reading, verb: verb)
      else { continue }
      if Self.canUseKey(of: openDevice) { return openDevice }
      openDevice.end()
    }
    return nil
  }

  private static func canUseKey(of openDevice: DeviceSession) -> Bool {
    guard let key = try? openDevice.deviceKey() else { return false }
    _ = consume key
    return true
  }
}
