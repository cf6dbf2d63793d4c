import KeyhaulKit

extension ArchiveUnlocker {
  /// An archive opened for a new device and for its own one.
  struct OpenedForFutures {
    let archive: OpenedArchive
    let futures: MigrationFutures
    /// Whose hardware key was tried; `nil` where none was.
    let hardware: String?
  }

  /// Opens the archive as a new device would, and as the device that made it where its hardware key is available: given by
  /// the user, or in a device.
  ///
  /// - Parameters:
  ///   - key: That of the password.
  ///   - hardware: The hardware key that the user gave, or one that may be the maker's.
  ///   - named: The device that the user says made it.
  func openForFutures(
    with key: borrowing ArchiveKey, _ hardware: HardwareKey?, maker named: DeviceSession?
  ) throws -> OpenedForFutures {
    let opened = try open(with: key, nil, for: .planning)
    let maker = try maker(of: opened, named: named, orTarget: nil, with: key)
    var (returning, name) = (maker?.returning, maker?.name)
    if let given = fitting(hardware, with: key), !given.isGuess {
      returning = try? OpenedArchive(archive, key: key, deviceKey: given.key(), for: .planning)
      name = "the device whose key was given"
    }
    do throws(MigrationError) {
      return OpenedForFutures(
        archive: opened, futures: try MigrationFutures(of: opened, returning: returning, maker: maker?.items),
        hardware: name)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(self.name)")
    }
  }
}
