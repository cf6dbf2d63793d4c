/// A payload where it is stored, to be read once.
public struct StoredPayload {
  /// The name that it is stored under: forty hexadecimal digits.
  public let fileIdentifier: String
  private let place: Place

  enum Place {
    case file(_ path: String, DirectoryHandle, DirectorySource)
    /// An entry that a reader has come to.
    case passing(ContainerWalk.File, ContainerWalk)
    /// An entry that has to be looked for.
    case sought(_ path: String, ContainerHandle)
  }

  init(_ fileIdentifier: String, _ place: Place) {
    self.fileIdentifier = fileIdentifier
    self.place = place
  }

  /// - Returns: `false` where nothing is stored.
  func forEachPortion(
    _ body: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    switch place {
    case .file(let path, let handle, let source):
      return try source.readPayload(path, in: handle.descriptor, portion: body)
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
