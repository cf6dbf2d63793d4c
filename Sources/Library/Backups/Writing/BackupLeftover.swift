import Basics
import KeychainFormats
import SystemPackage

/// A leftover of an interrupted run next to a backup: an incomplete new backup, or a replaced one.
package struct BackupLeftover: Sendable, Hashable {
  /// The protection of the content, determined without reading all of it.
  package enum Content: Sendable {
    /// Unencrypted files.
    case plain
    /// A backup whose Manifest.plist says that it is encrypted.
    case encrypted
    /// A backup without a manifest, or a large container file.
    case unknown
  }

  /// The path of the leftover.
  package let path: String
  /// The protection of the content.
  package let content: Content
  /// Whether the next write of the backup removes the leftover. An archived copy is not removed.
  package let isRemovedByNextWrite: Bool

  /// The maximum size of a container file that is opened to determine its protection.
  static let maximumOpenedByteCount: Int64 = 16 << 20

  /// Returns this user's leftovers next to a backup, sorted by name. Files of running processes and unreadable entries
  /// are skipped.
  ///
  /// - Parameter path: The path of the backup, with symbolic links resolved.
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
      let isEncrypted = manifest.isEncrypted ?? (manifest.manifestKey != nil)
      return isEncrypted ? .encrypted : .plain
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
