package import SystemPackage

/// Operations on file trees: links, times, and moves between directories.
extension FileSystem {
  /// Moves an entry to another directory of the same file system; an existing entry with the new name is replaced.
  package func rename(
    _ old: String, in parent: borrowing OwnedFileDescriptor, to new: String,
    in newParent: borrowing OwnedFileDescriptor
  ) throws(Errno) {
    let (from, to) = (parent.raw, newParent.raw)
    try perform(.rename, omitted: ()) { _ in try SystemCalls.rename(old, in: from, to: new, in: to) }
  }

  /// Creates a hard link in another directory of the same file system. A symbolic link is not followed.
  ///
  /// - Parameters:
  ///   - path: The path of the file, relative to `parent`.
  ///   - parent: The directory that `path` starts from.
  ///   - new: The name of the link.
  ///   - newParent: The directory of the link.
  package func linkFile(
    _ path: String, in parent: borrowing OwnedFileDescriptor, as new: String,
    in newParent: borrowing OwnedFileDescriptor
  ) throws(Errno) {
    let (from, to) = (parent.raw, newParent.raw)
    try perform(.link, omitted: ()) { _ in try SystemCalls.makeHardLink(path, in: from, to: new, in: to) }
  }

  /// Creates a symbolic link, which must not exist yet. Its target is not checked.
  package func makeLink(to target: String, _ name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) {
    let raw = parent.raw
    try perform(.create, omitted: ()) { _ in try SystemCalls.makeSymbolicLink(to: target, name, in: raw) }
  }

  /// Returns the target of a symbolic link, or `nil` if it is not UTF-8.
  package func linkTarget(of name: String, in parent: borrowing OwnedFileDescriptor) throws(Errno) -> String? {
    let raw = parent.raw
    // No target on Linux is longer (PATH_MAX).
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
