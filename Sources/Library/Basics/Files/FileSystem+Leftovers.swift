package import SystemPackage

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
