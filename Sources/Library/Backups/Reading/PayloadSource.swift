package import Basics
import KeychainCrypto
import KeychainFormats

/// Where a backup's payloads are read from, after it was opened.
package enum PayloadSource: Sendable {
  case directory(DirectoryHandle, DirectorySource)
  case container(ContainerHandle)
  /// Gone once it was read; what it held is known.
  case stream(StoredPayloads)
}

/// An open directory that several copies of a value share.
package final class DirectoryHandle: Sendable {
  package let descriptor: OwnedFileDescriptor
  /// The other names of payloads, listed when the first payload is missed.
  private let otherPaths = Locked<[StoredPayloads.Name: String]?>(nil)

  package init(_ descriptor: consuming OwnedFileDescriptor) { self.descriptor = descriptor }

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
  private let descriptor: Locked<OwnedFileDescriptor>

  init(
    _ descriptor: consuming OwnedFileDescriptor, _ source: ContainerSource, _ format: ContainerFormat,
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
    _ body: (ContainerWalk) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try descriptor.withLock { (descriptor) throws(KeyhaulError) in
      let feed = try DescriptorFeed(descriptor: descriptor.raw, system: source.system)
      _ = try feed.seek(0, .start)
      return try body(try ContainerWalk(feed, as: format, limits: source.limits))
    }
  }

  /// Goes through all of its files. Where one of them breaks off, the ones after it are looked for from the start.
  ///
  /// - Throws: `.damaged` where that happens too often, and what `body` throws.
  package func forEachFile(
    _ body: (ContainerWalk.File, ContainerWalk) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    var doneCount = 0
    for _ in 0...source.limits.resumptionCount {
      let isAtEnd = try walk { (walk) throws(KeyhaulError) in
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
    throw KeyhaulError(.damaged, "more than \(source.limits.resumptionCount) of its files end early")
  }
}

/// A payload where it is stored, to be read once.
package struct StoredPayload {
  /// The name that it is stored under: forty hexadecimal digits.
  package let fileIdentifier: String
  private let place: Place
  /// Measures it as it is read.
  private var watcher: (any PayloadWatcher)?

  enum Place {
    case file(_ path: String, BackupLayout, DirectoryHandle, DirectorySource)
    /// An entry that a reader has come to.
    case passing(ContainerWalk.File, ContainerWalk)
    /// An entry that has to be looked for.
    case sought(_ path: String, ContainerHandle)
  }

  init(_ fileIdentifier: String, _ place: Place) {
    self.fileIdentifier = fileIdentifier
    self.place = place
  }

  /// The same payload, whose bytes a meter sees while it is read; itself where there is none.
  package func watched(by meter: SealMeter?) -> StoredPayload {
    guard let meter else { return self }
    var watched = self
    watched.watcher = meter
    return watched
  }

  /// - Returns: `false` where nothing is stored.
  package func forEachPortion(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    guard let watcher else { return try read(body) }
    watcher.begin()
    let isThere = try read { (portion) throws(KeyhaulError) in
      try watcher.see(portion)
      try body(portion)
    }
    watcher.end()
    return isThere
  }

  private func read(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    switch place {
    case .file(let path, let layout, let handle, let source):
      if try source.readPayload(path, in: handle.descriptor, portion: body) { return true }
      guard let other = handle.otherPath(of: fileIdentifier, layout, by: source), other != path else { return false }
      return try source.readPayload(other, in: handle.descriptor, portion: body)
    case .passing(let file, let walk):
      try walk.forEachPortion(of: file, body)
      return true
    case .sought(let path, let container):
      return try container.walk { (walk) throws(KeyhaulError) in
        while let file = try walk.next() {
          guard BackupPath.inside(container.directory, file.path) == path else { continue }
          try walk.forEachPortion(of: file, body)
          return true
        }
        return false
      }
    }
  }
}

/// Is told of a payload's stored bytes while somebody reads them.
protocol PayloadWatcher: AnyObject {
  func begin()
  func see(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError)
  /// The payload was read to its end.
  func end()
}

/// Measures one payload's stored bytes while somebody reads them: its size and its SHA-256, as a seal lists them.
package final class SealMeter: PayloadWatcher {
  private let digest: DigestStream
  private var byteCount: Int64 = 0
  private var state = State.unread

  private enum State { case unread, begun, whole }

  /// Creates a meter for a single payload.
  package init() throws(KeyhaulError) {
    digest = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  func begin() { state = .begun }

  func see(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    byteCount += Int64(bytes.count)
    try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  func end() { state = .whole }

  /// The entry that a seal would have of the payload that was watched, which is read here where nobody did.
  ///
  /// - Parameters:
  ///   - payload: As it is stored.
  ///   - path: Its path in the backup.
  /// - Returns: An entry whose size is -1 where the payload broke off: no seal has that.
  package func entry(of payload: StoredPayload, at path: String) throws(KeyhaulError) -> SealList.Entry {
    if state == .unread { _ = try? payload.watched(by: self).forEachPortion { (_) throws(KeyhaulError) in } }
    return SealList.Entry(
      path: path, byteCount: state == .whole ? byteCount : -1,
      sha256: try explained(StoredPart.seal.path) { () throws(DataProtectionError) in try digest.finish() })
  }
}
