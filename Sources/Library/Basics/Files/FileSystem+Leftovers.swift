package import SystemPackage

/// Finds and removes what interrupted writes left.
extension FileSystem {
  /// An entry that an interrupted process left next to a destination.
  package struct Leftover {
    package let name: String
    package let status: FileStatus
  }

  /// Calls a closure for each file or directory that a killed process left next to a destination. Such an entry has a
  /// temporary name and belongs to this user.
  ///
  /// Entries that cannot be read are skipped, and so are entries that a running process is writing and has locked.
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
