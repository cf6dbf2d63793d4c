package import SystemPackage

extension FileSystem {
  package func status(of file: FileDescriptor) throws(Errno) -> FileStatus {
    FileStatus(try perform(.status) { _ in try Stat(file, retryOnInterrupt: false) })
  }

  /// What stands at `name`, a link being what it is; `nil` where nothing does.
  package func status(of name: Name, in parent: borrowing Descriptor) throws(Errno) -> FileStatus? {
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

  /// What stands at a path; `nil` where nothing does, or where what should be a directory of the path is none.
  ///
  /// - Parameter followsLink: Whether a link at the end is what it leads to.
  package func status(of path: String, followsLink: Bool = false) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return FileStatus(
        try perform(.status) { _ in try Stat(path, followTargetSymlink: followsLink, retryOnInterrupt: false) })
    } catch {
      guard error.isAbsence else { throw error }
      return nil
    }
  }

  /// Whether a directory is at a path that the user typed, or a link to one.
  package func isDirectory(_ path: String) -> Bool {
    (try? status(of: path, followsLink: true))?.kind == .directory
  }

  /// Gives a file or a directory that was just made other permissions than its owner's alone.
  package func setPermissions(_ permissions: UInt32, of made: borrowing Descriptor) throws(Errno) {
    let raw = made.raw
    try perform(.permissions, omitted: ()) { _ in
      try SystemCalls.setPermissions(CInterop.Mode(truncatingIfNeeded: permissions), of: raw)
    }
  }

  /// The same by a path.
  package func setPermissions(_ permissions: UInt32, of path: String) throws(Errno) {
    try perform(.permissions, omitted: ()) { _ in
      try SystemCalls.setPermissions(
        CInterop.Mode(truncatingIfNeeded: permissions), of: path, in: SystemCalls.workingDirectory)
    }
  }

  /// Gives a file that was just made to another owner and group, where the system lets this user.
  package func transferOwnership(_ file: borrowing Descriptor, to status: FileStatus) {
    let raw = file.raw
    try? perform(.permissions, omitted: ()) { _ in
      try SystemCalls.setOwner(status.owner, status.group, of: raw)
    }
  }
}
