package import Basics

/// The place from which an open backup's payloads are read.
package enum PayloadSource: Sendable {
  /// The backup's folder, and the reader for it.
  case directory(DirectoryHandle, DirectorySource)
  /// A tar or zip file.
  case container(ContainerHandle)
  /// A container on an open descriptor, which was read to its end. The payloads' names are known, but the payloads
  /// cannot be read.
  case stream(StoredPayloads)
}

/// An open file that several values share. It is closed when the last of them is destroyed.
final class SharedDescriptor: Sendable {
  let descriptor: OwnedFileDescriptor

  init(_ descriptor: consuming OwnedFileDescriptor) { self.descriptor = descriptor }
}

/// An open directory that several values share. It is closed when the last of them is destroyed.
package final class DirectoryHandle: Sendable {
  package let descriptor: OwnedFileDescriptor
  /// The paths of payloads at unusual paths, or `nil` until a payload is missing at its usual path.
  private let unusualPaths = Locked<[StoredPayloads.Identifier: String]?>(nil)

  package init(_ descriptor: consuming OwnedFileDescriptor) { self.descriptor = descriptor }

  /// Returns the unusual path of a payload that is missing at its usual path. The first call lists the directory.
  ///
  /// - Returns: The path, or `nil` if the directory has no such payload or cannot be listed.
  func unusualPath(of identifier: String, _ layout: BackupLayout, by source: DirectorySource) -> String? {
    unusualPaths.withLock { cachedPaths in
      let paths = cachedPaths ?? (try? source.payloads(of: descriptor, layout: layout))?.unusualPaths ?? [:]
      cachedPaths = paths
      return StoredPayloads.Identifier(identifier).flatMap { paths[$0] }
    }
  }
}

/// An open container file (tar or zip). Only one thread reads it at a time, because readers share the file position.
package final class ContainerHandle: Sendable {
  package let format: ContainerFormat
  /// The names and sizes of the container's payloads.
  package let payloads: StoredPayloads
  private let source: ContainerSource
  /// The path of the backup's directory in the container, empty if its files are at the top.
  package let directory: EntryName
  /// The storage for large metadata files.
  package var storage: ManifestStorage { source.storage }
  private let descriptor: Locked<OwnedFileDescriptor>

  init(
    _ descriptor: consuming OwnedFileDescriptor, _ source: ContainerSource, _ format: ContainerFormat,
    _ contents: ContainerScanner.Contents
  ) {
    self.format = format
    payloads = contents.payloads
    directory = contents.directory
    self.source = source
    self.descriptor = Locked(descriptor)
  }

  /// Passes a new reader, which starts at the first file, to a closure.
  ///
  /// The closure must not call `withReader` or `forEachFile`, because both wait until the closure has returned.
  package func withReader<Value>(
    _ body: (ContainerReader) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try descriptor.withLock { (descriptor) throws(KeyhaulError) in
      let bytes = try FileDescriptorSource(descriptor: descriptor.raw, system: source.system)
      _ = try bytes.seek(0, .start)
      return try body(try ContainerReader(bytes, as: format, limits: source.limits))
    }
  }

  /// Passes every file to a closure, in the order of the container.
  ///
  /// A reader cannot continue after a file that is cut off. A new reader then starts again, and skips the files that
  /// the closure already received.
  ///
  /// - Parameter body: A closure that receives the file and the reader for its content.
  /// - Throws: `.damaged` if more than `BackupLimits.resumptionCount` files are cut off; the errors of `body`.
  package func forEachFile(
    _ body: (ContainerReader.File, ContainerReader) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var passedFileCount = 0
    for _ in 0...source.limits.resumptionCount {
      let isAtEnd = try withReader { (reader) throws(KeyhaulError) in
        var fileNumber = 0
        while let file = try reader.next() {
          fileNumber += 1
          guard fileNumber > passedFileCount else { continue }
          passedFileCount = fileNumber
          try body(file, reader)
          if reader.isBroken { return false }
        }
        return true
      }
      if isAtEnd { return }
    }
    throw KeyhaulError(.damaged, "more than \(source.limits.resumptionCount) of its files end early")
  }
}
