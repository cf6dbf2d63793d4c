package import Basics
package import SystemPackage

extension BackupPlacement {
  /// Writes one file beside its target, checks and syncs it, and renames it there.
  package func placeFile(
    _ backup: OutgoingBackup, at path: String, format: ContainerFormat, replace: Bool, keepsAccess: Bool = false
  ) throws(BackupArchiveError) -> Placed {
    try placeFile(
      at: path, byteCount: backup.byteCount, replace: replace, keepsAccess: keepsAccess, check: backup.check
    ) { (descriptor) throws(WriteFailure) in try pack(backup, as: format, into: descriptor) }
  }

  /// - Parameters:
  ///   - keepsAccess: Whether it stays as open to others as the file that it replaces, and not its owner's alone: for
  ///     what says no more in clear than that one did.
  ///   - check: Looks at the finished file, by its path, before it gets its name.
  ///   - fill: Writes the bytes; returns how many.
  package func placeFile(
    at path: String, byteCount: Int64, replace: Bool, keepsAccess: Bool = false,
    check: (String) throws(BackupArchiveError) -> Void = { _ in },
    fill: (FileDescriptor) throws(WriteFailure) -> Int64
  ) throws(BackupArchiveError) -> Placed {
    guard let place = PlacePath(path) else {
      throw BackupArchiveError(.occupied, "\(quoted(path)) cannot be the name of a file")
    }
    var replacement = FileReplacement(place, system)
    replacement.target = replace ? .file : .nothing
    replacement.keepsAccess = keepsAccess
    do throws(WriteFailure) {
      let written = try replacement.write(
        explaining: { explain($0, at: place) },
        check: { (path) throws(WriteFailure) in try obtaining { () throws(BackupArchiveError) in try check(path) } },
        fill: fill)
      return Placed(
        path: path, byteCount: written.byteCount, isDurable: written.nameFailure == nil, leftover: nil)
    } catch {
      throw explain(error, path: path, needs: byteCount)
    }
  }

  /// Looks whether a file could be placed, as far as that shows before anything is written.
  func requireFile(at path: String, replace: Bool) throws(WriteFailure) {
    guard let place = PlacePath(path) else { throw .occupied("\(quoted(path)) cannot be the name of a file") }
    let parent = try opening(place.parent)
    let status = try systemCall { () throws(Errno) in try system.status(of: place.name.systemName, in: parent) }
    guard let kind = status?.kind, kind != .file || !replace else { return }
    throw explain(.occupied(kind), at: place)
  }

  private func explain(_ refusal: FileReplacement.Refusal, at place: PlacePath) -> WriteFailure {
    switch refusal {
    case .system(let reason): .system(reason)
    case .occupied(.file): .occupied("\(quoted(place.name)) already exists")
    case .occupied(.directory): .occupied("\(quoted(place.name)) is a folder")
    case .occupied(.link), .occupied(.pipe), .occupied(.other):
      .occupied("\(quoted(place.name)) is a link or a device, not a file")
    }
  }

  package func opening(_ parent: String) throws(WriteFailure) -> Descriptor {
    try systemCall { () throws(Errno) in try system.openDirectory(parent) }
  }

  /// The new backup stands by now. That its name is on the disk as well can only be asked for.
  package func keepsNames(of parent: borrowing Descriptor) -> Bool {
    do throws(Errno) {
      try system.syncDirectory(parent)
      return true
    } catch {
      return false
    }
  }

  package func systemCall<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(WriteFailure) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw .system(error)
    }
  }

  /// Sweeps what stands beside a backup's directory, of which only a file is written.
  package func sweepLeftovers(besideDirectory path: String) {
    guard let place = PlacePath(path), let parent = try? system.openDirectory(place.parent) else { return }
    sweepDirectories(of: place, in: parent)
  }

  /// Removes the directories that runs which were killed left beside this target, but for those that hold anything else
  /// than files of a backup: somebody may have put it there.
  package func sweepDirectories(of place: PlacePath, in parent: borrowing Descriptor) {
    system.sweepLeftovers(of: place, .directory, in: parent) { name, parent in
      do throws(Errno) {
        return try !system.foreignFiles(in: try system.openDirectory(name, in: parent), atMost: 1).isEmpty
      } catch {
        return true
      }
    }
  }
}
