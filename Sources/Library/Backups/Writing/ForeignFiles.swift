import Basics
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
  public static func foreignFiles(
    in path: String, atMost limit: Int = 10
  ) throws(BackupArchiveError) -> [String] {
    let system = FileSystem.real
    do throws(Errno) {
      return try system.foreignFiles(in: try system.openDirectory(path), atMost: limit)
    } catch {
      throw BackupArchiveError(error.isAbsence ? .notFound : .unreadable, "\(quoted(path)): \(error.reason)")
    }
  }
}

extension FileSystem {
  /// As `BackupDirectory.foreignFiles`, of a directory that is open.
  func foreignFiles(
    in directory: borrowing Descriptor, atMost limit: Int
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
      || PlacePath.isTemporaryPart(name)
  }
}
