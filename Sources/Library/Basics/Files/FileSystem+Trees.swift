package import SystemPackage

/// Operations on file trees: links, times, and moves between directories.
extension FileSystem {
  /// Moves an entry to another directory of the same file system; an existing entry with the new name is replaced.
  package func rename(
    _ old: String, in parent: borrowing OwnedFileDescriptor, to new: String, in other: borrowing OwnedFileDescriptor
  ) throws(Errno) {
    let (from, to) = (parent.raw, other.raw)
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, in: from, to: new, in: to) }
  }

  /// Creates a hard link in another directory of the same file system. A symbolic link is not followed.
  ///
  /// - Parameters:
  ///   - path: The path of the file, relative to `parent`.
  ///   - parent: The directory that `path` starts from.
  ///   - new: The name of the link.
  ///   - other: The directory of the link.
  package func linkFile(
    _ path: String, in parent: borrowing OwnedFileDescriptor, as new: String, in other: borrowing OwnedFileDescriptor
  ) throws(Errno) {
    let (from, to) = (parent.raw, other.raw)
    try perform(.link, omitted: ()) { _ in try SystemCalls.linkFile(path, in: from, to: new, in: to) }
  }

  /// Creates a symbolic link, which must not exist yet. Its target is not checked.
  package func makeLink(to target: String, _ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.create, omitted: ()) { _ in try SystemCalls.makeLink(target, name, in: raw) }
  }

  /// Returns the target of a symbolic link, or `nil` if it is not UTF-8.
  package func linkTarget(of name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) -> String? {
    let raw = parent.raw
    var buffer = [CChar](repeating: 0, count: 4_096)
    let count = try perform(.read) { _ in
      try buffer.withUnsafeMutableBufferPointer { try SystemCalls.linkTarget(name, in: raw, into: $0) }
    }
    return (buffer.prefix(count) + [0]).map { $0 }.validText
  }

  /// Opens a subdirectory. If it does not exist, creates one that only its owner can access. A link is not followed.
  package func openOrMakeDirectory(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno)
    -> OwnedFileDescriptor
  {
    do throws(Errno) {
      try makeDirectory(name, in: parent)
    } catch {
      guard error == .fileExists else { throw error }
    }
    return try openDirectory(name.systemName, in: parent)
  }

  /// Sets the modification time of a file or directory, in seconds since 1970.
  package func setModificationTime(_ seconds: Int64, of file: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = file.raw
    try perform(.permissions, omitted: ()) { _ in try SystemCalls.setModificationTime(seconds, of: raw) }
  }

  /// Sets the modification time of a symbolic link; does nothing if the file system does not store times of links.
  package func setModificationTime(
    _ seconds: Int64, ofLink name: String, in parent: borrowing OwnedFileDescriptor
  ) throws(Errno) {
    let raw = parent.raw
    do throws(Errno) {
      try perform(.permissions, omitted: ()) { _ in
        try SystemCalls.setModificationTime(seconds, ofLink: name, in: raw)
      }
    } catch {
      guard error == .notSupported || error == .noFunction || error == .invalidArgument else { throw error }
    }
  }

  /// Returns the path of the working directory.
  package func workingDirectoryPath() throws(Errno) -> String {
    try perform(.status) { _ in try SystemCalls.workingDirectoryPath() }
  }

  /// Returns the number of bytes that can still be written to a directory's file system.
  package func freeByteCount(in directory: borrowing OwnedFileDescriptor) throws(Errno) -> Int64 {
    let raw = directory.raw
    return try perform(.status) { _ in try SystemCalls.freeByteCount(of: raw) }
  }
}

extension FileSystem {
  package func status(of file: FileDescriptor) throws(Errno) -> FileStatus {
    FileStatus(try perform(.status) { _ in try Stat(file, retryOnInterrupt: false) })
  }

  /// Returns the status of the entry `name`, or `nil` if there is none. A symbolic link is not followed.
  package func status(of name: Name, in parent: borrowing OwnedFileDescriptor) throws(Errno) -> FileStatus? {
    let raw = parent.raw
    do throws(Errno) {
      return FileStatus(
        try perform(.status) { _ in
          try Stat(name, relativeTo: raw, flags: .symlinkNoFollow, retryOnInterrupt: false)
        })
    } catch {
      guard error == .noSuchFileOrDirectory else { throw error }
      return nil
    }
  }

  /// Returns the status of the file at a path, or `nil` if there is no such file or a parent in the path is not a
  /// directory.
  ///
  /// - Parameter followsLink: Whether to follow a symbolic link at the end of the path.
  package func status(of path: String, followsLink: Bool = false) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return FileStatus(
        try perform(.status) { _ in try Stat(path, followTargetSymlink: followsLink, retryOnInterrupt: false) })
    } catch {
      guard error.isNotFound else { throw error }
      return nil
    }
  }

  /// Returns whether a path from the user leads to a directory, possibly through a link.
  package func isDirectory(_ path: String) -> Bool {
    (try? status(of: path, followsLink: true))?.kind == .directory
  }

  /// Sets the permissions of a newly created file or directory, which only its owner could access.
  package func setPermissions(_ permissions: UInt32, of file: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = file.raw
    try perform(.permissions, omitted: ()) { _ in
      try SystemCalls.setPermissions(CInterop.Mode(truncatingIfNeeded: permissions), of: raw)
    }
  }

  /// Sets the permissions of the file or directory at a path.
  package func setPermissions(_ permissions: UInt32, of path: String) throws(Errno) {
    try perform(.permissions, omitted: ()) { _ in
      try SystemCalls.setPermissions(
        CInterop.Mode(truncatingIfNeeded: permissions), of: path, in: SystemCalls.workingDirectory)
    }
  }

  /// Changes the owner and group of a newly created file or directory, if the system allows it.
  package func transferOwnership(_ file: borrowing OwnedFileDescriptor, to status: FileStatus) {
    let raw = file.raw
    do throws(Errno) {
      try perform(.permissions, omitted: ()) { _ in try SystemCalls.setOwner(status.owner, status.group, of: raw) }
    } catch {
      // A user other than root may still choose among their own groups. -1 leaves the owner unchanged.
      try? perform(.permissions, omitted: ()) { _ in try SystemCalls.setOwner(.max, status.group, of: raw) }
    }
  }

  /// Copies the owner, group and permissions of a replaced file or directory to its newly created replacement.
  ///
  /// If the group cannot be set, the current group gets only the permissions that everybody has, so nobody gains
  /// access.
  package func preserveAccess(
    of replaced: FileStatus, for file: borrowing OwnedFileDescriptor, _ preserved: PreservedAccess
  ) throws(Errno) {
    guard preserved != .none else { return }
    var current = try status(of: file.raw)
    if (current.owner, current.group) != (replaced.owner, replaced.group) {
      transferOwnership(file, to: replaced)
      current = try status(of: file.raw)
    }
    var permissions = preserved == .all ? replaced.permissions : current.permissions
    // The group's bits are three positions above the others' bits. 0o6000 is set-user-ID and set-group-ID.
    if current.group != replaced.group { permissions &= 0o1707 | (permissions & 0o007) << 3 }
    // A file system without permissions reports equal permissions for every file, and refuses to change them.
    if current.permissions != permissions { try setPermissions(permissions, of: file) }
  }
}

extension FileSystem {
  /// An entry that an interrupted process left next to a destination.
  package struct Leftover {
    package let name: String
    package let status: FileStatus
  }

  /// Calls a closure for each entry that a killed process left next to a destination: a file or directory with a
  /// temporary name that belongs to this user. Entries that a running process is writing are locked and skipped, and so
  /// are entries that cannot be read.
  ///
  /// - Parameters:
  ///   - destination: The destination.
  ///   - parent: The directory of the destination.
  ///   - body: Called with an entry and its directory.
  /// - Throws: The system's error if the directory cannot be listed.
  package func forEachLeftover(
    of destination: DestinationPath, in parent: borrowing OwnedFileDescriptor,
    _ body: (Leftover, borrowing OwnedFileDescriptor) -> Void
  ) throws(Errno) {
    for bytes in try names(in: parent) {
      guard let name = bytes.validText, destination.isSibling(name), let file = try? openForReading(name, in: parent),
        let status = try? status(of: file.raw), status.kind == .file || status.kind == .directory,
        status.belongsToCurrentUser,
        claim(file)
      else { continue }
      defer { unclaim(file) }
      body(Leftover(name: name, status: status), parent)
    }
  }

  /// Removes the temporary files or directories that interrupted writes left, but no replaced originals.
  ///
  /// - Parameters:
  ///   - destination: The destination of the writes.
  ///   - kind: The kind of entry to remove.
  ///   - parent: The directory of the destination.
  ///   - keeping: Returns whether to keep an entry because another process may have put something into it.
  package func removeLeftovers(
    of destination: DestinationPath, _ kind: FileStatus.Kind, in parent: borrowing OwnedFileDescriptor,
    keeping: (_ name: Name, borrowing OwnedFileDescriptor) -> Bool = { _, _ in false }
  ) {
    try? forEachLeftover(of: destination, in: parent) { leftover, parent in
      guard destination.isTemporarySibling(leftover.name), leftover.status.kind == kind,
        !keeping(leftover.name.systemName, parent)
      else { return }
      try? removeTree(leftover.name.systemName, in: parent)
    }
  }
}

extension FileSystem {
  /// Creates a directory at a path from the user, and its missing parents. Only their owner can access them. Follows
  /// links.
  package func makeDirectories(_ path: String) throws(Errno) {
    do throws(Errno) {
      try makeDirectory(path)
    } catch {
      guard error == .noSuchFileOrDirectory, let parent = DestinationPath(path)?.parent,
        parent.utf8.count < path.utf8.count
      else { throw error }
      try makeDirectories(parent)
      try makeDirectory(path)
    }
  }
}
