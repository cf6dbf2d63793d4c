package import Basics
import SystemPackage

extension BackupInstaller {
  /// The entry that a destination has before a backup is placed there.
  private enum ExistingEntry {
    case nothing
    case emptyDirectory
    /// A directory with a manifest.
    case backup
    /// A directory with other files.
    case otherDirectory
    /// A file, or any other entry that is not a directory.
    case file
  }

  /// The destination of a backup that is written as a directory.
  private struct DirectoryTarget {
    let destination: DestinationPath
    /// The path as it is reported to the user.
    let path: String
    let existingEntry: ExistingEntry
  }

  /// Writes a backup to a temporary directory, checks it, and renames the directory to its destination.
  ///
  /// - Parameters:
  ///   - backup: The backup.
  ///   - path: The destination. If it is a directory with other files, the backup gets its own directory in it.
  ///   - replace: Whether to replace an existing backup.
  ///   - access: The owner and permissions that the new files keep from the files of the replaced backup.
  /// - Throws: `.occupied` if the destination cannot be replaced; otherwise the errors of reading and writing.
  package func placeDirectory(
    _ backup: OutgoingBackup, at path: String, replace: Bool, keeping access: PreservedAccess = .none
  ) throws(KeyhaulError) -> InstalledBackup {
    do throws(KeyhaulError) {
      let target = try resolve(path, named: backup.directoryName)
      let parent = try openDirectory(target.destination.parent)
      try checkIsReplaceable(target, replace: replace, in: parent)
      removeLeftovers(of: target.destination, in: parent)
      let temporaryName = target.destination.sibling("tmp")
      do throws(KeyhaulError) {
        return try placeDirectory(backup, at: target, in: parent, temporaryName: temporaryName, keeping: access)
      } catch {
        system.discardTree(temporaryName, in: parent)
        throw error
      }
    } catch {
      throw explain(error, path: path, needs: backup.byteCount)
    }
  }

  private func placeDirectory(
    _ backup: OutgoingBackup, at target: DirectoryTarget, in parent: borrowing OwnedFileDescriptor,
    temporaryName: String, keeping access: PreservedAccess
  ) throws(KeyhaulError) -> InstalledBackup {
    let destination = target.destination
    let replaced = access == .none ? nil : try replacedDirectory(at: target, in: parent)
    let sink = try fill(
      temporaryName, in: parent, with: backup, replacing: replaced.map { ReplacedFiles($0, access) })
    try backup.check("\(destination.parent)/\(temporaryName)")
    // With `.all`, the sink itself keeps the permissions of the replaced directory.
    if access != .all { try copyPermissions(from: target, in: parent, to: sink) }
    let leftover = try install(temporaryName, at: target, in: parent)
    // While the sink exists, its descriptor shows other processes that the temporary directory is in use.
    withExtendedLifetime(sink) {}
    return InstalledBackup(
      path: target.path, byteCount: backup.byteCount, isDurable: syncEntries(of: parent),
      leftover: leftover.map { "\(destination.parent)/\($0)" })
  }

  /// Checks that `placeDirectory` would accept a destination, without writing.
  ///
  /// - Throws: `.occupied` if it would not.
  func requirePlaceableDirectory(at path: String, named directoryName: String?, replace: Bool) throws(KeyhaulError) {
    let target = try resolve(path, named: directoryName)
    try checkIsReplaceable(target, replace: replace, in: try openDirectory(target.destination.parent))
  }

  /// Checks that the entry at a destination can be replaced.
  ///
  /// - Throws: `.occupied` if it cannot.
  private func checkIsReplaceable(
    _ target: DirectoryTarget, replace: Bool, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) {
    let destination = target.destination
    switch target.existingEntry {
    case .backup where !replace: throw KeyhaulError(.occupied, "\(quoted(destination.name)) already contains a backup")
    case .backup: try rejectUnrelatedFiles(in: destination, parent)
    case .otherDirectory: throw KeyhaulError(.occupied, "\(quoted(destination.name)) contains other files")
    case .file: throw KeyhaulError(.occupied, "\(quoted(destination.name)) is not a folder")
    case .nothing, .emptyDirectory: break
    }
  }

  /// Returns the target of a backup: the given path, or a directory in it if the path is a directory with other files.
  ///
  /// - Parameter directoryName: The name of the inner directory, or `nil` if none may be created.
  /// - Throws: `.occupied` if an inner directory is needed but its name is missing or invalid.
  private func resolve(_ path: String, named directoryName: String?) throws(KeyhaulError) -> DirectoryTarget {
    if let destination = DestinationPath(path) {
      let entry = try existingEntry(at: destination)
      if entry != .otherDirectory {
        return DirectoryTarget(destination: destination, path: path, existingEntry: entry)
      }
    }
    guard let directoryName else { throw KeyhaulError(.occupied, "\(quoted(path)) contains other files") }
    let innerPath = (path.hasSuffix("/") ? path : path + "/") + directoryName
    guard let destination = DestinationPath(innerPath), destination.name == directoryName else {
      throw KeyhaulError(.occupied, "\(quoted(directoryName)) is not a valid folder name")
    }
    return DirectoryTarget(
      destination: destination, path: innerPath, existingEntry: try existingEntry(at: destination))
  }

  private func existingEntry(at destination: DestinationPath) throws(KeyhaulError) -> ExistingEntry {
    let parent = try openDirectory(destination.parent)
    do throws(Errno) {
      guard let status = try system.status(of: destination.name.systemName, in: parent) else { return .nothing }
      guard status.kind == .directory else { return .file }
      let directory = try system.openDirectory(destination.name.systemName, in: parent)
      if try system.status(of: MetadataFile.manifest.path.systemName, in: directory) != nil { return .backup }
      return try system.names(in: directory).isEmpty ? .emptyDirectory : .otherDirectory
    } catch {
      throw .writing(error)
    }
  }

  /// Checks that an existing backup's directory contains only files of a backup, because replacing it deletes them all.
  ///
  /// - Throws: `.occupied` if it contains another file.
  private func rejectUnrelatedFiles(
    in destination: DestinationPath, _ parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) {
    let unrelated = try systemCall { () throws(Errno) in
      try system.unrelatedFiles(in: try system.openDirectory(destination.name.systemName, in: parent), atMost: 1)
    }
    guard let first = unrelated.first else { return }
    throw KeyhaulError(.occupied, "\(quoted(destination.name)) holds \(quoted(first)), which is not part of a backup")
  }

  /// Gives the new directory the permissions of the directory that it replaces, if there is one.
  private func copyPermissions(
    from target: DirectoryTarget, in parent: borrowing OwnedFileDescriptor, to sink: DirectorySink
  ) throws(KeyhaulError) {
    guard target.existingEntry == .emptyDirectory || target.existingEntry == .backup else { return }
    let name = target.destination.name.systemName
    try systemCall { () throws(Errno) in
      guard let status = try system.status(of: name, in: parent) else { return }
      try sink.setPermissions(status.permissions)
    }
  }

  /// Opens the directory of the backup to replace. Returns `nil` if there is none.
  private func replacedDirectory(
    at target: DirectoryTarget, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> DirectoryHandle? {
    guard target.existingEntry == .backup else { return nil }
    let name = target.destination.name.systemName
    return DirectoryHandle(try systemCall { () throws(Errno) in try system.openDirectory(name, in: parent) })
  }

  /// Creates a directory and writes a backup into it.
  ///
  /// - Parameter replaced: The files whose owner and permissions the new files keep.
  /// - Returns: The sink, which claims the directory as long as it exists.
  private func fill(
    _ name: String, in parent: borrowing OwnedFileDescriptor, with backup: OutgoingBackup,
    replacing replaced: ReplacedFiles?
  ) throws(KeyhaulError) -> DirectorySink {
    let sink = try systemCall { () throws(Errno) in
      try system.makeDirectory(name, in: parent)
      let directory = try system.openDirectory(name.systemName, in: parent)
      return DirectorySink(directory, replacing: replaced, system: system)
    }
    try backup.send(sink)
    try systemCall { () throws(Errno) in try sink.finish() }
    return sink
  }

  /// Renames a temporary directory to its destination, and removes the replaced backup.
  ///
  /// - Returns: The new name of a replaced backup that could not be removed, or `nil` if there is none.
  private func install(
    _ temporaryName: String, at target: DirectoryTarget, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> String? {
    let destination = target.destination
    guard target.existingEntry == .backup else {
      // If the destination is an empty directory, the system replaces it in one step.
      do throws(Errno) {
        try system.rename(temporaryName, to: destination.name, in: parent)
      } catch {
        guard [.directoryNotEmpty, .fileExists, .notDirectory].contains(error) else { throw .writing(error) }
        throw KeyhaulError(.occupied, "another process has created \(quoted(destination.name)) in the meantime")
      }
      return nil
    }
    do throws(Errno) {
      try system.exchange(temporaryName, destination.name, in: parent)
    } catch {
      return try installInTwoSteps(temporaryName, at: destination, in: parent)
    }
    // The replaced backup now has the temporary name.
    return discard(replaced: temporaryName, in: parent) ? nil : temporaryName
  }

  /// Replaces a backup in two steps, for file systems that cannot exchange names. The old backup gets its name back if
  /// the second step fails.
  ///
  /// - Returns: The new name of a replaced backup that could not be removed, or `nil` if there is none.
  private func installInTwoSteps(
    _ temporaryName: String, at destination: DestinationPath, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> String? {
    let oldName = destination.sibling("old")
    do throws(Errno) {
      try system.rename(destination.name, to: oldName, in: parent)
    } catch {
      throw .writing(error)
    }
    do throws(Errno) {
      try system.rename(temporaryName, to: destination.name, in: parent)
    } catch {
      let cause = error
      do throws(Errno) {
        try system.rename(oldName, to: destination.name, in: parent)
      } catch {
        throw .writing("\(cause.reason); the old backup is now at \(quoted(oldName)) in the same folder")
      }
      throw .writing(cause)
    }
    return discard(replaced: oldName, in: parent) ? nil : oldName
  }

  /// Removes a replaced backup, unless files that are not part of a backup were added to it in the meantime.
  ///
  /// - Returns: Whether the backup was removed completely.
  private func discard(replaced name: String, in parent: borrowing OwnedFileDescriptor) -> Bool {
    let unrelated = try? system.unrelatedFiles(
      in: try system.openDirectory(name.systemName, in: parent), atMost: 1)
    // A directory that cannot be listed is removed too, because it was checked before the new backup was written.
    if let unrelated, !unrelated.isEmpty { return false }
    do throws(Errno) {
      try removePayloadsFirst(of: name, in: parent)
    } catch {
      // `discardTree` tries to remove the remaining files. If it fails, the backup is reported as a leftover.
    }
    return system.discardTree(name, in: parent)
  }

  /// Removes all files of a replaced backup except its manifest. If the run is interrupted, the remaining directory is
  /// still recognized as a backup.
  private func removePayloadsFirst(of name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let directory = try system.openDirectory(name.systemName, in: parent)
    // Shows other processes that the directory is in use.
    _ = system.claim(directory)
    defer { system.unclaim(directory) }
    for child in try system.names(in: directory) where child != MetadataFile.manifest.path.systemName {
      try system.removeTree(child, in: directory)
    }
  }
}
