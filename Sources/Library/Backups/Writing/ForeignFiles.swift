package import Basics
import KeychainFormats
import SystemPackage

extension BackupDirectory {
  /// What lies in a backup's directory and is not part of a backup: what a person put there, and would lose with the
  /// backup. What file browsers leave behind counts for nothing.
  ///
  /// - Parameters:
  ///   - path: The directory of a backup.
  ///   - limit: How many to name at most.
  /// - Returns: Paths in the directory, in order.
  /// - Throws: `.notFound` and `.unreadable`.
  package static func foreignFiles(
    in path: String, atMost limit: Int = 10
  ) throws(KeyhaulError) -> [String] {
    let system = FileSystem.real
    do throws(Errno) {
      return try system.foreignFiles(in: try system.openDirectory(path), atMost: limit)
    } catch {
      throw KeyhaulError(
        error.isNotFound ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)", errno: error)
    }
  }
}

extension FileSystem {
  /// As `BackupDirectory.foreignFiles`, of a directory that is open.
  func foreignFiles(
    in directory: borrowing OwnedFileDescriptor, atMost limit: Int
  ) throws(Errno) -> [String] {
    var foreign: [String] = []
    for entry in try names(in: directory) {
      let name = entry.text
      let isDirectory = try status(of: entry, in: directory)?.kind == .directory
      if isDirectory, BackupPath.isPayloadDirectory(name) {
        let payloads = try openDirectory(entry, in: directory)
        for payload in try names(in: payloads) {
          let path = "\(name)/\(payload.text)"
          let isOwn = BackupPath.isOwn(path.split(separator: "/")) || Self.isSystemClutter(payload.text)
          let isDirectory = try status(of: payload, in: payloads)?.kind == .directory
          if isDirectory || !isOwn { foreign.append(path) }
        }
      } else if isDirectory || !(BackupPath.isOwn([name[...]]) || Self.isSystemClutter(name)) {
        foreign.append(name)
      }
    }
    return Array(foreign.sorted().prefix(limit))
  }

  /// What Finder and Explorer write into every directory that they show, SQLite's index of a log, which it makes again, and
  /// what is left of a manifest of ours that was being written.
  package static func isSystemClutter(_ name: String) -> Bool {
    [".DS_Store", "Manifest.db-shm", "Thumbs.db", "desktop.ini"].contains(name) || name.hasPrefix("._")
      || DestinationPath.isTemporaryPart(name)
  }
}

/// What a run that was killed left beside a backup: the part of a new one that it had written, or the old one that it
/// had replaced and not removed yet.
package struct BackupLeftover: Sendable, Hashable {
  /// As far as that can be told without reading it whole.
  package enum Content: Sendable {
    /// The files of the backup, for everybody to read.
    case plain
    /// Its manifest says that it has a password.
    case encrypted
    /// Its manifest is not there, or it is one large file.
    case unknown
  }

  /// Where it stands.
  package let path: String
  /// Whether what it holds is for everybody to read.
  package let content: Content
  /// Whether the next write of the backup removes it. A backup that was put aside by its name is not removed.
  package let isRemovedByNextWrite: Bool

  /// A leftover in one file is opened up to this size.
  static let maximumOpenedByteCount: Int64 = 16 << 20

  /// All beside a backup, by name: of this user, and of no run that is still at work. What cannot be read is passed over.
  ///
  /// - Parameter path: The backup's, without links: they stand beside it.
  package static func all(beside path: String) -> [BackupLeftover] { all(beside: path, system: .real) }

  static func all(beside path: String, system: FileSystem) -> [BackupLeftover] {
    guard let place = DestinationPath(path) else { return [] }
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
