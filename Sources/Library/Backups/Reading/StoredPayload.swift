/// A payload where it is stored, to be read once.
public struct StoredPayload {
  /// The name that it is stored under: forty hexadecimal digits.
  public let fileIdentifier: String
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
    _ body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    guard let watcher else { return try read(body) }
    watcher.begin()
    let isThere = try read { (portion) throws(BackupArchiveError) in
      try watcher.see(portion)
      try body(portion)
    }
    watcher.end()
    return isThere
  }

  private func read(
    _ body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    switch place {
    case .file(let path, let layout, let handle, let source):
      if try source.readPayload(path, in: handle.descriptor, portion: body) { return true }
      guard let other = handle.otherPath(of: fileIdentifier, layout, by: source), other != path else { return false }
      return try source.readPayload(other, in: handle.descriptor, portion: body)
    case .passing(let file, let walk):
      try walk.forEachPortion(of: file, body)
      return true
    case .sought(let path, let container):
      return try container.walk { (walk) throws(BackupArchiveError) in
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
  func see(_ bytes: UnsafeRawBufferPointer) throws(BackupArchiveError)
  /// The payload was read to its end.
  func end()
}
