package import SystemPackage

/// Renames, creates, lists and removes the entries of directories. `perform` makes each call, so that a test can skip the
/// call and return `omitted` instead.
extension FileSystem {
  package func rename(_ old: String, to new: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, to: new, in: raw) }
  }

  /// Renames a file or directory to a new name that must not exist yet.
  ///
  /// - Throws: `.fileExists` if the name exists. If the file system cannot check and rename in one call, the check is
  ///   made first, and a file that appears between the check and the renaming is replaced.
  package func rename(_ old: String, toNew new: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    do throws(Errno) {
      try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, toNew: new, in: raw) }
    } catch {
      guard error == .noFunction || error == .invalidArgument || error == .notSupported else { throw error }
      if try status(of: new.systemName, in: parent) != nil { throw Errno.fileExists }
      try rename(old, to: new, in: parent)
    }
  }

  /// Renames a file, given both paths in full.
  package func rename(_ old: String, to new: String) throws(Errno) {
    try perform(.rename, omitted: ()) { _ in
      try SystemCalls.rename(old, to: new, in: SystemCalls.workingDirectory)
    }
  }

  /// Exchanges two names in one step, if the file system supports it.
  package func exchange(_ first: String, _ second: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.exchange, omitted: ()) { _ in try SystemCalls.exchange(first, second, in: raw) }
  }

  package func makeDirectory(_ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.makeDirectory, omitted: ()) { _ in try SystemCalls.makeDirectory(name, in: raw, permissions: 0o700) }
  }

  /// Creates a directory at a path, accessible only to its owner regardless of the umask.
  package func makeDirectory(_ path: String) throws(Errno) {
    try perform(.makeDirectory, omitted: ()) { _ in
      try SystemCalls.makeDirectory(path, in: SystemCalls.workingDirectory, permissions: 0o700)
    }
    try setPermissions(0o700, of: path)
  }

  /// Creates a directory, with its missing parents, at a path that the user gave. Only their owner can access them. Follows
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

  package func remove(_ name: Name, in parent: borrowing OwnedFileDescriptor, isDirectory: Bool) throws(Errno) {
    let raw = parent.raw
    try perform(.remove, omitted: ()) { _ in try SystemCalls.remove(name, in: raw, isDirectory: isDirectory) }
  }

  /// Removes the file or empty directory at a path; does nothing if it does not exist.
  package func remove(_ path: String, isDirectory: Bool = false) throws(Errno) {
    do throws(Errno) {
      try perform(.remove, omitted: ()) { _ in
        try SystemCalls.remove(path, in: SystemCalls.workingDirectory, isDirectory: isDirectory)
      }
    } catch {
      guard error == .noSuchFileOrDirectory else { throw error }
    }
  }

  /// Returns the names in a directory, without `.` and `..`, in no particular order.
  package func names(in directory: borrowing OwnedFileDescriptor) throws(Errno) -> [Name] {
    let raw = directory.raw
    let listedDirectory = try perform(.list) { _ in
      try SystemCalls.open(".", in: raw, .readOnly, [.directory, .closeOnExec])
    }
    // `names(ofClosing:)` closes its descriptor, so it gets one of its own.
    return try SystemCalls.names(ofClosing: listedDirectory)
  }

  /// Removes a file, or a directory with everything in it, without following links. Does nothing if it does not exist.
  package func removeTree(_ name: Name, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    try removeTree(name, in: parent, depth: 0)
  }

  private func removeTree(_ name: Name, in parent: borrowing OwnedFileDescriptor, depth: Int) throws(Errno) {
    guard let status = try status(of: name, in: parent) else { return }
    guard status.kind == .directory else { return try remove(name, in: parent, isDirectory: false) }
    // The system has no error for a tree that is too deep; this one is the closest.
    guard depth < Self.maximumTreeDepth else { throw .tooManySymbolicLinkLevels }
    let directory = try openDirectory(name, in: parent)
    for child in try names(in: directory).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      try removeTree(child, in: directory, depth: depth + 1)
    }
    try remove(name, in: parent, isDirectory: true)
  }

  /// The maximum depth of a tree that is removed. A backup has two levels, and a device has one.
  private static let maximumTreeDepth = 64

  /// Removes the remains of a failed or replaced write, and tries once more if a call fails.
  ///
  /// - Returns: Whether nothing is left.
  @discardableResult
  package func discardTree(_ name: String, in parent: borrowing OwnedFileDescriptor) -> Bool {
    for _ in 0..<2 {
      do throws(Errno) {
        try removeTree(name.systemName, in: parent)
        return true
      } catch {
        continue
      }
    }
    return false
  }
}
