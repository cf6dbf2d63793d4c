import KeyhaulKit

extension ArchiveUnlocker {
  /// The device that made the archive, as far as it is available.
  struct Maker {
    let name: String
    /// The archive, opened with the device's hardware key.
    let returning: OpenedArchive
    /// `nil` where its items could not be read.
    let items: MakerItems?
  }

  /// Asks the device that made the archive for its items: the one that the user names, or else the target or a device of
  /// the home directory that calls itself as the archive calls its maker.
  ///
  /// - Parameter opened: The archive as it was opened with the same key.
  /// - Throws: What keeps the device that the user names from being read, and `.usage` where it is not the maker.
  func maker(
    of opened: OpenedArchive, named: DeviceSession?, orTarget target: DeviceSession?, with key: borrowing ArchiveKey
  ) throws -> Maker? {
    ProcessMemory.giveBackFreeMemory()
    if let named { return try proven(named, opened, with: key) }
    let target = target.flatMap { isClaimed(by: $0) ? $0 : nil }
    guard let device = target ?? maker() else { return nil }
    defer { if target == nil { device.end() } }
    let returning = try self.opened(opened, with: key, device)
    // Another device under its name: nothing of it has to do with the archive.
    guard returning.isSameDevice != false else { return nil }
    do throws(MigrationError) {
      return Maker(name: device.name, returning: returning, items: try MakerItems(of: returning, on: device))
    } catch {
      session.note(
        HostileText.shown(
          "Items that are on \(device.name) but not in \(name) cannot be listed: \(error.reason). Try: \(error.call)."))
      return Maker(name: device.name, returning: returning, items: nil)
    }
  }

  private func isClaimed(by device: DeviceSession) -> Bool {
    device.record.udid.lowercased() == archive.device.identifier?.lowercased()
  }

  private func opened(
    _ opened: OpenedArchive, with key: borrowing ArchiveKey, _ device: DeviceSession
  ) throws -> OpenedArchive {
    let deviceKey: DeviceKey? = try device.deviceKey()
    do throws(ArchivedKeychainError) {
      return try OpenedArchive(opened, key: key, deviceKey: deviceKey, for: .reading)
    } catch {
      throw CommandFailure(archive: error, name: name)
    }
  }

  /// The device that the user says made the archive: its key proves it, or where none of the items needs one, its
  /// identifier says the same as the archive's.
  private func proven(
    _ device: DeviceSession, _ opened: OpenedArchive, with key: borrowing ArchiveKey
  ) throws -> Maker {
    let returning = try self.opened(opened, with: key, device)
    let isClaimed = isClaimed(by: device)
    guard returning.isSameDevice ?? isClaimed else {
      let fact =
        returning.isSameDevice == false
        ? "its key decrypts none of the items that need a device's hardware key"
        : "its identifier is \(device.record.udid); the backup names \(archive.device.identifier ?? "none")"
      throw CommandFailure.usage(
        "\(device.name) did not make \(name)", why: fact, try: "the source device, or leave --source out")
    }
    do throws(MigrationError) {
      return Maker(name: device.name, returning: returning, items: try MakerItems(of: returning, on: device))
    } catch {
      throw CommandFailure(error, device: device.name)
    }
  }
}
