import ArchivedKeychain
import BackupArchive
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

  /// - Parameter isRestored: As `openArchive` takes it.
  func source(
    _ argument: String, storage: ManifestStorage = .temporaryFile, isRestored: Bool = false
  ) throws(CommandFailure) -> SourceArgument {
    switch try resolver().deviceOrArchive(argument) {
    case .device(_, let folder): .device(folder: folder.contains("/") ? folder : "./\(folder)")
    case .archive, .standardInput: .archive(try openArchive(argument, storage: storage, isRestored: isRestored))
    }
  }
}

extension Session {
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
