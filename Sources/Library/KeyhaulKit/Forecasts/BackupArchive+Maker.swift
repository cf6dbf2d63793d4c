public import Backups
import Basics
public import VirtualDevice

extension BackupArchive {
  /// The virtual device that calls itself as the backup calls its maker, held for reading; the caller ends its session.
  /// It is the backup's word alone: that the device made it is for the items to prove (`HardwareProof`).
  ///
  /// Nobody who uses a device is waited for.
  ///
  /// - Parameters:
  ///   - home: The devices that are available.
  ///   - target: A device that is held already, and so is not asked.
  ///   - verb: What whoever finds the device busy is told.
  ///   - passedOver: Told of a device that fits by its record, and whose key cannot be read.
  public func maker(
    in home: DeviceHome, besides target: DeviceSession?, verb: String,
    passedOver: (VirtualDevice, VirtualDeviceError) -> Void = { _, _ in }
  ) -> DeviceSession? {
    guard let identifier = device.identifier?.lowercased(), identifier != target?.record.udid.lowercased(),
      let devices = try? home.devices()
    else { return nil }
    for device in devices {
      // Only the one whose record fits is held at all.
      guard let record = try? device.storedRecord(), record.udid.lowercased() == identifier else { continue }
      do throws(VirtualDeviceError) {
        return try Self.sessionWithKey(of: device, verb)
      } catch {
        passedOver(device, error)
      }
    }
    return nil
  }

  private static func sessionWithKey(
    of device: VirtualDevice, _ verb: String
  ) throws(VirtualDeviceError) -> DeviceSession {
    let openDevice = try device.openSession(.reading, verb: verb)
    do throws(VirtualDeviceError) {
      _ = try openDevice.deviceKey()
      return openDevice
    } catch {
      openDevice.end()
      throw error
    }
  }
}
