import Basics
import SystemPackage
import VirtualDevice

/// A private folder of the device for assembling or reading a client's backup. The folder is deleted when the last
/// reference to this object is released.
final class StagingFolder {
  private let claim: ServingClaim
  /// The folder's path.
  let path: String
  private let system = FileSystem.real

  /// Creates the device's staging folder.
  ///
  /// - Throws: `.failed` if the folder cannot be created.
  init(of device: ServedDevice) throws(BackupServiceError) {
    claim = device.claim
    do throws(KeyhaulError) {
      path = try device.claim.makeStagingDirectory()
    } catch {
      throw .failed(BackupFailure(error))
    }
  }

  deinit { claim.removeStagingDirectory() }

  private func translatingErrno<Value: ~Copyable>(
    _ body: () throws(Errno) -> Value
  ) throws(BackupServiceError) -> Value {
    do throws(Errno) { return try body() } catch {
      throw .failed(error.isDiskFull ? .noSpace : .cannotWrite, "the device's folder: \(error.reason)")
    }
  }

  /// Creates a directory with its parent directories.
  func makeDirectory(_ name: String) throws(BackupServiceError) {
    try translatingErrno { () throws(Errno) in try system.makeDirectories("\(path)/\(name)") }
  }

  /// Creates a file from bytes that a client sends.
  ///
  /// - Parameters:
  ///   - name: The path in the folder. Its directory must exist.
  ///   - fill: Passes the bytes to the closure that it receives. Returns `false` if the client does not have the file.
  /// - Returns: The result of `fill`. If it is `false`, there is no file.
  func makeFile(
    _ name: String,
    filledBy fill: (([UInt8]) throws(BackupServiceError) -> Void) throws(BackupServiceError) -> Bool
  ) throws(BackupServiceError) -> Bool {
    let filePath = "\(path)/\(name)"
    let file = try translatingErrno { () throws(Errno) in try system.createFile(filePath) }
    let raw = file.raw
    let clientHasFile = try fill { (bytes) throws(BackupServiceError) in
      try translatingErrno { () throws(Errno) in try system.writeAll(bytes, to: raw) }
    }
    if !clientHasFile { try translatingErrno { () throws(Errno) in try system.remove(filePath) } }
    return clientHasFile
  }

  /// Removes a file of the folder.
  func remove(_ name: String) throws(BackupServiceError) {
    try translatingErrno { () throws(Errno) in try system.remove("\(path)/\(name)") }
  }

  /// Returns the files in a directory of the folder, sorted by name, and its subdirectories.
  func files(in name: String) throws(BackupServiceError) -> (files: [StagedFile], directories: [String]) {
    let directory = "\(path)/\(name)"
    let names = try translatingErrno { () throws(Errno) in
      try system.names(in: try system.openDirectory(directory)).map(\.text).sorted()
    }
    var files: [StagedFile] = []
    var directories: [String] = []
    for name in names {
      guard let status = try translatingErrno({ () throws(Errno) in try system.status(of: "\(directory)/\(name)") })
      else {
        continue
      }
      switch status.kind {
      case .file: files.append(StagedFile(name: name, path: "\(directory)/\(name)", byteCount: status.byteCount))
      case .directory: directories.append(name)
      case .link, .pipe, .other: continue
      }
    }
    return (files, directories)
  }
}
