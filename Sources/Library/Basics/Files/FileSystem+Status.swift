package import SystemPackage

/// Reads the status of files, and sets their permissions and owners. A test can make `perform` skip a call and return
/// `omitted` instead.
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

  /// Sets the permissions of a new file or directory, which was created with access for its owner only.
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
      // A user other than root may still choose among their own groups. `.max` (-1 in C) leaves the owner unchanged.
      try? perform(.permissions, omitted: ()) { _ in try SystemCalls.setOwner(.max, status.group, of: raw) }
    }
  }

  /// Copies the owner, group and permissions of a replaced file or directory to its newly created replacement.
  ///
  /// If the group cannot be set, the current group gets only the permissions that everybody has, so no user gains
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
    // The group may do only what others may do, so the others' bits (0o007) are moved to the group's place (0o070). The
    // set-user-ID and set-group-ID bits (0o6000) are removed.
    if current.group != replaced.group { permissions &= 0o1707 | (permissions & 0o007) << 3 }
    // A file system without permissions reports equal permissions for every file, and refuses to change them.
    if current.permissions != permissions { try setPermissions(permissions, of: file) }
  }
}
