package import Basics
import KeychainCrypto

/// The source of an open backup's payloads.
package enum PayloadSource: Sendable {
  case directory(DirectoryHandle, DirectorySource)
  case container(ContainerHandle)
  /// A stream that was consumed. The payloads are known, but cannot be read.
  case stream(StoredPayloads)
}

/// An open file that is shared by reference.
final class SharedDescriptor: Sendable {
  let descriptor: OwnedFileDescriptor

  init(_ descriptor: consuming OwnedFileDescriptor) { self.descriptor = descriptor }
}

/// An open directory that is shared by reference.
package final class DirectoryHandle: Sendable {
  package let descriptor: OwnedFileDescriptor
  /// The paths of the payloads at unusual paths, listed when the first payload is missing from its usual path.
  private let unusualPaths = Locked<[StoredPayloads.Identifier: String]?>(nil)

  package init(_ descriptor: consuming OwnedFileDescriptor) { self.descriptor = descriptor }

  /// Returns the path of a payload at an unusual path, or `nil` if there is none or the files cannot be listed.
  func unusualPath(of identifier: String, _ layout: BackupLayout, by source: DirectorySource) -> String? {
    unusualPaths.withLock { cachedPaths in
      let paths = cachedPaths ?? (try? source.payloads(of: descriptor, layout: layout))?.unusualPaths ?? [:]
      cachedPaths = paths
      return paths.isEmpty ? nil : StoredPayloads.Identifier(identifier).flatMap { paths[$0] }
    }
  }
}

/// An open container file. Its readers take turns, because they share the file position.
package final class ContainerHandle: Sendable {
  package let format: ContainerFormat
  package let payloads: StoredPayloads
  private let source: ContainerSource
  /// The backup's directory in the container, empty if there is none.
  package let directory: EntryName
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

  /// Passes a reader to a closure that iterates over the files from the first one. The closure must not start another
  /// iteration.
  package func withReader<Value>(
    _ body: (ContainerReader) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try descriptor.withLock { (descriptor) throws(KeyhaulError) in
      let bytes = try FileDescriptorSource(descriptor: descriptor.raw, system: source.system)
      _ = try bytes.seek(0, .start)
      return try body(try ContainerReader(bytes, as: format, limits: source.limits))
    }
  }

  /// Passes all files to a closure. After a file that is cut off, the container is read again from the start, and the
  /// files that were already passed are skipped.
  ///
  /// - Throws: `.damaged` if more than `BackupLimits.resumptionCount` files are cut off, or the errors of `body`.
  package func forEachFile(
    _ body: (ContainerReader.File, ContainerReader) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var passedCount = 0
    for _ in 0...source.limits.resumptionCount {
      let isAtEnd = try withReader { (reader) throws(KeyhaulError) in
        var position = 0
        while let file = try reader.next() {
          position += 1
          guard position > passedCount else { continue }
          passedCount = position
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

/// A hasher for a payload's stored size and SHA-256 digest, as in a seal.
package final class PayloadHasher: PayloadObserver {
  private let digest: DigestStream
  private var byteCount: Int64 = 0
  private var state = State.unread

  private enum State { case unread, begun, complete }

  /// Creates a hasher for a single payload.
  package init() throws(KeyhaulError) {
    digest = try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in
      try DigestStream(.sha256)
    }
  }

  func begin() { state = .begun }

  func update(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    byteCount += Int64(bytes.count)
    try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  func end() { state = .complete }

  /// A size that matches no seal.
  private static let invalidByteCount: Int64 = -1

  /// Returns the seal entry of the payload, which is read now if it was not read before.
  ///
  /// - Parameters:
  ///   - payload: The stored payload.
  ///   - path: The path in the backup.
  /// - Returns: The entry. Its size is invalid if the payload was cut off.
  package func entry(of payload: StoredPayload, at path: String) throws(KeyhaulError) -> SealFile.Entry {
    if state == .unread { _ = try? payload.observed(by: self).forEachPortion { (_) throws(KeyhaulError) in } }
    return SealFile.Entry(
      path: path, byteCount: state == .complete ? byteCount : Self.invalidByteCount,
      sha256: try translatingErrors(in: MetadataFile.seal.path) { () throws(DataProtectionError) in try digest.finish()
      })
  }
}
