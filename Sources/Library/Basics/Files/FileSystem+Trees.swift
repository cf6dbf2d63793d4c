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
