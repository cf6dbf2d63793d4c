package import Basics
package import SystemPackage

/// Places a backup at its destination, completely or not at all.
package struct BackupInstaller: Sendable {
  package let system: FileSystem

  package init(system: FileSystem = .real) { self.system = system }

  /// The result of placing a backup.
  package struct InstalledBackup: Sendable, Equatable {
    /// The path of the backup, or `nil` if it is a stream.
    package let path: String?
    /// The size of the file or stream, or the total size of the files in the directory.
    package let byteCount: Int64
    /// Whether the directory entry was synced.
    package let isDurable: Bool
    /// The path of a replaced backup that could not be removed.
    package let leftover: String?
  }

  /// Writes a backup to its destination.
  package func place(
    _ backup: OutgoingBackup, at destination: BackupDestination, replace: Bool
  ) throws(KeyhaulError) -> InstalledBackup {
    switch destination {
    case .directory(let path): return try placeDirectory(backup, at: path, replace: replace)
    case .file(let path, let format): return try placeFile(backup, at: path, format: format, replace: replace)
    case .stream(let descriptor):
      do throws(KeyhaulError) {
        let count = try pack(backup, as: .tar, into: FileDescriptor(rawValue: descriptor))
        return InstalledBackup(path: nil, byteCount: count, isDurable: false, leftover: nil)
      } catch {
        guard error.code == .writing else { throw error }
        throw KeyhaulError(
          .streamBroken, explain(error, path: "the stream", needs: backup.byteCount).reason, errno: error.errno)
      }
    }
  }

  /// Checks in advance whether `place` would accept a destination.
  ///
  /// - Parameters:
  ///   - identifier: The device identifier.
  ///   - replace: Whether to replace an existing backup or file.
  package func validateDestination(
    at destination: BackupDestination, for identifier: String?, replace: Bool
  ) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      switch destination {
      case .directory(let path):
        try requirePlaceableDirectory(at: path, named: BackupDirectory.name(for: identifier), replace: replace)
      case .file(let path, _): try requirePlaceableFile(at: path, replace: replace)
      case .stream: break
      }
    } catch {
      throw explain(error, path: destination.path ?? "the stream", needs: nil)
    }
  }

  /// Writes a container and returns its size.
  package func pack(
    _ backup: OutgoingBackup, as format: ContainerFormat, into descriptor: FileDescriptor
  ) throws(KeyhaulError) -> Int64 {
    let sink = LibArchiveWriter.Sink(descriptor: descriptor, system: system)
    let writer = try LibArchiveWriter(format, compresses: !backup.isEncrypted, to: sink)
    try backup.send(ContainerSink(writer, directoryName: backup.directoryName))
    try writer.finish()
    return sink.byteCount
  }

  /// Adds the path to the error of a failed write. Returns other errors unchanged.
  ///
  /// - Parameter byteCount: The required free space in bytes, or `nil` if it is unknown.
  package func explain(_ error: KeyhaulError, path: String, needs byteCount: Int64?) -> KeyhaulError {
    guard error.code == .writing else { return error }
    let (path, errno) = (quotedPath(path), error.errno)
    let needed = byteCount.map { " (needs \(HumanReadable.grouped($0)) bytes)" } ?? ""
    return switch errno {
    case .noSpace: KeyhaulError(.noSpace, "no space left on \(path)\(needed)", errno: errno)
    case .diskQuotaExceeded: KeyhaulError(.noSpace, "the quota is used up on \(path)\(needed)", errno: errno)
    case .noSuchFileOrDirectory: KeyhaulError(.notFound, "\(path): \(error.reason)", errno: errno)
    default: KeyhaulError(.unwritable, "\(path): \(error.reason)", errno: errno)
    }
  }

  package func explain(_ errno: Errno, path: String, needs byteCount: Int64?) -> KeyhaulError {
    explain(.writing(errno), path: path, needs: byteCount)
  }

  /// Returns a path as the user typed it, or in quotes if it contains characters that need escapes.
  private func quotedPath(_ path: String) -> String {
    let text = quoted(path)
    return text == "\"\(path)\"" ? path : text
  }
}

extension BackupInstaller {
  /// Opens the directory that contains a destination.
  func openDirectory(_ path: String) throws(KeyhaulError) -> OwnedFileDescriptor {
    try systemCall { () throws(Errno) in try system.openDirectory(path) }
  }

  /// Syncs the entries of a directory after the new backup was placed in it. Returns whether this succeeded.
  package func syncEntries(of parent: borrowing OwnedFileDescriptor) -> Bool {
    do throws(Errno) {
      try system.syncDirectory(parent)
      return true
    } catch {
      return false
    }
  }

  /// Runs a system call, and converts its error to the error of a failed write.
  package func systemCall<Result: ~Copyable>(_ body: () throws(Errno) -> Result) throws(KeyhaulError) -> Result {
    try converting({ KeyhaulError.writing($0) }, body)
  }

  /// Removes temporary directories of interrupted runs next to a backup's directory. Operations that replace only a file
  /// in the directory call this, because they do not run `placeDirectory`.
  package func removeLeftovers(besideDirectory path: String) {
    guard let destination = DestinationPath(path), let parent = try? system.openDirectory(destination.parent) else {
      return
    }
    removeLeftovers(of: destination, in: parent)
  }

  /// Removes temporary directories of interrupted runs, unless they contain files that are not part of a backup, which
  /// a user may have added.
  package func removeLeftovers(of destination: DestinationPath, in parent: borrowing OwnedFileDescriptor) {
    func mustKeep(_ name: FileSystem.Name, _ parent: borrowing OwnedFileDescriptor) -> Bool {
      do throws(Errno) {
        return try !system.unrelatedFiles(in: try system.openDirectory(name, in: parent), atMost: 1).isEmpty
      } catch {
        return true
      }
    }
    system.removeLeftovers(of: destination, .directory, in: parent, keeping: mustKeep)
  }
}

extension DestinationPath {
  /// Returns whether a file in a backup's directory is a temporary manifest or seal.
  package static func isTemporaryPart(_ name: String) -> Bool {
    [MetadataFile.manifest, .seal].contains { DestinationPath($0.path)?.isTemporarySibling(name) == true }
  }
}

extension BackupInstaller {
  /// Writes a temporary file, checks and syncs it, and renames it.
  package func placeFile(
    _ backup: OutgoingBackup, at path: String, format: ContainerFormat, replace: Bool,
    keeping access: PreservedAccess = .none
  ) throws(KeyhaulError) -> InstalledBackup {
    try placeFile(
      at: path, byteCount: backup.byteCount, replace: replace, keeping: access, check: backup.check
    ) { (descriptor) throws(KeyhaulError) in try pack(backup, as: format, into: descriptor) }
  }

  /// Places a file.
  ///
  /// - Parameters:
  ///   - access: The owner and permissions to keep from the replaced file.
  ///   - check: Checks the finished file by its temporary path.
  ///   - fill: Writes the content and returns its size.
  package func placeFile(
    at path: String, byteCount: Int64, replace: Bool, keeping access: PreservedAccess = .none,
    check: (String) throws(KeyhaulError) -> Void = { _ in },
    fill: (FileDescriptor) throws(KeyhaulError) -> Int64
  ) throws(KeyhaulError) -> InstalledBackup {
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.occupied, "\(quoted(path)) is not a valid file name")
    }
    var replacement = FileReplacement(destination, system)
    replacement.target = replace ? .file : .nothing
    replacement.preservedAccess = access
    do throws(KeyhaulError) {
      let written = try replacement.write(
        explaining: { refusalError($0, at: destination) },
        check: { (path) throws(KeyhaulError) in try check(path) },
        fill: fill)
      let isNameSynced = written.nameFailure == nil
      return InstalledBackup(path: path, byteCount: written.byteCount, isDurable: isNameSynced, leftover: nil)
    } catch {
      throw explain(error, path: path, needs: byteCount)
    }
  }

  /// Places a new file with the given content.
  package func placeNewFile(at path: String, _ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    _ = try placeFile(at: path, byteCount: Int64(bytes.count), replace: false) { (file) throws(KeyhaulError) in
      try systemCall { () throws(Errno) in try system.writeAll(bytes, to: file) }
      return Int64(bytes.count)
    }
  }

  /// Checks in advance that a file can be placed.
  ///
  /// - Throws: `.occupied` if it cannot, or the error of a failed system call.
  func requirePlaceableFile(at path: String, replace: Bool) throws(KeyhaulError) {
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.occupied, "\(quoted(path)) is not a valid file name")
    }
    let parent = try openDirectory(destination.parent)
    let status = try systemCall { () throws(Errno) in try system.status(of: destination.name.systemName, in: parent) }
    if let kind = status?.kind, !(replace && kind == .file) { throw refusalError(.occupied(kind), at: destination) }
  }

  private func refusalError(_ refusal: FileReplacement.Refusal, at destination: DestinationPath) -> KeyhaulError {
    switch refusal {
    case .system(let reason): .writing(reason)
    case .occupied(.file): KeyhaulError(.occupied, "\(quoted(destination.name)) already exists")
    case .occupied(.directory): KeyhaulError(.occupied, "\(quoted(destination.name)) is a folder")
    case .occupied(.link), .occupied(.pipe), .occupied(.other):
      KeyhaulError(.occupied, "\(quoted(destination.name)) is a link or a device, not a file")
    }
  }
}
