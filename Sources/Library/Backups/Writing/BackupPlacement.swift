package import Basics
import KeychainFormats
package import SystemPackage

/// Puts a backup where it should go: whole, or not at all.
package struct BackupPlacement: Sendable {
  package let system: FileSystem

  package init(system: FileSystem = .real) { self.system = system }

  /// What was written.
  package struct Placed: Sendable, Equatable {
    /// Where the backup now stands; `nil` for a stream.
    package let path: String?
    /// As stored; for a directory the sum of its files.
    package let byteCount: Int64
    /// Whether the disk confirmed that it keeps the backup's name too.
    package let isDurable: Bool
    /// A replaced backup that could not be removed, by its path.
    package let leftover: String?
  }

  package func place(
    _ backup: OutgoingBackup, at destination: ArchiveDestination, replace: Bool
  ) throws(KeyhaulError) -> Placed {
    switch destination {
    case .directory(let path): return try placeDirectory(backup, at: path, replace: replace)
    case .file(let path, let format): return try placeFile(backup, at: path, format: format, replace: replace)
    case .stream(let descriptor):
      do throws(KeyhaulError) {
        let count = try pack(backup, as: .tar, into: FileDescriptor(rawValue: descriptor))
        return Placed(path: nil, byteCount: count, isDurable: false, leftover: nil)
      } catch {
        guard error.code == .writing else { throw error }
        throw KeyhaulError(
          .streamBroken, explain(error, path: "the stream", needs: backup.byteCount).reason, errno: error.errno)
      }
    }
  }

  /// Refuses a destination at which `place` would refuse to put a backup, as far as that shows before anything is written.
  ///
  /// - Parameters:
  ///   - identifier: Of the backup's device.
  ///   - replace: Whether a backup, or a file, that stands there may go.
  package func requirePlace(
    at destination: ArchiveDestination, for identifier: String?, replace: Bool
  ) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      switch destination {
      case .directory(let path):
        try requireDirectory(at: path, calling: BackupDirectory.name(for: identifier), replace: replace)
      case .file(let path, _): try requireFile(at: path, replace: replace)
      case .stream: break
      }
    } catch {
      throw explain(error, path: destination.path ?? "the stream", needs: nil)
    }
  }

  /// Writes a container's bytes; returns how many.
  package func pack(
    _ backup: OutgoingBackup, as format: ContainerFormat, into descriptor: FileDescriptor
  ) throws(KeyhaulError) -> Int64 {
    let sink = LibArchiveWriter.Sink(descriptor: descriptor, system: system)
    let writer = try LibArchiveWriter(format, compresses: !backup.isEncrypted, to: sink)
    try backup.send(ContainerSink(writer, directoryName: backup.directoryName))
    try writer.finish()
    return sink.byteCount
  }

  /// - Parameter byteCount: The free space that the disk needed, in bytes; `nil` if unknown.
  package func explain(_ failure: KeyhaulError, path: String, needs byteCount: Int64?) -> KeyhaulError {
    guard failure.code == .writing else { return failure }
    let (path, errno) = (quotedPath(path), failure.errno)
    let needed = byteCount.map { " (needs \(HumanReadable.grouped($0)) bytes)" } ?? ""
    return switch errno {
    case .noSpace: KeyhaulError(.noSpace, "no space left on \(path)\(needed)", errno: errno)
    case .diskQuotaExceeded: KeyhaulError(.noSpace, "the quota is used up on \(path)\(needed)", errno: errno)
    case .noSuchFileOrDirectory: KeyhaulError(.notFound, "\(path): \(failure.reason)", errno: errno)
    default: KeyhaulError(.unwritable, "\(path): \(failure.reason)", errno: errno)
    }
  }

  package func explain(_ errno: Errno, path: String, needs byteCount: Int64?) -> KeyhaulError {
    explain(.writing(errno), path: path, needs: byteCount)
  }

  /// A path that the user typed stands as it is, unless that would garble the terminal.
  private func quotedPath(_ path: String) -> String {
    let text = quoted(path)
    return text == "\"\(path)\"" ? path : text
  }
}

extension DestinationPath {
  /// Whether a file in a backup's directory is what writing its manifest, or its seal, was ended at.
  package static func isTemporaryPart(_ name: String) -> Bool {
    [StoredPart.manifest, .seal].contains { DestinationPath($0.path)?.isTemporarySibling(name) == true }
  }
}

extension BackupPlacement {
  /// What stands where a directory should go.
  private enum Occupant {
    case nothing, emptyDirectory, backup, otherDirectory
    case file
  }

  /// Fills a directory beside its target and renames it there.
  ///
  /// - Parameter access: The owner and permissions to keep from the files of the replaced backup.
  package func placeDirectory(
    _ backup: OutgoingBackup, at path: String, replace: Bool, keeping access: PreservedAccess = .none
  ) throws(KeyhaulError) -> Placed {
    do throws(KeyhaulError) {
      let target = try resolve(path, calling: backup.directoryName)
      let parent = try opening(target.place.parent)
      try require(target.occupant, of: target.place, replace: replace, in: parent)
      sweepDirectories(of: target.place, in: parent)
      let temporary = target.place.sibling("tmp")
      do throws(KeyhaulError) {
        // Held until the directory has its name: a claim ends with its descriptor.
        let replaced = access == .none ? nil : try replacedFiles(of: target.place, target.occupant, in: parent)
        let sink = try fill(temporary, in: parent, with: backup, replaced.map { ReplacedFiles($0, access) })
        try backup.check("\(target.place.parent)/\(temporary)")
        if access != .all { try keepPermissions(of: target.place, target.occupant, in: parent, for: sink) }
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
  func requireDirectory(at path: String, calling directoryName: String?, replace: Bool) throws(KeyhaulError) {
    let target = try resolve(path, calling: directoryName)
    try require(
      target.occupant, of: target.place, replace: replace, in: try opening(target.place.parent))
  }

  /// Refuses what a backup may not take the place of.
  private func require(
    _ occupant: Occupant, of place: DestinationPath, replace: Bool, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) {
    switch occupant {
    case .backup where !replace: throw KeyhaulError(.occupied, "\(quoted(place.name)) already contains a backup")
    case .backup: try requireNothingElse(in: place, parent)
    case .otherDirectory: throw KeyhaulError(.occupied, "\(quoted(place.name)) contains other files")
    case .file: throw KeyhaulError(.occupied, "\(quoted(place.name)) is not a folder")
    case .nothing, .emptyDirectory: break
    }
  }

  /// The directory itself, or the one for this device in it, where it holds other things.
  private func resolve(
    _ path: String, calling directoryName: String?
  ) throws(KeyhaulError) -> (place: DestinationPath, path: String, occupant: Occupant) {
    if let place = DestinationPath(path) {
      let occupant = try occupant(of: place)
      if occupant != .otherDirectory { return (place, path, occupant) }
    }
    guard let directoryName else { throw KeyhaulError(.occupied, "\(quoted(path)) contains other files") }
    let inner = (path.hasSuffix("/") ? path : path + "/") + directoryName
    guard let place = DestinationPath(inner), place.name == directoryName else {
      throw KeyhaulError(.occupied, "\(quoted(directoryName)) is not a valid folder name")
    }
    return (place, inner, try occupant(of: place))
  }

  private func occupant(of place: DestinationPath) throws(KeyhaulError) -> Occupant {
    let parent = try opening(place.parent)
    do throws(Errno) {
      guard let status = try system.status(of: place.name.systemName, in: parent) else { return .nothing }
      guard status.kind == .directory else { return .file }
      let directory = try system.openDirectory(place.name.systemName, in: parent)
      if try system.status(of: StoredPart.manifest.path.systemName, in: directory) != nil { return .backup }
      return try system.names(in: directory).isEmpty ? .emptyDirectory : .otherDirectory
    } catch {
      throw .writing(error)
    }
  }

  /// What is not part of the backup that is replaced would be gone with it.
  private func requireNothingElse(
    in place: DestinationPath, _ parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) {
    let foreign = try systemCall { () throws(Errno) in
      try system.foreignFiles(in: try system.openDirectory(place.name.systemName, in: parent), atMost: 1)
    }
    guard let first = foreign.first else { return }
    throw KeyhaulError(.occupied, "\(quoted(place.name)) holds \(quoted(first)), which is not part of a backup")
  }

  /// A directory of the user's stays as open to others as it was, though another directory takes its place.
  private func keepPermissions(
    of place: DestinationPath, _ occupant: Occupant, in parent: borrowing OwnedFileDescriptor, for sink: DirectorySink
  ) throws(KeyhaulError) {
    guard occupant == .emptyDirectory || occupant == .backup else { return }
    try systemCall { () throws(Errno) in
      guard let status = try system.status(of: place.name.systemName, in: parent) else { return }
      try sink.setPermissions(status.permissions)
    }
  }

  /// Returns the directory of the replaced backup; `nil` if there is none.
  private func replacedFiles(
    of place: DestinationPath, _ occupant: Occupant, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> DirectoryHandle? {
    guard occupant == .backup else { return nil }
    return DirectoryHandle(
      try systemCall { () throws(Errno) in try system.openDirectory(place.name.systemName, in: parent) })
  }

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

  /// - Returns: The name under which a replaced backup could not be removed.
  private func install(
    _ temporary: String, as place: DestinationPath, in parent: borrowing OwnedFileDescriptor, over occupant: Occupant
  ) throws(KeyhaulError) -> String? {
    guard occupant == .backup else {
      // Renaming a directory over an empty one replaces it in one step.
      do throws(Errno) {
        try system.rename(temporary, to: place.name, in: parent)
      } catch {
        guard [.directoryNotEmpty, .fileExists, .notDirectory].contains(error) else { throw .writing(error) }
        throw KeyhaulError(.occupied, "another process has created \(quoted(place.name)) in the meantime")
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
    _ temporary: String, as place: DestinationPath, in parent: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> String? {
    let old = place.sibling("old")
    do throws(Errno) {
      try system.rename(place.name, to: old, in: parent)
    } catch {
      throw .writing(error)
    }
    do throws(Errno) {
      try system.rename(temporary, to: place.name, in: parent)
    } catch {
      let cause = error
      do throws(Errno) {
        try system.rename(old, to: place.name, in: parent)
      } catch {
        throw .writing("\(cause.reason); the old backup is now at \(quoted(old)) in the same folder")
      }
      throw .writing(cause)
    }
    return discard(replaced: old, in: parent) ? nil : old
  }

  /// Removes a backup that another has replaced, but for one in which something was put while that was written.
  private func discard(replaced name: String, in parent: borrowing OwnedFileDescriptor) -> Bool {
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
  private func removePayloadsFirst(of name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let directory = try system.openDirectory(name.systemName, in: parent)
    // Others see that a run is still at work on it.
    _ = system.claim(directory)
    for child in try system.names(in: directory) where child != StoredPart.manifest.path.systemName {
      try system.removeTree(child, in: directory)
    }
  }
}

extension BackupPlacement {
  /// Writes one file beside its target, checks and syncs it, and renames it there.
  package func placeFile(
    _ backup: OutgoingBackup, at path: String, format: ContainerFormat, replace: Bool,
    keeping access: PreservedAccess = .none
  ) throws(KeyhaulError) -> Placed {
    try placeFile(
      at: path, byteCount: backup.byteCount, replace: replace, keeping: access, check: backup.check
    ) { (descriptor) throws(KeyhaulError) in try pack(backup, as: format, into: descriptor) }
  }

  /// - Parameters:
  ///   - access: The owner and permissions to keep from the replaced file.
  ///   - check: Looks at the finished file, by its path, before it gets its name.
  ///   - fill: Writes the bytes; returns how many.
  package func placeFile(
    at path: String, byteCount: Int64, replace: Bool, keeping access: PreservedAccess = .none,
    check: (String) throws(KeyhaulError) -> Void = { _ in },
    fill: (FileDescriptor) throws(KeyhaulError) -> Int64
  ) throws(KeyhaulError) -> Placed {
    guard let place = DestinationPath(path) else {
      throw KeyhaulError(.occupied, "\(quoted(path)) is not a valid file name")
    }
    var replacement = FileReplacement(place, system)
    replacement.target = replace ? .file : .nothing
    replacement.preservedAccess = access
    do throws(KeyhaulError) {
      let written = try replacement.write(
        explaining: { explain($0, at: place) },
        check: { (path) throws(KeyhaulError) in try check(path) },
        fill: fill)
      return Placed(
        path: path, byteCount: written.byteCount, isDurable: written.nameFailure == nil, leftover: nil)
    } catch {
      throw explain(error, path: path, needs: byteCount)
    }
  }

  /// Places a file of these bytes where there is nothing yet.
  package func placeNewFile(at path: String, _ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    _ = try placeFile(at: path, byteCount: Int64(bytes.count), replace: false) { (file) throws(KeyhaulError) in
      try systemCall { () throws(Errno) in try system.writeAll(bytes, to: file) }
      return Int64(bytes.count)
    }
  }

  /// Looks whether a file could be placed, as far as that shows before anything is written.
  func requireFile(at path: String, replace: Bool) throws(KeyhaulError) {
    guard let place = DestinationPath(path) else {
      throw KeyhaulError(.occupied, "\(quoted(path)) is not a valid file name")
    }
    let parent = try opening(place.parent)
    let status = try systemCall { () throws(Errno) in try system.status(of: place.name.systemName, in: parent) }
    guard let kind = status?.kind, kind != .file || !replace else { return }
    throw explain(.occupied(kind), at: place)
  }

  private func explain(_ refusal: FileReplacement.Refusal, at place: DestinationPath) -> KeyhaulError {
    switch refusal {
    case .system(let reason): .writing(reason)
    case .occupied(.file): KeyhaulError(.occupied, "\(quoted(place.name)) already exists")
    case .occupied(.directory): KeyhaulError(.occupied, "\(quoted(place.name)) is a folder")
    case .occupied(.link), .occupied(.pipe), .occupied(.other):
      KeyhaulError(.occupied, "\(quoted(place.name)) is a link or a device, not a file")
    }
  }

  package func opening(_ parent: String) throws(KeyhaulError) -> OwnedFileDescriptor {
    try systemCall { () throws(Errno) in try system.openDirectory(parent) }
  }

  /// The new backup stands by now. That its name is on the disk as well can only be asked for.
  package func keepsNames(of parent: borrowing OwnedFileDescriptor) -> Bool {
    do throws(Errno) {
      try system.syncDirectory(parent)
      return true
    } catch {
      return false
    }
  }

  package func systemCall<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(KeyhaulError) -> Result {
    try converting({ KeyhaulError.writing($0) }, body)
  }

  /// Sweeps what stands beside a backup's directory, of which only a file is written.
  package func removeLeftovers(besideDirectory path: String) {
    guard let place = DestinationPath(path), let parent = try? system.openDirectory(place.parent) else { return }
    sweepDirectories(of: place, in: parent)
  }

  /// Removes the directories that runs which were killed left beside this target, but for those that hold anything else
  /// than files of a backup: somebody may have put it there.
  package func sweepDirectories(of place: DestinationPath, in parent: borrowing OwnedFileDescriptor) {
    system.removeLeftovers(of: place, .directory, in: parent) { name, parent in
      do throws(Errno) {
        return try !system.foreignFiles(in: try system.openDirectory(name, in: parent), atMost: 1).isEmpty
      } catch {
        return true
      }
    }
  }
}
