import Basics
import KeychainFormats
import SystemPackage

/// What a run that was killed left beside a backup: the part of a new one that it had written, or the old one that it
/// had replaced and not removed yet.
public struct BackupLeftover: Sendable, Hashable {
  /// As far as that can be told without reading it whole.
  public enum Content: Sendable {
    /// The files of the backup, for everybody to read.
    case plain
    /// Its manifest says that it has a password.
    case encrypted
    /// Its manifest is not there, or it is one large file.
    case unknown
  }

  /// Where it stands.
  public let path: String
  /// Whether what it holds is for everybody to read.
  public let content: Content
  /// Whether the next write of the backup removes it. A backup that was put aside by its name is not removed.
  public let isRemovedByNextWrite: Bool

  /// A leftover in one file is opened up to this size.
  static let maximumOpenedByteCount: Int64 = 16 << 20

  /// All beside a backup, by name: of this user, and of no run that is still at work. What cannot be read is passed over.
  ///
  /// - Parameter path: The backup's, without links: they stand beside it.
  public static func all(beside path: String) -> [BackupLeftover] { all(beside: path, system: .real) }

  static func all(beside path: String, system: FileSystem) -> [BackupLeftover] {
    guard let place = PlacePath(path) else { return [] }
    var found: [BackupLeftover] = []
    do throws(Errno) {
      let parent = try system.openDirectory(place.parent)
      try system.forEachLeftover(of: place, in: parent) { leftover, _ in
        let path = place.parent == "/" ? "/\(leftover.name)" : "\(place.parent)/\(leftover.name)"
        found.append(
          BackupLeftover(
            path: path,
            content: leftover.status.kind == .directory
              ? content(ofDirectory: path, system) : content(ofFile: path, leftover.status, system),
            isRemovedByNextWrite: place.isTemporarySibling(leftover.name)))
      }
    } catch {
      return []
    }
    return found.sorted { $0.path < $1.path }
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
