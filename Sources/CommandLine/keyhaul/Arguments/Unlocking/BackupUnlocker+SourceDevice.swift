import KeyhaulKit
import Reports

extension BackupUnlocker {
  /// A source device that is available, with the items that could be read.
  struct AvailableSourceDevice {
    let name: String
    /// The backup, decrypted with the device's key.
    let unlockedBackup: UnlockedBackup
    /// `nil` if the items could not be read.
    let items: SourceDeviceItems?
  }

  /// Returns the source device with its items. If the user named no device, this is the target or a virtual device with
  /// the identifier that the backup states.
  ///
  /// - Parameters:
  ///   - opened: The backup, decrypted with `key`, and perhaps not with the source device's key.
  ///   - named: The device that the user named; `nil` if none.
  ///   - target: The target of a restore; `nil` if there is none.
  ///   - key: The key of the backup's password.
  /// - Returns: `nil` if the source device is not available.
  /// - Throws: An error if the named device cannot be read, or `.usage` if it did not make the backup.
  func sourceDevice(
    of opened: UnlockedBackup, named: DeviceSession?, orTarget target: DeviceSession?, with key: BackupKey
  ) throws -> AvailableSourceDevice? {
    ProcessMemory.releaseFreeMemory()
    if let named { return try confirmSource(named, of: opened, with: key) }
    let matchingTarget = target.flatMap { hasIdentifier(of: $0) ? $0 : nil }
    guard let device = try matchingTarget ?? sourceDevice() else { return nil }
    defer { if matchingTarget == nil { device.invalidate() } }
    let unlockedBackup = try decryptAgain(opened, with: key, on: device)
    // Another device with the same identifier has nothing to do with the backup.
    guard unlockedBackup.isSameDevice != false else { return nil }
    do throws(KeyhaulError) {
      return AvailableSourceDevice(
        name: device.name, unlockedBackup: unlockedBackup, items: try SourceDeviceItems(of: unlockedBackup, on: device))
    } catch {
      session.info(
        UntrustedText.escaped(
          "Items that are on \(device.name) but not in \(name) cannot be listed: \(error.reason). "
            + "Try: \(error.commandLineAdvice)."))
      return AvailableSourceDevice(name: device.name, unlockedBackup: unlockedBackup, items: nil)
    }
  }

  /// Returns whether the backup states that a device with this identifier made it.
  private func hasIdentifier(of device: DeviceSession) -> Bool {
    device.record.udid.lowercased() == archive.device.identifier?.lowercased()
  }

  /// Decrypts the backup again with a device's key. Items that are already decrypted are reused.
  private func decryptAgain(
    _ opened: UnlockedBackup, with key: BackupKey, on device: DeviceSession
  ) throws -> UnlockedBackup {
    let deviceKey: DeviceKey? = try device.deviceKey()
    do throws(KeyhaulError) {
      return try archive.open(with: key, deviceKey: deviceKey, for: .reading, reusing: opened)
    } catch {
      throw CommandError(backup: error, name: name)
    }
  }

  /// Returns the device that the user named, if it made the backup. It did if its key decrypts the items that need a
  /// device's key. If there are no such items, or if it decrypts only some classes of them, the identifier decides.
  ///
  /// - Throws: `.usage` if the device did not make the backup.
  private func confirmSource(
    _ device: DeviceSession, of opened: UnlockedBackup, with key: BackupKey
  ) throws -> AvailableSourceDevice {
    let unlockedBackup = try decryptAgain(opened, with: key, on: device)
    let hasSameIdentifier = hasIdentifier(of: device)
    guard unlockedBackup.isSameDevice ?? hasSameIdentifier else {
      let reason =
        unlockedBackup.isSameDevice == false
        ? "its key decrypts none of the items that need a device key"
        : "its identifier is \(device.record.udid); the backup names \(archive.device.identifier ?? "none")"
      throw CommandError.usage(
        "\(device.name) did not make \(name)", why: reason, try: "the source device, or leave --source out")
    }
    do throws(KeyhaulError) {
      return AvailableSourceDevice(
        name: device.name, unlockedBackup: unlockedBackup, items: try SourceDeviceItems(of: unlockedBackup, on: device))
    } catch {
      throw CommandError(error, using: device.name)
    }
  }
}
