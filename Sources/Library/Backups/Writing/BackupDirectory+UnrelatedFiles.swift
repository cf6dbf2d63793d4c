package import Basics
import KeychainFormats
import SystemPackage

extension BackupDirectory {
  /// Returns the files in a backup's directory that do not belong to the backup, and would be lost if the directory
  /// were replaced. By-products such as the metadata of Finder and Explorer are ignored.
  ///
  /// - Parameters:
  ///   - path: The directory of a backup.
  ///   - limit: The maximum number of files.
  /// - Returns: The paths in the directory, sorted.
  /// - Throws: `.notFound` or `.unreadable`.
  package static func unrelatedFiles(
    in path: String, atMost limit: Int = 10
  ) throws(KeyhaulError) -> [String] {
    let system = FileSystem.real
    do throws(Errno) {
      return try system.unrelatedFiles(in: try system.openDirectory(path), atMost: limit)
    } catch {
      throw KeyhaulError(
        error.isNotFound ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)", errno: error)
    }
  }
}

extension FileSystem {
  /// Returns the unrelated files of an open directory, as `BackupDirectory.unrelatedFiles` does.
  func unrelatedFiles(
    in directory: borrowing OwnedFileDescriptor, atMost limit: Int
  ) throws(Errno) -> [String] {
    var unrelatedPaths: [String] = []
    for name in try names(in: directory) {
      let isDirectory = try status(of: name, in: directory)?.kind == .directory
      if isDirectory, BackupPath.isPayloadDirectory(name.text) {
        let payloadDirectory = try openDirectory(name, in: directory)
        for payload in try names(in: payloadDirectory) {
          let isDirectory = try status(of: payload, in: payloadDirectory)?.kind == .directory
          if Self.isUnrelated([name.text, payload.text], isDirectory: isDirectory) {
            unrelatedPaths.append("\(name.text)/\(payload.text)")
          }
        }
      } else if Self.isUnrelated([name.text], isDirectory: isDirectory) {
        unrelatedPaths.append(name.text)
      }
    }
    return Array(unrelatedPaths.sorted().prefix(limit))
  }

  /// Returns whether an entry other than a payload directory does not belong to the backup. A backup has no other
  /// directories.
  ///
  /// - Parameter components: The components of the entry's path in the backup.
  private static func isUnrelated(_ components: [String], isDirectory: Bool) -> Bool {
    if isDirectory { return true }
    return !BackupPath.isBackupFile(components.map { $0[...] }) && !isSystemClutter(components[components.count - 1])
  }

  /// Returns whether a file of this name is a by-product, not user data: metadata of Finder or Explorer, SQLite's
  /// shared-memory file of the manifest, or a temporary manifest or seal.
  package static func isSystemClutter(_ name: String) -> Bool {
    [".DS_Store", "Manifest.db-shm", "Thumbs.db", "desktop.ini"].contains(name) || name.hasPrefix("._")
      || DestinationPath.isTemporaryPart(name)
  }
}
