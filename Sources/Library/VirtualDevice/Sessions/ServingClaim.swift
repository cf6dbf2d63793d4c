package import Basics
package import KeychainCrypto
import SystemPackage

/// A process's exclusive claim to serve a device to backup clients, with the files that only the server uses. Other
/// processes can still use the device.
package final class ServingClaim: Sendable {
  private let device: VirtualDevice
  private let lock: FileLock

  fileprivate init(_ device: VirtualDevice, _ lock: consuming FileLock) {
    self.device = device
    self.lock = lock
  }

  private var files: DeviceFiles { device.environment.files }
  private func path(of file: DeviceFile) -> String { file.path(in: device.directory) }

  /// Returns the stored pairings, or `nil` if there are none.
  ///
  /// - Throws: `.deviceDamaged` if the file is too long; `.deviceIO`.
  package func pairings() throws(KeyhaulError) -> [UInt8]? {
    try files.read(path(of: .pairings), .pairings)
  }

  /// Replaces the stored pairings.
  ///
  /// - Throws: `.deviceIO`.
  package func replacePairings(_ bytes: [UInt8]) throws(KeyhaulError) {
    try files.replace(path(of: .pairings), bytes)
  }

  /// Returns the password for backups that clients make, or `nil` if these backups are not encrypted.
  ///
  /// - Throws: `.deviceDamaged` if the file is too long; `.deviceIO`.
  package func backupPassword() throws(KeyhaulError) -> Secret? {
    guard var bytes = try files.read(path(of: .backupPassword), .backupPassword), !bytes.isEmpty else { return nil }
    defer { bytes.withUnsafeMutableBytes { wipe($0) } }
    return Secret(copying: bytes)
  }

  /// Replaces the password for backups that clients make, or removes it if it is `nil`.
  ///
  /// - Throws: `.deviceIO`.
  package func replaceBackupPassword(_ password: borrowing Secret?) throws(KeyhaulError) {
    switch password {
    case .none: try files.remove(path(of: .backupPassword))
    case .some(let password):
      var bytes = password.withBytes { Array($0) }
      defer { bytes.withUnsafeMutableBytes { wipe($0) } }
      try files.replace(path(of: .backupPassword), bytes)
    }
  }

  /// Creates an empty folder for a client's backup, and removes a folder that a killed process has left.
  ///
  /// - Returns: The path of the folder.
  /// - Throws: `.deviceIO`.
  package func makeStagingDirectory() throws(KeyhaulError) -> String {
    let path = stagingPath
    try files.removeTree(path)
    try files.makeDirectory(path)
    return path
  }

  /// Removes the folder of a client's backup.
  package func removeStagingDirectory() { try? files.removeTree(stagingPath) }

  private var stagingPath: String { "\(device.directory)/\(DeviceFile.stagingName)" }
}

extension VirtualDevice {
  /// Claims the device for a server. Only one process at a time serves a device.
  ///
  /// - Throws: `.deviceBusy` if another process serves it; `.deviceIO`.
  package func claimForServing() throws(KeyhaulError) -> ServingClaim {
    let files = environment.files
    let path = DeviceFile.serving.path(in: directory)
    do throws(Errno) {
      guard let lock = try files.system.lock(try files.system.openLockFile(path), .exclusive) else {
        throw Errno.wouldBlock
      }
      let claim = ServingClaim(self, lock)
      claim.removeStagingDirectory()
      return claim
    } catch {
      guard error == .wouldBlock else { throw DeviceFiles.failure("lock", path, error) }
      throw KeyhaulError(.deviceBusy, name.text, "another process serves it")
    }
  }

  /// Removes the pairings and the backup password, for example when the device is erased.
  func forgetPairings() throws(KeyhaulError) {
    let files = environment.files
    try files.remove(DeviceFile.pairings.path(in: directory))
    try files.remove(DeviceFile.backupPassword.path(in: directory))
  }
}
