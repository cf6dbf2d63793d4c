package import Basics

/// A stored payload, which can be read once.
package struct StoredPayload {
  /// The stored name: 40 hexadecimal digits.
  package let fileIdentifier: String
  private let location: Location
  /// The observer that receives the bytes that are read.
  private var observer: (any PayloadObserver)?

  enum Location {
    case file(_ path: String, BackupLayout, DirectoryHandle, DirectorySource)
    /// The current entry of a container.
    case currentEntry(ContainerReader.File, ContainerReader)
    /// An entry that must be found in its container.
    case searchedEntry(_ path: String, ContainerHandle)
  }

  init(_ fileIdentifier: String, _ location: Location) {
    self.fileIdentifier = fileIdentifier
    self.location = location
  }

  /// Returns the payload with an observer for its bytes, or the payload itself if there is no observer.
  package func observed(by observer: PayloadHasher?) -> StoredPayload {
    guard let observer else { return self }
    var observed = self
    observed.observer = observer
    return observed
  }

  /// Passes the stored bytes to a closure in chunks.
  ///
  /// - Returns: `false` if nothing is stored.
  package func forEachChunk(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    guard let observer else { return try read(body) }
    observer.begin()
    let exists = try read { (chunk) throws(KeyhaulError) in
      try observer.update(chunk)
      try body(chunk)
    }
    observer.end()
    return exists
  }

  private func read(
    _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    switch location {
    case .file(let path, let layout, let handle, let source):
      if try source.readPayload(path, in: handle.descriptor, chunk: body) { return true }
      guard let unusualPath = handle.unusualPath(of: fileIdentifier, layout, by: source), unusualPath != path else {
        return false
      }
      return try source.readPayload(unusualPath, in: handle.descriptor, chunk: body)
    case .currentEntry(let file, let reader):
      try reader.forEachChunk(of: file, body)
      return true
    case .searchedEntry(let path, let container):
      return try container.withReader { (reader) throws(KeyhaulError) in
        while let file = try reader.next() {
          guard BackupPath.inside(container.directory, file.path) == path else { continue }
          try reader.forEachChunk(of: file, body)
          return true
        }
        return false
      }
    }
  }
}

/// A type that receives a payload's stored bytes while they are read.
protocol PayloadObserver: AnyObject {
  func begin()
  func update(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError)
  /// Called when reading the payload has ended without an error.
  func end()
}
