import Basics

/// Where a backup is read from.
public enum ArchiveLocation: Sendable, Hashable {
  /// A backup's directory, or one file made from such a directory. Its content decides which, never its name.
  case path(String)
  /// A stream on an open descriptor, such as standard input; it stays open.
  case stream(descriptor: Int32)
}

/// Where a backup is written to.
public enum ArchiveDestination: Sendable, Hashable {
  /// A directory that is absent or empty becomes the backup; one that holds other things gets a directory named after
  /// the device's identifier; one that holds a backup is replaced, where that is allowed.
  case directory(String)
  /// One file of this format, replaced where there is one already and that is allowed.
  case file(String, ContainerFormat)
  /// A tar on an open descriptor, such as standard output; it stays open. Nothing can be taken back from a stream.
  case stream(descriptor: Int32)

  /// Chooses as the command line does: a path that ends in `/` or names an existing directory is a directory, anything
  /// else one file whose name tells the format.
  public init(path: String) {
    if path.hasSuffix("/") || FileSystem.real.isDirectory(path) {
      self = .directory(path)
    } else {
      self = .file(path, ContainerFormat(fileName: path))
    }
  }

  /// The path; `nil` for a stream.
  package var path: String? {
    switch self {
    case .directory(let path), .file(let path, _): path
    case .stream: nil
    }
  }
}
