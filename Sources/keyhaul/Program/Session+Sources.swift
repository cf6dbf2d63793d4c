import ArchivedKeychain
import BackupArchive
import DataProtection
import KeychainFormats
import Migration
import VirtualDevice

extension Session {
  /// What a verb is given that takes a device as well as an archive.
  enum SourceArgument {
    case archive(NamedArchive)
    /// The path of its folder.
    case device(folder: String)
  }

  /// The device that made an archive, as far as it is at hand.
  struct Maker: ~Copyable {
    let name: String
    let folder: String
    let key: DeviceKey
  }

  func source(_ argument: String) throws(CommandFailure) -> SourceArgument {
    switch try resolver().deviceOrArchive(argument) {
    case .device(_, let folder): .device(folder: folder.contains("/") ? folder : "./\(folder)")
    case .archive, .standardInput: .archive(try openArchive(argument))
    }
  }

  /// The device of the home folder that an archive says it was made by, and its hardware key.
  ///
  /// The key is tried on items for their names alone: nothing is decided by an identifier. A device that is in use or
  /// damaged is passed over.
  ///
  /// - Parameter target: The device that the items should go to, whose own key is tried anyway.
  func maker(
    of archive: BackupArchive, besides target: DeviceSession?
  ) -> Maker? {
    guard let udid = archive.device.identifier, udid != target?.record.udid else { return nil }
    guard let home = try? deviceHome(), let devices = try? home.devices() else { return nil }
    for device in devices {
      guard let summary = try? device.summary(verb: "keyhaul"), summary.record.udid == udid else { continue }
      guard let session = try? device.openSession(.reading, verb: "keyhaul") else { continue }
      defer { session.end() }
      guard let key = try? session.deviceKey() else { continue }
      return Maker(name: device.name.text, folder: device.folder, key: key)
    }
    return nil
  }
}

extension Session {
  /// An archive opened for a device, and the device that made it, where its key was at hand.
  struct OpenedForDevice {
    let archive: OpenedArchive
    let maker: String?
  }

  /// Unlocks an archive for a device: with its password, with the device's hardware key, and for the names of what that
  /// one does not open with the key of the device that made it.
  ///
  /// - Parameter device: `nil` where the archive is only looked at: then the maker's key takes its place.
  func unlock(
    _ named: NamedArchive, _ flags: PasswordFlags, onto device: DeviceSession?, opening: RoundLimitOptions
  ) throws -> OpenedForDevice {
    switch maker(of: named.archive, besides: device) {
    case .some(let maker):
      try unlock(named, flags, onto: device, makerKey: maker.key.copy(), maker: maker.name, opening: opening)
    case .none: try unlock(named, flags, onto: device, makerKey: nil, maker: nil, opening: opening)
    }
  }

  private func unlock(
    _ named: NamedArchive, _ flags: PasswordFlags, onto device: DeviceSession?, makerKey: consuming DeviceKey?,
    maker: String?, opening: RoundLimitOptions
  ) throws -> OpenedForDevice {
    guard let device else {
      return OpenedForDevice(
        archive: try unlock(named, flags, deviceKey: makerKey, accepting: opening), maker: maker)
    }
    let key = try device.deviceKey()
    return OpenedForDevice(
      archive: try unlock(named, flags, deviceKey: key, makerKey: makerKey, accepting: opening), maker: maker)
  }

  func plan(
    _ opened: OpenedArchive, of named: NamedArchive, onto device: DeviceSession, policy: ExistingItemPolicy,
    only indexes: Set<Int>? = nil
  ) throws(CommandFailure) -> MigrationPlan {
    do throws(MigrationError) {
      return try Restorer.plan(opened, onto: device, policy: policy, only: indexes)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(device.name)")
    }
  }
}
