package import SystemPackage

extension FileSystem {
  package func rename(_ old: String, to new: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, to: new, in: raw) }
  }

  /// The same by whole paths.
  package func rename(_ old: String, to new: String) throws(Errno) {
    try perform(.rename, omitted: ()) { _ in
      try SystemCalls.rename(old, to: new, in: SystemCalls.workingDirectory)
    }
  }

  /// Lets two names change places in one step, where the file system can.
  package func exchange(_ first: String, _ second: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.exchange, omitted: ()) { _ in try SystemCalls.exchange(first, second, in: raw) }
  }

  package func makeDirectory(_ name: String, in parent: borrowing Descriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.makeDirectory, omitted: ()) { _ in try SystemCalls.makeDirectory(name, in: raw, permissions: 0o700) }
  }

  /// Makes a directory by its whole path, for its owner alone whatever the process's umask is.
  package func makeDirectory(_ path: String) throws(Errno) {
    try perform(.makeDirectory, omitted: ()) { _ in
      try SystemCalls.makeDirectory(path, in: SystemCalls.workingDirectory, permissions: 0o700)
    }
    try setPermissions(0o700, of: path)
  }

  package func remove(_ name: Name, in parent: borrowing Descriptor, isDirectory: Bool) throws(Errno) {
    let raw = parent.raw
    try perform(.remove, omitted: ()) { _ in try SystemCalls.remove(name, in: raw, isDirectory: isDirectory) }
  }

  /// The same by a whole path; what is not there is no failure.
  package func remove(_ path: String, isDirectory: Bool = false) throws(Errno) {
    do throws(Errno) {
      try perform(.remove, omitted: ()) { _ in
        try SystemCalls.remove(path, in: SystemCalls.workingDirectory, isDirectory: isDirectory)
      }
    } catch {
      guard error == .noSuchFileOrDirectory else { throw error }
    }
  }

  /// The names in a directory, without `.` and `..`, in no particular order.
  package func names(in directory: borrowing Descriptor) throws(Errno) -> [Name] {
    let raw = directory.raw
    let copy = try perform(.list) { _ in
      try SystemCalls.open(".", in: raw, .readOnly, [.directory, .closeOnExec])
    }
    return try SystemCalls.names(ofClosing: copy)
  }

  /// Removes a directory's tree without following a link, or a single file. What is gone already is no failure.
  package func removeTree(_ name: Name, in parent: borrowing Descriptor) throws(Errno) {
    try removeTree(name, in: parent, depth: 0)
  }

  private func removeTree(_ name: Name, in parent: borrowing Descriptor, depth: Int) throws(Errno) {
    guard let status = try status(of: name, in: parent) else { return }
    guard status.kind == .directory else { return try remove(name, in: parent, isDirectory: false) }
    guard depth < Self.maximumTreeDepth else { throw .tooManySymbolicLinkLevels }
    let directory = try openDirectory(name, in: parent)
    for child in try names(in: directory).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      try removeTree(child, in: directory, depth: depth + 1)
    }
    try remove(name, in: parent, isDirectory: true)
  }

  /// A backup's directory is two levels deep and a device's one; nobody's is deeper than this.
  private static let maximumTreeDepth = 64

  /// Removes what a failed or replaced write left; a second time where one call failed in between.
  ///
  /// - Returns: Whether nothing is left.
  @discardableResult
  package func discardTree(_ name: String, in parent: borrowing Descriptor) -> Bool {
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
