package import SystemPackage

/// What a tree of files takes besides single ones: links, times, names that move from one directory to another.
extension FileSystem {
  /// Moves a name from one directory to another of the same file system; what has the new name goes.
  package func rename(
    _ old: String, in parent: borrowing Descriptor, to new: String, in other: borrowing Descriptor
  ) throws(Errno) {
    let (from, to) = (parent.raw, other.raw)
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, in: from, to: new, in: to) }
  }

  /// Gives a file a second name in another directory of the same file system. A symbolic link is not followed.
  ///
  /// - Parameter path: Of the file, relative to the directory.
  package func linkFile(
    _ path: String, in parent: borrowing Descriptor, as new: String, in other: borrowing Descriptor
  ) throws(Errno) {
    let (from, to) = (parent.raw, other.raw)
    try perform(.link, omitted: ()) { _ in try SystemCalls.linkFile(path, in: from, to: new, in: to) }
  }

  /// Makes a symbolic link that is not there yet. Its target is not looked at.
  package func makeLink(to target: String, _ name: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.create, omitted: ()) { _ in try SystemCalls.makeLink(target, name, in: raw) }
  }

  /// What a symbolic link leads to; `nil` for what is not text.
  package func linkTarget(of name: String, in parent: borrowing Descriptor) throws(Errno) -> String? {
    let raw = parent.raw
    var buffer = [CChar](repeating: 0, count: 4_096)
    let count = try perform(.read) { _ in
      try buffer.withUnsafeMutableBufferPointer { try SystemCalls.linkTarget(name, in: raw, into: $0) }
    }
    return (buffer.prefix(count) + [0]).map { $0 }.validText
  }

  /// Opens a directory in another one; one that is not there is made, for its owner alone. A link is not followed.
  package func openOrMakeDirectory(_ name: String, in parent: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) {
      try makeDirectory(name, in: parent)
    } catch {
      guard error == .fileExists else { throw error }
    }
    return try openDirectory(name.systemName, in: parent)
  }

  /// Gives a file or a directory the time of its last change, in seconds since 1970.
  package func setModificationTime(_ seconds: Int64, of file: borrowing Descriptor) throws(Errno) {
    let raw = file.raw
    try perform(.permissions, omitted: ()) { _ in try SystemCalls.setModificationTime(seconds, of: raw) }
  }

  /// The same of a symbolic link; a file system that keeps no times of links is passed over.
  package func setModificationTime(
    _ seconds: Int64, ofLink name: String, in parent: borrowing Descriptor
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

  /// How many bytes may still be written where a directory is.
  package func freeByteCount(in directory: borrowing Descriptor) throws(Errno) -> Int64 {
    let raw = directory.raw
    return try perform(.status) { _ in try SystemCalls.freeByteCount(of: raw) }
  }
}

extension FileSystem {
  package func status(of file: FileDescriptor) throws(Errno) -> FileStatus {
    FileStatus(try perform(.status) { _ in try Stat(file, retryOnInterrupt: false) })
  }

  /// Returns the status of the file at `name`, without following a symbolic link; `nil` if there is no such file.
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

  /// Returns the status of the file at a path; `nil` if there is no such file or a parent in the path is not a
  /// directory.
  ///
  /// - Parameter followsLink: Whether to follow a symbolic link at the end of the path.
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

  /// Changes the owner and group of a newly created file or directory, if the system allows it.
  package func transferOwnership(_ file: borrowing Descriptor, to status: FileStatus) {
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
  package func keepAccess(
    of replaced: FileStatus, for file: borrowing Descriptor, _ kept: KeptAccess
  ) throws(Errno) {
    guard kept != .none else { return }
    var made = try status(of: file.raw)
    if (made.owner, made.group) != (replaced.owner, replaced.group) {
      transferOwnership(file, to: replaced)
      made = try status(of: file.raw)
    }
    var permissions = kept == .all ? replaced.permissions : made.permissions
    // The group's bits are three places above the others' bits. 0o6000 is set-user-ID and set-group-ID.
    if made.group != replaced.group { permissions &= 0o1707 | (permissions & 0o007) << 3 }
    // A file system without permissions reports equal permissions for every file, and refuses to change them.
    if made.permissions != permissions { try setPermissions(permissions, of: file) }
  }
}

extension FileSystem {
  /// What a run that was ended left beside a place.
  package struct Leftover {
    package let name: String
    package let status: FileStatus
  }

  /// Lends what runs that were killed left beside a target: ours by name, kind and owner. What another run still writes
  /// is claimed, as its end alone ends the claim, and is none. What cannot be read is passed over.
  ///
  /// - Throws: Where the directory cannot be listed.
  package func forEachLeftover(
    of place: PlacePath, in parent: borrowing Descriptor, _ body: (Leftover, borrowing Descriptor) -> Void
  ) throws(Errno) {
    for bytes in try names(in: parent) {
      guard let name = bytes.validText, place.isSibling(name), let file = try? openForReading(name, in: parent),
        let status = try? status(of: file.raw), status.kind == .file || status.kind == .directory, status.isOwn,
        claim(file)
      else { continue }
      defer { unclaim(file) }
      body(Leftover(name: name, status: status), parent)
    }
  }

  /// Removes the leftovers of one kind that a target's writes were ended at; not what was put aside by its name.
  ///
  /// - Parameter keeping: Whether one stays, because somebody may have put something into it.
  package func sweepLeftovers(
    of place: PlacePath, _ kind: FileStatus.Kind, in parent: borrowing Descriptor,
    keeping: (_ name: Name, borrowing Descriptor) -> Bool = { _, _ in false }
  ) {
    try? forEachLeftover(of: place, in: parent) { leftover, parent in
      guard place.isTemporarySibling(leftover.name), leftover.status.kind == kind,
        !keeping(leftover.name.systemName, parent)
      else { return }
      try? removeTree(leftover.name.systemName, in: parent)
    }
  }
}

extension FileSystem {
  /// Makes a directory at a path that the user typed, and those above it that are missing, each for its owner alone.
  /// Links in the path are followed.
  package func makeDirectories(_ path: String) throws(Errno) {
    do throws(Errno) {
      try makeDirectory(path)
    } catch {
      guard error == .noSuchFileOrDirectory, let parent = PlacePath(path)?.parent, parent.utf8.count < path.utf8.count
      else { throw error }
      try makeDirectories(parent)
      try makeDirectory(path)
    }
  }
}
