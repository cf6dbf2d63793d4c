package import Basics
import SystemPackage

extension BackupInstaller {
  /// The current entry at a destination.
  private enum DestinationContents {
    case nothing, emptyDirectory, backup, otherDirectory
    case file
  }

  /// The directory of a new backup.
  private struct DirectoryTarget {
    let destination: DestinationPath
    /// The path for the caller.
    let path: String
    let contents: DestinationContents
  }

  /// Fills a temporary directory and renames it.
  ///
  /// - Parameter access: The owner and permissions to keep from the files of the replaced backup.
  package func placeDirectory(
    _ backup: OutgoingBackup, at path: String, replace: Bool, keeping access: PreservedAccess = .none
  ) throws(KeyhaulError) -> InstalledBackup {
    do throws(KeyhaulError) {
      let target = try resolve(path, named: backup.directoryName)
      let parent = try openDirectory(target.destination.parent)
      try requireReplaceable(target, replace: replace, in: parent)
      removeLeftovers(of: target.destination, in: parent)
      let temporary = target.destination.sibling("tmp")
      do throws(KeyhaulError) {
        return try placeDirectory(backup, at: target, in: parent, by: temporary, keeping: access)
      } catch {
        system.discardTree(temporary, in: parent)
        throw error
      }
    } catch {
      throw explain(error, path: path, needs: backup.byteCount)
    }
  }

  private func placeDirectory(
    _ backup: OutgoingBackup, at target: DirectoryTarget, in parent: borrowing OwnedFileDescriptor,
    by temporary: String, keeping access: PreservedAccess
  ) throws(KeyhaulError) -> InstalledBackup {
    let (destination, contents) = (target.destination, target.contents)
    let replaced = access == .none ? nil : try replacedDirectory(of: destination, contents, in: parent)
    let sink = try fill(temporary, in: parent, with: backup, replaced.map { ReplacedFiles($0, access) })
    try backup.check("\(destination.parent)/\(temporary)")
    if access != .all { try keepPermissions(of: destination, contents, in: parent, for: sink) }
    let leftover = try install(temporary, as: destination, in: parent, over: contents)
    // The sink claims the directory until it is renamed, because a claim ends with its descriptor.
    withExtendedLifetime(sink) {}
    return InstalledBackup(
      path: target.path, byteCount: backup.byteCount, isDurable: syncEntries(of: parent),
      leftover: leftover.map { "\(destination.parent)/\($0)" })
  }

  /// Checks whether `placeDirectory` would accept a destination, without writing.
  func requireDirectory(at path: String, named directoryName: String?, replace: Bool) throws(KeyhaulError) {
    let target = try resolve(path, named: directoryName)
    try requireReplaceable(target, replace: replace, in: try openDirectory(target.destination.parent))
  }

  /// Checks whether the entry at a destination can be replaced.
  private func requireReplaceable(
    _ target: DirectoryTarget, replace: Bool, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) {
    let destination = target.destination
    switch target.contents {
    case .backup where !replace: throw KeyhaulError(.occupied, "\(quoted(destination.name)) already contains a backup")
    case .backup: try requireNoUnrelatedFiles(in: destination, parent)
    case .otherDirectory: throw KeyhaulError(.occupied, "\(quoted(destination.name)) contains other files")
    case .file: throw KeyhaulError(.occupied, "\(quoted(destination.name)) is not a folder")
    case .nothing, .emptyDirectory: break
    }
  }

  /// Returns the directory for a backup: the given one, or a directory for the device in it if it has other content.
  private func resolve(_ path: String, named directoryName: String?) throws(KeyhaulError) -> DirectoryTarget {
    if let destination = DestinationPath(path) {
      let contents = try contents(of: destination)
      if contents != .otherDirectory {
        return DirectoryTarget(destination: destination, path: path, contents: contents)
      }
    }
    guard let directoryName else { throw KeyhaulError(.occupied, "\(quoted(path)) contains other files") }
    let innerPath = (path.hasSuffix("/") ? path : path + "/") + directoryName
    guard let destination = DestinationPath(innerPath), destination.name == directoryName else {
      throw KeyhaulError(.occupied, "\(quoted(directoryName)) is not a valid folder name")
    }
    return DirectoryTarget(destination: destination, path: innerPath, contents: try contents(of: destination))
  }

  private func contents(of destination: DestinationPath) throws(KeyhaulError) -> DestinationContents {
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

  /// Checks that the replaced backup's directory has no other files, which would be lost.
  private func requireNoUnrelatedFiles(
    in destination: DestinationPath, _ parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) {
    let unrelated = try systemCall { () throws(Errno) in
      try system.unrelatedFiles(in: try system.openDirectory(destination.name.systemName, in: parent), atMost: 1)
    }
    guard let first = unrelated.first else { return }
    throw KeyhaulError(.occupied, "\(quoted(destination.name)) holds \(quoted(first)), which is not part of a backup")
  }

  /// Keeps the permissions of a user's directory that is replaced.
  private func keepPermissions(
    of destination: DestinationPath, _ contents: DestinationContents, in parent: borrowing OwnedFileDescriptor,
    for sink: DirectorySink
  ) throws(KeyhaulError) {
    guard contents == .emptyDirectory || contents == .backup else { return }
    try systemCall { () throws(Errno) in
      guard let status = try system.status(of: destination.name.systemName, in: parent) else { return }
      try sink.setPermissions(status.permissions)
    }
  }

  /// Returns the directory of the replaced backup, or `nil` if there is none.
  private func replacedDirectory(
    of destination: DestinationPath, _ contents: DestinationContents, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> DirectoryHandle? {
    guard contents == .backup else { return nil }
    return DirectoryHandle(
      try systemCall { () throws(Errno) in try system.openDirectory(destination.name.systemName, in: parent) })
  }

  /// Creates a directory and writes a backup into it.
  private func fill(
    _ name: String, in parent: borrowing OwnedFileDescriptor, with backup: OutgoingBackup, _ replaced: ReplacedFiles?
  ) throws(KeyhaulError) -> DirectorySink {
    let sink = try systemCall { () throws(Errno) in
      try system.makeDirectory(name, in: parent)
      let directory = try system.openDirectory(name.systemName, in: parent)
      _ = system.claim(directory)
      return DirectorySink(directory, replacing: replaced, system: system)
    }
    try backup.send(sink)
    try systemCall { () throws(Errno) in try sink.finish() }
    return sink
  }

  /// Renames a temporary directory to its destination.
  ///
  /// - Returns: The name of a replaced backup that could not be removed.
  private func install(
    _ temporary: String, as destination: DestinationPath, in parent: borrowing OwnedFileDescriptor,
    over contents: DestinationContents
  ) throws(KeyhaulError) -> String? {
    guard contents == .backup else {
      // Renaming a directory to an empty one replaces it in one step.
      do throws(Errno) {
        try system.rename(temporary, to: destination.name, in: parent)
      } catch {
        guard [.directoryNotEmpty, .fileExists, .notDirectory].contains(error) else { throw .writing(error) }
        throw KeyhaulError(.occupied, "another process has created \(quoted(destination.name)) in the meantime")
      }
      return nil
    }
    do throws(Errno) {
      try system.exchange(temporary, destination.name, in: parent)
      return discard(replaced: temporary, in: parent) ? nil : temporary
    } catch {
      return try installInTwoSteps(temporary, as: destination, in: parent)
    }
  }

  /// Replaces a directory in two steps, for file systems that cannot exchange names. The old one is restored if the
  /// second step fails.
  private func installInTwoSteps(
    _ temporary: String, as destination: DestinationPath, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> String? {
    let old = destination.sibling("old")
    do throws(Errno) {
      try system.rename(destination.name, to: old, in: parent)
    } catch {
      throw .writing(error)
    }
    do throws(Errno) {
      try system.rename(temporary, to: destination.name, in: parent)
    } catch {
      let cause = error
      do throws(Errno) {
        try system.rename(old, to: destination.name, in: parent)
      } catch {
        throw .writing("\(cause.reason); the old backup is now at \(quoted(old)) in the same folder")
      }
      throw .writing(cause)
    }
    return discard(replaced: old, in: parent) ? nil : old
  }

  /// Removes a replaced backup, unless other files were added to it in the meantime. Returns whether it is removed.
  private func discard(replaced name: String, in parent: borrowing OwnedFileDescriptor) -> Bool {
    let unrelated = try? system.unrelatedFiles(
      in: try system.openDirectory(name.systemName, in: parent), atMost: 1)
    // The directory was already checked before the backup was written. If it cannot be listed now, it is removed too.
    guard unrelated?.isEmpty != false else { return false }
    do throws(Errno) {
      try removePayloadsFirst(of: name, in: parent)
    } catch {
      // The remaining files are removed below, or the backup is reported as a leftover.
    }
    return system.discardTree(name, in: parent)
  }

  /// Removes the content of a replaced backup, its manifest last, so that an interrupted run leaves a recognizable
  /// backup.
  private func removePayloadsFirst(of name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let directory = try system.openDirectory(name.systemName, in: parent)
    // Shows other processes that the directory is in use.
    _ = system.claim(directory)
    for child in try system.names(in: directory) where child != MetadataFile.manifest.path.systemName {
      try system.removeTree(child, in: directory)
    }
  }
}
