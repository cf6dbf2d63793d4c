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

  func source(
    _ argument: String, storage: ManifestStorage = .temporaryFile
  ) throws(CommandFailure) -> SourceArgument {
    switch try resolver().deviceOrArchive(argument) {
    case .device(_, let folder): .device(folder: folder.contains("/") ? folder : "./\(folder)")
    case .archive, .standardInput: .archive(try openArchive(argument, storage: storage))
    }
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
    let maker = maker(of: named.archive, besides: device)
    guard let device else {
      return OpenedForDevice(
        archive: try unlock(named, flags, deviceKey: maker?.key(), accepting: opening), maker: maker?.name)
    }
    let key = try device.deviceKey()
    return OpenedForDevice(
      archive: try unlock(named, flags, deviceKey: key, makerKey: maker?.key(), accepting: opening),
      maker: maker?.name)
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
