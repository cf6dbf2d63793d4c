import Basics

/// The formats in which a backup's directory is packed into one file.
public enum ContainerFormat: String, Sendable, CaseIterable {
  /// Not compressed.
  case tar
  /// Compressed with gzip, for which every system has a tool.
  case gzippedTar = "tar.gz"
  /// Compressed with Zstandard, which is faster and smaller.
  case zstandardTar = "tar.zst"
  /// A zip, each entry compressed for itself.
  case zip

  /// The format that a file's name asks for; a name that asks for none gets a tar.
  public init(fileName: String) {
    let name = fileName.lowercased()
    self =
      if name.hasSuffix(".tar.gz") || name.hasSuffix(".tgz") {
        .gzippedTar
      } else if name.hasSuffix(".tar.zst") || name.hasSuffix(".tzst") {
        .zstandardTar
      } else if name.hasSuffix(".zip") {
        .zip
      } else {
        .tar
      }
  }
}

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
