import Files
import SystemPackage

extension BackupFolder {
  /// What lies in a backup's folder and is no part of a backup: what a person put there, and would lose with the backup.
  /// What file browsers leave behind counts for nothing.
  ///
  /// - Parameters:
  ///   - path: The folder of a backup.
  ///   - limit: How many to name at most.
  /// - Returns: Paths in the folder, in order.
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
  /// As `BackupFolder.foreignFiles`, of a folder that is open.
  func foreignFiles(
    in folder: borrowing Descriptor, atMost limit: Int
  ) throws(Errno) -> [String] {
    var foreign: [String] = []
    for entry in try names(in: folder) {
      let name = entry.text
      let isFolder = try status(of: entry, in: folder)?.kind == .directory
      if isFolder, BackupPath.isPayloadFolder(name) {
        let payloads = try openDirectory(entry, in: folder)
        for payload in try names(in: payloads) {
          let path = "\(name)/\(payload.text)"
          let isOwn = BackupPath.isOwn(path.split(separator: "/")) || Self.isLitter(payload.text)
          let isFolder = try status(of: payload, in: payloads)?.kind == .directory
          if isFolder || !isOwn { foreign.append(path) }
        }
      } else if isFolder || !(BackupPath.isOwn([name[...]]) || Self.isLitter(name)) {
        foreign.append(name)
      }
    }
    return Array(foreign.sorted().prefix(limit))
  }

  /// What Finder and Explorer write into every folder that they show, and what is left of a manifest of ours that was
  /// being written.
  private static func isLitter(_ name: String) -> Bool {
    [".DS_Store", "Thumbs.db", "desktop.ini"].contains(name) || name.hasPrefix("._")
      || PlacePath.isTemporaryManifest(name)
  }
}
