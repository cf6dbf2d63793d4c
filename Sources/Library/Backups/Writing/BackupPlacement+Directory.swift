import Basics
import SystemPackage

extension BackupPlacement {
  /// What stands where a directory should go.
  private enum Occupant {
    case nothing, emptyDirectory, backup, otherDirectory
    case file
  }

  /// Fills a directory beside its target and renames it there.
  package func placeDirectory(
    _ backup: OutgoingBackup, at path: String, replace: Bool
  ) throws(BackupArchiveError) -> Placed {
    do throws(WriteFailure) {
      let target = try resolve(path, calling: backup.directoryName)
      let parent = try opening(target.place.parent)
      try require(target.occupant, of: target.place, replace: replace, in: parent)
      sweepDirectories(of: target.place, in: parent)
      let temporary = target.place.sibling("tmp")
      do throws(WriteFailure) {
        // Held until the directory has its name: a claim ends with its descriptor.
        let sink = try fill(temporary, in: parent, with: backup)
        try obtaining { () throws(BackupArchiveError) in try backup.check("\(target.place.parent)/\(temporary)") }
        try keepPermissions(of: target.place, target.occupant, in: parent, for: sink)
        let leftover = try install(temporary, as: target.place, in: parent, over: target.occupant)
        withExtendedLifetime(sink) {}
        return Placed(
          path: target.path, byteCount: backup.byteCount, isDurable: keepsNames(of: parent),
          leftover: leftover.map { "\(target.place.parent)/\($0)" })
      } catch {
        system.discardTree(temporary, in: parent)
        throw error
      }
    } catch {
      throw explain(error, path: path, needs: backup.byteCount)
    }
  }

  /// Looks whether a directory could be placed, as `placeDirectory` does before it writes anything.
  func requireDirectory(at path: String, calling directoryName: String?, replace: Bool) throws(WriteFailure) {
    let target = try resolve(path, calling: directoryName)
    try require(
      target.occupant, of: target.place, replace: replace, in: try opening(target.place.parent))
  }

  /// Refuses what a backup may not take the place of.
  private func require(
    _ occupant: Occupant, of place: PlacePath, replace: Bool, in parent: borrowing Descriptor
  ) throws(WriteFailure) {
    switch occupant {
    case .backup where !replace: throw .occupied("\(quoted(place.name)) already contains a backup")
    case .backup: try requireNothingElse(in: place, parent)
    case .otherDirectory: throw .occupied("\(quoted(place.name)) contains other files")
    case .file: throw .occupied("\(quoted(place.name)) is not a folder")
    case .nothing, .emptyDirectory: break
    }
  }

  /// The directory itself, or the one for this device in it, where it holds other things.
  private func resolve(
    _ path: String, calling directoryName: String?
  ) throws(WriteFailure) -> (place: PlacePath, path: String, occupant: Occupant) {
    if let place = PlacePath(path) {
      let occupant = try occupant(of: place)
      if occupant != .otherDirectory { return (place, path, occupant) }
    }
    guard let directoryName else { throw .occupied("\(quoted(path)) contains other files") }
    let inner = (path.hasSuffix("/") ? path : path + "/") + directoryName
    guard let place = PlacePath(inner), place.name == directoryName else {
      throw .occupied("\(quoted(directoryName)) cannot be the name of a folder")
    }
    return (place, inner, try occupant(of: place))
  }

  private func occupant(of place: PlacePath) throws(WriteFailure) -> Occupant {
    let parent = try opening(place.parent)
    do throws(Errno) {
      guard let status = try system.status(of: place.name.systemName, in: parent) else { return .nothing }
      guard status.kind == .directory else { return .file }
      let directory = try system.openDirectory(place.name.systemName, in: parent)
      if try system.status(of: StoredPart.manifest.path.systemName, in: directory) != nil { return .backup }
      return try system.names(in: directory).isEmpty ? .emptyDirectory : .otherDirectory
    } catch {
      throw .system(error)
    }
  }

  /// What is not part of the backup that is replaced would be gone with it.
  private func requireNothingElse(
    in place: PlacePath, _ parent: borrowing Descriptor
  ) throws(WriteFailure) {
    let foreign = try systemCall { () throws(Errno) in
      try system.foreignFiles(in: try system.openDirectory(place.name.systemName, in: parent), atMost: 1)
    }
    guard let first = foreign.first else { return }
    throw .occupied("\(quoted(place.name)) holds \(quoted(first)), which is not part of a backup")
  }

  /// A directory of the user's stays as open to others as it was, though another directory takes its place.
  private func keepPermissions(
    of place: PlacePath, _ occupant: Occupant, in parent: borrowing Descriptor, for sink: DirectorySink
  ) throws(WriteFailure) {
    guard occupant == .emptyDirectory || occupant == .backup else { return }
    try systemCall { () throws(Errno) in
      guard let status = try system.status(of: place.name.systemName, in: parent) else { return }
      try sink.setPermissions(status.permissions)
    }
  }

  private func fill(
    _ name: String, in parent: borrowing Descriptor, with backup: OutgoingBackup
  ) throws(WriteFailure) -> DirectorySink {
    let sink = try systemCall { () throws(Errno) in
      try system.makeDirectory(name, in: parent)
      let directory = try system.openDirectory(name.systemName, in: parent)
      _ = system.claim(directory)
      return DirectorySink(directory, system: system)
    }
    try backup.send(sink)
    try systemCall { () throws(Errno) in try sink.finish() }
    return sink
  }

  /// - Returns: The name under which a replaced backup could not be removed.
  private func install(
    _ temporary: String, as place: PlacePath, in parent: borrowing Descriptor, over occupant: Occupant
  ) throws(WriteFailure) -> String? {
    guard occupant == .backup else {
      // Renaming a directory over an empty one replaces it in one step.
      do throws(Errno) {
        try system.rename(temporary, to: place.name, in: parent)
      } catch {
        throw .system(error)
      }
      return nil
    }
    do throws(Errno) {
      try system.exchange(temporary, place.name, in: parent)
      return discard(replaced: temporary, in: parent) ? nil : temporary
    } catch {
      return try installInTwoSteps(temporary, as: place, in: parent)
    }
  }

  /// For file systems that cannot exchange two names: old away, new in; the old one comes back where that fails.
  private func installInTwoSteps(
    _ temporary: String, as place: PlacePath, in parent: borrowing Descriptor
  ) throws(WriteFailure) -> String? {
    let old = place.sibling("old")
    do throws(Errno) {
      try system.rename(place.name, to: old, in: parent)
    } catch {
      throw .system(error)
    }
    do throws(Errno) {
      try system.rename(temporary, to: place.name, in: parent)
    } catch {
      let cause = error
      do throws(Errno) {
        try system.rename(old, to: place.name, in: parent)
      } catch {
        throw .library("the old backup is now at \(quoted(old)) next to it: \(cause.reason)")
      }
      throw .system(cause)
    }
    return discard(replaced: old, in: parent) ? nil : old
  }

  /// Removes a backup that another has replaced, but for one in which something was put while that was written.
  private func discard(replaced name: String, in parent: borrowing Descriptor) -> Bool {
    let foreign = try? system.foreignFiles(
      in: try system.openDirectory(name.systemName, in: parent), atMost: 1)
    // It was looked through before. Where that fails now, the backup that was to go still goes.
    guard foreign?.isEmpty != false else { return false }
    do throws(Errno) {
      try removePayloadsFirst(of: name, in: parent)
    } catch {
      // What is left goes now, or is told by its name.
    }
    return system.discardTree(name, in: parent)
  }

  /// Removes what a replaced backup holds, its manifest last: for as long as anything else of it is there, what that is
  /// can be told, should this run be killed.
  private func removePayloadsFirst(of name: String, in parent: borrowing Descriptor) throws(Errno) {
    let directory = try system.openDirectory(name.systemName, in: parent)
    // Others see that a run is still at work on it.
    _ = system.claim(directory)
    for child in try system.names(in: directory) where child != StoredPart.manifest.path.systemName {
      try system.removeTree(child, in: directory)
    }
  }
}
