package import Basics
import KeychainFormats
import SystemPackage

extension BackupDirectory {
  /// Returns the files in a backup's directory that are not part of it, and that a user would lose with it. Files of
  /// file browsers are ignored.
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
  /// Returns the unrelated files of an open directory, as `BackupDirectory.unrelatedFiles`.
  func unrelatedFiles(
    in directory: borrowing OwnedFileDescriptor, atMost limit: Int
  ) throws(Errno) -> [String] {
    var unrelated: [String] = []
    for entry in try names(in: directory) {
      let name = entry.text
      let isDirectory = try status(of: entry, in: directory)?.kind == .directory
      if isDirectory, BackupPath.isPayloadDirectory(name) {
        let payloads = try openDirectory(entry, in: directory)
        for payload in try names(in: payloads) {
          let path = "\(name)/\(payload.text)"
          let isIgnored = BackupPath.isBackupFile(path.split(separator: "/")) || Self.isSystemClutter(payload.text)
          let isDirectory = try status(of: payload, in: payloads)?.kind == .directory
          if isDirectory || !isIgnored { unrelated.append(path) }
        }
      } else if isDirectory || !(BackupPath.isBackupFile([name[...]]) || Self.isSystemClutter(name)) {
        unrelated.append(name)
      }
    }
    return Array(unrelated.sorted().prefix(limit))
  }

  /// Returns whether Finder or Explorer writes a file of this name to directories, or it is SQLite's index of a log or
  /// a temporary manifest.
  package static func isSystemClutter(_ name: String) -> Bool {
    [".DS_Store", "Manifest.db-shm", "Thumbs.db", "desktop.ini"].contains(name) || name.hasPrefix("._")
      || DestinationPath.isTemporaryPart(name)
  }
}

/// A leftover of an interrupted run next to a backup: an incomplete new backup, or a replaced one.
package struct BackupLeftover: Sendable, Hashable {
  /// The protection of the content, determined without reading all of it.
  package enum Content: Sendable {
    /// Unencrypted files.
    case plain
    /// A backup whose manifest claims a password.
    case encrypted
    /// A backup without a manifest, or a large container file.
    case unknown
  }

  /// The path.
  package let path: String
  /// The protection of the content.
  package let content: Content
  /// Whether the next write of the backup removes it. An archived copy is not removed.
  package let isRemovedByNextWrite: Bool

  /// The maximum size of a container file that is opened.
  static let maximumOpenedByteCount: Int64 = 16 << 20

  /// Returns this user's leftovers next to a backup, sorted by name. Files of running processes and unreadable entries
  /// are skipped.
  ///
  /// - Parameter path: The path of the backup without links.
  package static func all(beside path: String) -> [BackupLeftover] { all(beside: path, system: .real) }

  static func all(beside path: String, system: FileSystem) -> [BackupLeftover] {
    guard let destination = DestinationPath(path) else { return [] }
    var leftovers: [BackupLeftover] = []
    do throws(Errno) {
      let parent = try system.openDirectory(destination.parent)
      try system.forEachLeftover(of: destination, in: parent) { leftover, _ in
        let path = destination.parent == "/" ? "/\(leftover.name)" : "\(destination.parent)/\(leftover.name)"
        leftovers.append(
          BackupLeftover(
            path: path,
            content: leftover.status.kind == .directory
              ? content(ofDirectory: path, system) : content(ofFile: path, leftover.status, system),
            isRemovedByNextWrite: destination.isTemporarySibling(leftover.name)))
      }
    } catch {
      return []
    }
    return leftovers.sorted { $0.path < $1.path }
  }

  private static func content(ofDirectory path: String, _ system: FileSystem) -> Content {
    do {
      let source = DirectorySource(system: system, limits: .standard, storage: .memory)
      let propertyLists = try source.readPropertyLists(try system.openDirectory(path))
      guard let bytes = propertyLists[.manifest] else { return .unknown }
      let manifest = try BackupManifest(parsing: bytes)
      return manifest.isEncrypted ?? (manifest.manifestKey != nil) ? .encrypted : .plain
    } catch {
      return .unknown
    }
  }

  private static func content(ofFile path: String, _ status: FileStatus, _ system: FileSystem) -> Content {
    guard status.byteCount <= maximumOpenedByteCount,
      let archive = try? BackupArchive.open(.path(path), limits: .standard, storage: .memory, system: system)
    else { return .unknown }
    return archive.areFilesEncrypted ? .encrypted : .plain
  }
}
