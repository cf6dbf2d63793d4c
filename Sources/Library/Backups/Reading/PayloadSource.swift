package import Basics

/// Where a backup's payloads are read from, after it was opened.
package enum PayloadSource: Sendable {
  case directory(DirectoryHandle, DirectorySource)
  case container(ContainerHandle)
  /// Gone once it was read; what it held is known.
  case stream(StoredPayloads)
}

/// An open directory that several copies of a value share.
package final class DirectoryHandle: Sendable {
  package let descriptor: Descriptor
  /// The other names of payloads, listed when the first payload is missed.
  private let otherPaths = Locked<[StoredPayloads.Name: String]?>(nil)

  package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// Where a payload lies whose own name leads to nothing; `nil` if it is not there, and if the names cannot be listed.
  func otherPath(of identifier: String, _ layout: BackupLayout, by source: DirectorySource) -> String? {
    otherPaths.withLock { known in
      let paths = known ?? (try? source.payloads(of: descriptor, layout: layout))?.otherPaths ?? [:]
      known = paths
      return paths.isEmpty ? nil : StoredPayloads.Name(identifier).flatMap { paths[$0] }
    }
  }
}

/// A backup in one file, kept open. Its readers take turns, because they share the place in the file.
package final class ContainerHandle: Sendable {
  package let format: ContainerFormat
  package let payloads: StoredPayloads
  private let source: ContainerSource
  /// The directory around the backup's files, empty for none.
  package let directory: EntryName
  package var storage: ManifestStorage { source.storage }
  private let descriptor: Locked<Descriptor>

  init(
    _ descriptor: consuming Descriptor, _ source: ContainerSource, _ format: ContainerFormat,
    _ found: EntryLedger.Found
  ) {
    self.format = format
    payloads = found.payloads
    directory = found.directory
    self.source = source
    self.descriptor = Locked(descriptor)
  }

  /// Goes through its files from the first one. No other walk may be begun in the closure.
  package func walk<Value>(
    _ body: (ContainerWalk) throws(BackupArchiveError) -> Value
  ) throws(BackupArchiveError) -> Value {
    try descriptor.withLock { (descriptor) throws(BackupArchiveError) in
      let feed = try DescriptorFeed(descriptor: descriptor.raw, system: source.system)
      _ = try feed.seek(0, .start)
      return try body(try ContainerWalk(feed, as: format, limits: source.limits))
    }
  }

  /// Goes through all of its files. Where one of them breaks off, the ones after it are looked for from the start.
  ///
  /// - Throws: `.damaged` where that happens too often, and what `body` throws.
  package func forEachFile(
    _ body: (ContainerWalk.File, ContainerWalk) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    var doneCount = 0
    for _ in 0...source.limits.resumptionCount {
      let isAtEnd = try walk { (walk) throws(BackupArchiveError) in
        var count = 0
        while let file = try walk.next() {
          count += 1
          guard count > doneCount else { continue }
          doneCount = count
          try body(file, walk)
          if walk.isBroken { return false }
        }
        return true
      }
      if isAtEnd { return }
    }
    throw BackupArchiveError(.damaged, "more than \(source.limits.resumptionCount) of its files end early")
  }
}
